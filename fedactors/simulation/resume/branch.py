"""Goes on from a point of a recorded run with something changed; everything before that point is shared, bit for bit.

The clock is run again, tensors come from a checkpoint. Where there is none of that very round, the rounds from the last
one before it are computed again, which gives the same bits, and looked at: they must be those that were recorded.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from fedactors.errors import RunFolderError, ScenarioError
from fedactors.run_files import client_metrics
from fedactors.run_files.files import METRICS, SCENARIO, bytes_of, objects_in, scenario_text
from fedactors.run_files.writing import write
from fedactors.scenario.loading import apply_override, validate
from fedactors.scenario.model import Scenario
from fedactors.simulation.fleet_choice import FleetKind
from fedactors.simulation.prepare import prepare
from fedactors.simulation.prepared import Prepared
from fedactors.simulation.progress import Progress, Silent
from fedactors.simulation.record.code_files import code_changes, code_digests, write_code
from fedactors.simulation.record.digests import Digests, refuse_odd_times
from fedactors.simulation.record.run_folder import check_free, new_path
from fedactors.simulation.result import Result
from fedactors.simulation.resume.checkpoint import Checkpoint, at_most, load, save
from fedactors.simulation.resume.checkpoint_tensors import refuse_other_tensors
from fedactors.simulation.resume.resume import differences
from fedactors.simulation.runner import resume, run

_FREE = ("name", "server", "population", "cluster")  # what may be changed


def branch(
    recorded: str | Path,
    at: int,
    overrides: Iterable[str] = (),
    out: str | Path | None = None,
    *,
    fleet: FleetKind = "ray",
    actors: int | None = None,
    address: str | None = None,
    progress: Progress | None = None,
    report: bool = True,
) -> Result:
    """Go on with the run in the folder `recorded` after round `at` under `overrides`, in the new folder `out`.

    Raises RunFolderError if the run did not get that far or is damaged, ScenarioError if what is changed would have
    changed rounds before; and what `resume` raises.
    """
    path, shown = Path(recorded), progress or Silent()
    rows = _lines(path, at)
    known = load(path)
    before, after = _scenario(path, known, ()), _scenario(path, known, overrides)
    code_changes(path, known.code, before, allowed=False)
    _refuse_other_past(before, after, at)
    folder = new_path(name_of(after)) if out is None else Path(out)
    check_free(folder)
    where: dict[str, Any] = {"fleet": fleet, "actors": actors, "address": address, "report": report}
    with tempfile.TemporaryDirectory(prefix="fedactors-branch-") as made:
        start = at_most(path, at)
        if start is not None:
            refuse_other_tensors(start, prepare(before))
        if start is None or start.plans < at:
            shown.note(f"{path}: rounds {start.plans + 1 if start else 1} to {at} are computed again")
            start = _again(path, before, start, at, Path(made) / "run", {**where, "report": False})
        if start.digests["metrics"] != _digest(rows):
            raise RunFolderError(
                f"{path}: the first {at} rounds are not those that were recorded (accepted: the same data, and the"
                " version of fedactors that made them)"
            )
        _begin(folder, after, start, rows)
        client_metrics.carry_over(path, folder, at)
    return resume(folder, progress=shown, **where)


def scenario_of_branch(recorded: str | Path, overrides: Iterable[str]) -> Scenario:
    """Return the scenario of a branch of the run in the folder `recorded`. Raises as `branch`."""
    return _scenario(Path(recorded), load(Path(recorded)), overrides)


def name_of(scenario: Scenario) -> str:
    """Return how the folder of a branch begins, of which nobody has said where it is."""
    return f"{scenario.name}-branch"


def _lines(run: Path, at: int) -> list[bytes]:
    """Return the first `at` lines of metrics."""
    path = run / METRICS
    rows = bytes_of(path).splitlines(keepends=True)
    if not 1 <= at <= len(rows):
        raise RunFolderError(f"{run}: no round {at} to branch at (accepted: 1 to {len(rows)})")
    refuse_odd_times(path, objects_in(path, rows[:at]))  # raises if one is damaged, too
    return rows[:at]


def _scenario(run: Path, start: Checkpoint, overrides: Iterable[str]) -> Scenario:
    """Return the run's scenario with something changed. Raises ScenarioError if it may not be."""
    kept = json.loads(json.dumps(start.scenario))
    for override in overrides:
        apply_override(kept, override)
    scenario = validate(kept, str(run / SCENARIO), folder=Path(start.folder))
    for change in differences(start.scenario, json.loads(json.dumps(scenario.dump()))):
        if change.partition(".")[0].partition(":")[0] not in _FREE:
            raise ScenarioError(f"{run}: a branch cannot change {change} (accepted: {', '.join(_FREE)})")
    return scenario


def _refuse_other_past(before: Scenario, after: Scenario, at: int) -> None:
    """Raise ScenarioError if the rounds until `at` would have been others, or their states other vectors."""
    one, other = prepare(before), prepare(after)
    if (kept := _vectors(one)) != (wanted := _vectors(other)):
        raise ScenarioError(
            f"{after.source}: server.algorithm has the state {', '.join(wanted)}, the run has {', '.join(kept)}"
            " (accepted: an algorithm with the same state)"
        )
    clocks = one.clock(), other.clock()
    if any(clock.steered for clock in clocks):
        return  # plans depend on losses, and are looked at when the run goes on
    for plan, changed in zip(*(islice(clock, at) for clock in clocks), strict=False):
        if plan != changed:
            raise ScenarioError(
                f"{after.source}: what is changed would have changed round {plan.version + 1} already"
                f" (accepted: a branch at round {plan.version} or before, or a change that begins later)"
            )


def _vectors(prepared: Prepared) -> list[str]:
    import torch

    from fedactors.learning.traffic.downlink import lengths

    algorithm = prepared.scenario.server.algorithm
    personal = [f"{len(prepared.personal)} personal parameters"] if len(prepared.personal) else []
    kept = [f"{name} of each client" for name in (*algorithm.keeps, *prepared.feedback)]
    messages = lengths(prepared.downlink, algorithm.sends, 1)
    return sorted([*algorithm.start(torch.zeros(1)), *messages, *prepared.told, *kept, *personal])


def _again(
    path: Path, scenario: Scenario, start: Checkpoint | None, at: int, made: Path, where: Mapping[str, Any]
) -> Checkpoint:
    """Compute the rounds after `start` until `at` once more, in a folder that is thrown away."""
    if start is None:
        run(scenario, made, stop_after=at, **where)
        return load(made)
    made.mkdir()
    write(made / SCENARIO, scenario_text(path))
    write(made / METRICS, bytes_of(path / METRICS, start.metrics_bytes))
    save(made, start, start.saved())
    resume(made, stop_after=at, **where)
    return load(made)


def _digest(rows: Iterable[bytes]) -> str:
    digests = Digests()
    for row in objects_in(Path(METRICS), rows):
        digests.metrics(row)
    return digests.values()["metrics"]


def _begin(folder: Path, scenario: Scenario, start: Checkpoint, rows: list[bytes]) -> None:
    """Make the folder of the branch as if its run had been stopped after the rounds that are shared."""
    folder.mkdir(parents=True, exist_ok=True)
    said = json.loads(json.dumps(scenario.dump()))
    write(folder / SCENARIO, yaml.safe_dump(said, sort_keys=False, allow_unicode=True))
    write_code(folder, scenario)
    write(folder / METRICS, b"".join(rows))
    shared = replace(start, scenario=said, code=code_digests(scenario), metrics_bytes=sum(map(len, rows)))
    save(folder, shared, start.saved())

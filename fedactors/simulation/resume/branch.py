"""Goes on from a point of a recorded run with something changed; everything before that point is shared, bit for bit.

The clock is run again, tensors come from a checkpoint. Where there is none of that very round, the rounds from the last
one before it are computed again, which gives the same bits, and looked at: they must be those that were recorded.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from fedactors.errors import RunFolderError, ScenarioError
from fedactors.run_files import client_metrics
from fedactors.run_files.best_model import BEST, BestModel
from fedactors.run_files.files import CHECKPOINT, METRICS, SCENARIO, bytes_of, objects_in
from fedactors.run_files.writing import inner_folder, writable, write
from fedactors.scenario.loading import apply_overrides, validate
from fedactors.scenario.model import Scenario
from fedactors.scenario.yaml_text import written
from fedactors.simulation.fleet_choice import FleetKind
from fedactors.simulation.prepare import prepare
from fedactors.simulation.progress import Progress, Silent
from fedactors.simulation.record.code_files import code_changes, code_digests, write_code
from fedactors.simulation.record.digests import Digests, refuse_odd_times
from fedactors.simulation.record.eras import Era, Eras
from fedactors.simulation.record.folder_claims import check_free, new_path
from fedactors.simulation.record.stop_rule import StopRule
from fedactors.simulation.result import Result
from fedactors.simulation.resume.checkpoint import Checkpoint, PastScenario, at_most, load, save
from fedactors.simulation.resume.checkpoint_tensors import refuse_other_tensors
from fedactors.simulation.resume.resume import differences, moved, past_of
from fedactors.simulation.resume.shared_past import refuse_other_past
from fedactors.simulation.runner import ready, resume, run

_FREE = ("name", "server", "population", "cluster")  # what may be changed


def branch(
    recorded: str | Path,
    at: int,
    overrides: Iterable[str] = (),
    out: str | Path | None = None,
    *,
    scenario_folder: str | Path | None = None,
    fleet: FleetKind = "ray",
    actors: int | None = None,
    address: str | None = None,
    progress: Progress | None = None,
    report: bool = True,
) -> Result:
    """Go on with the run in the folder `recorded` after round `at` under `overrides`, in the new folder `out`.

    Where files that the scenario names were moved, its relative paths start in `scenario_folder` now.
    Raises RunFolderError if the run did not get that far or is damaged, ScenarioError if what is changed would have
    changed rounds before, or cannot be changed in the middle of a run; and what `resume` raises.
    """
    path, shown = Path(recorded), progress or Silent()
    lines = _lines(path, at)
    rows = list(refuse_odd_times(path / METRICS, objects_in(path / METRICS, lines)))
    known = moved(load(path), scenario_folder)
    client_metrics.refuse_lost(path, rows)
    before, after = _scenario(path, known, ()), _scenario(path, known, overrides)
    code_changes(path, known.code, before, allowed=False)
    shared = _Shared(path, at, b"".join(lines), known)
    refuse_other_past(prepare(before), ready(after, address), rows)
    if out is not None:
        check_free(Path(out))
    where: dict[str, Any] = {"fleet": fleet, "actors": actors, "address": address}
    with tempfile.TemporaryDirectory(prefix="fedactors-branch-") as made:
        best = _best_round(shared.eras(after), rows)
        run, start = _state(shared, best, Path(made), shown, where)
        folder = new_path(name_of(after)) if out is None else Path(out)
        _begin(folder, after, start, run, shared.lines, shared.past)
    return resume(folder, progress=shown, report=report, **where)


class _Shared(NamedTuple):
    """What a branch shares with the run in the folder `run`: its first `at` rounds, whose metrics are `lines`."""

    run: Path
    at: int
    lines: bytes
    known: Checkpoint  # the last one of the run

    @property
    def past(self) -> list[PastScenario]:
        """The scenarios of these rounds, as a checkpoint has them."""
        eras = [*self.known.past, PastScenario(rounds=self.at, scenario=self.known.scenario)]
        before = [one for one in eras if one["rounds"] < self.at]
        return [*before, PastScenario(rounds=self.at, scenario=eras[len(before)]["scenario"])]

    def eras(self, after: Scenario) -> Eras:
        """Return the scenarios of these rounds, and the one `after` them."""
        return Eras(past_of(replace(self.known, past=self.past), self.run), after)


def scenario_of_branch(
    recorded: str | Path, overrides: Iterable[str], scenario_folder: str | Path | None = None
) -> Scenario:
    """Return the scenario of a branch of the run in the folder `recorded`. Raises as `branch`."""
    return _scenario(Path(recorded), moved(load(Path(recorded)), scenario_folder), overrides)


def name_of(scenario: Scenario) -> str:
    """Return how the name of a branch's folder begins, where no folder is given."""
    return f"{scenario.name}-branch"


def _lines(run: Path, at: int) -> list[bytes]:
    """Return the first `at` lines of metrics."""
    rows = bytes_of(run / METRICS).splitlines(keepends=True)
    if not 1 <= at <= len(rows):
        raise RunFolderError(f"{run}: no round {at} to branch at (accepted: 1 to {len(rows)})")
    return rows[:at]


def _scenario(run: Path, start: Checkpoint, overrides: Iterable[str]) -> Scenario:
    """Return the run's scenario with something changed. Raises ScenarioError if it may not be."""
    kept = json.loads(json.dumps(start.scenario))
    apply_overrides(kept, overrides)
    scenario = validate(kept, str(run / SCENARIO), folder=Path(start.folder))
    for change in differences(start.scenario, json.loads(json.dumps(scenario.dump()))):
        if change.partition(".")[0].partition(":")[0] not in _FREE:
            raise ScenarioError(f"{run}: a branch cannot change {change} (accepted: {', '.join(_FREE)})")
    return scenario


def _best_round(eras: Eras, rows: Iterable[Mapping[str, Any]]) -> int | None:
    """Return which of the rounds that are shared has the best model by the rule of the branch, if it looks at them."""
    rule = StopRule(eras, BestModel(Path()))
    for row in rows:
        rule.recall(row)
    return rule.best["round"] if rule.best else None


def _state(
    shared: _Shared, best: int | None, made: Path, shown: Progress, where: Mapping[str, Any]
) -> tuple[Path, Checkpoint]:
    """Return the state after the rounds that are shared, and the run folder that has it, and the `best` model too.

    Where the run does not have them any more, rounds are computed again in the folder `made`. Raises RunFolderError if
    those are not what was recorded.
    """
    path, at = shared.run, shared.at
    start = at_most(path, _latest(shared, best))
    eras = shared.eras(_scenario(path, shared.known, ())).past
    if start is not None:
        refuse_other_tensors(start, prepare(eras[-1].scenario))
    if start is None or start.plans < at:
        shown.note(f"{path}: rounds {start.plans + 1 if start else 1} to {at} are computed again")
    run = path
    for era in eras:
        if start is None or start.plans < era.rounds:
            folder = made / str(era.rounds)
            start = _again(folder, era, run, start, where)
            run = folder
    if start is None or start.digests["metrics"] != _digest(shared.lines):
        raise RunFolderError(
            f"{path}: the first {at} rounds are not those that were recorded (accepted: the same data, and the"
            " version of fedactors that made them)"
        )
    return run, start


def _latest(shared: _Shared, best: int | None) -> int:
    """Return after how many rounds a state may be, at the most, from which the `best` model of these rounds is had."""
    if best is None or BestModel(shared.run).is_of(best):
        return shared.at
    return best


def _again(made: Path, era: Era, before: Path, start: Checkpoint | None, where: Mapping[str, Any]) -> Checkpoint:
    """Compute the rounds after `start`, of the folder `before`, to the end of an era, in the folder `made`."""
    if start is None:
        run(era.scenario, made, report=False, stop_after=era.rounds, **where)
    else:
        past = [*start.past, PastScenario(rounds=start.plans, scenario=start.scenario)]
        _begin(made, era.scenario, start, before, bytes_of(before / METRICS, start.metrics_bytes), past)
        resume(made, report=False, stop_after=era.rounds, **where)
    return load(made)


def _digest(lines: bytes) -> str:
    digests = Digests()
    for row in objects_in(Path(METRICS), lines.splitlines()):
        digests.metrics(row)
    return digests.values()["metrics"]


def _begin(
    folder: Path, scenario: Scenario, start: Checkpoint, run: Path, lines: bytes, past: Sequence[PastScenario]
) -> None:
    """Make the folder of a branch as if it had been stopped after the rounds that it shares with `run`.

    Its scenario, without which nothing goes on with it, is the last file: a branch that ends before that is no run.
    Raises FolderAccessError if the disk does not take all of it.
    """
    said = json.loads(json.dumps(scenario.dump()))
    with writable(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write(folder / METRICS, lines)
        write_code(folder, scenario)
        client_metrics.carry_over(run, folder, start.plans)
        inner_folder(folder / CHECKPOINT)
        if (run / BEST).is_file():
            write(folder / BEST, bytes_of(run / BEST))
        place, code = str(scenario.folder.resolve()), code_digests(scenario)
        known = replace(start, scenario=said, folder=place, code=code, metrics_bytes=len(lines), past=past)
        save(folder, known, start.saved())
        write(folder / SCENARIO, written(said))

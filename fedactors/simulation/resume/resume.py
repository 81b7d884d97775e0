"""Checks that a run can be resumed from a checkpoint: scenario, data and devices as before; reads the recorded rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

from fedactors.bits import made_with
from fedactors.data.evaluation_set import EvaluationSet
from fedactors.data.holdings import Part
from fedactors.errors import RunFolderError
from fedactors.fleet.base import device_of
from fedactors.learning.training_task import OnDemandData, signature
from fedactors.run_files.client_metrics import refuse_lost
from fedactors.run_files.files import METRICS, SCENARIO, SUMMARY, damaged, objects_in, problem, reading
from fedactors.run_files.writer_note import is_replay, scenario_folder
from fedactors.scenario.loading import apply_overrides, validate
from fedactors.scenario.model import Scenario
from fedactors.simulation.loaded_data import LoadedRun
from fedactors.simulation.record.code_files import code_digests
from fedactors.simulation.record.digests import Digests, refuse_odd_times
from fedactors.simulation.record.eras import Era
from fedactors.simulation.record.metric_rows import MetricRows
from fedactors.simulation.record.recorded_scenario import scenario_data
from fedactors.simulation.resume.checkpoint import Checkpoint, checkpoints, load
from fedactors.version import ENGINE, VERSION

_FREE = ("cluster",)  # parts of a scenario that change no result
_MOST = 20  # differences that are listed
_ALL = "all:"  # before the digest of data that are loaded before a run
_ON_DEMAND = "on demand:"  # before that of data that are made for each client
_SAMPLED_EVERY = 101  # a digest without a form is over one of so many samples


def beginning(scenario: Scenario, data: LoadedRun) -> Checkpoint:
    """Return the checkpoint of a run that has not done a round."""
    cluster = scenario.cluster
    return Checkpoint(
        plans=0,
        scenario=json.loads(json.dumps(scenario.dump())),
        folder=str(scenario.folder.resolve()),
        devices={
            "clients": device_of(cluster.gpus_per_actor),
            "server": device_of(cluster.server_gpus),
            "central": device_of(cluster.central_gpus),
        },
        data=_data_digest(data),
        code=code_digests(scenario),
        made_with=programs(scenario),
    )


def programs(scenario: Scenario) -> dict[str, str]:
    """Return what bits may depend on besides the scenario: versions of programs, and instructions of the processor."""
    return {"fedactors": VERSION, "engine": ENGINE, **_versions(), **made_with(scenario.cluster.bits)}


@cache
def _versions() -> dict[str, str]:
    """Return the versions of the libraries that compute."""
    return {name: version(name) for name in ("torch", "numpy")}


def scenario_of(run: Path, start: Checkpoint, overrides: Iterable[str] = ()) -> Scenario:
    """Return the scenario of the run folder, its cluster changed by `overrides`.

    Raises RunFolderError, listing the differences, if anything else is not what it was at the checkpoint.
    """
    kept = scenario_data(run)
    apply_overrides(kept, overrides)
    scenario = validate(kept, str(run / SCENARIO), folder=Path(start.folder))
    refuse_changes(run, start.scenario, json.loads(json.dumps(scenario.dump())))
    return scenario


def past_of(start: Checkpoint, run: Path) -> tuple[Era, ...]:
    """Return the scenarios that held before that of a checkpoint. Raises UsageError if one is no scenario any more."""
    source, folder = str(run / SCENARIO), Path(start.folder)
    return tuple(Era(one["rounds"], validate(one["scenario"], source, folder=folder)) for one in start.past)


def where_to_go_on(
    run: Path, overrides: Iterable[str] = (), *, previous: bool = False, folder: str | Path | None = None
) -> tuple[Checkpoint | None, Scenario]:
    """Return the checkpoint that a run goes on from, None before its first, and its scenario with `overrides`.

    Relative paths of the scenario start in `folder`, by default where they did. Raises RunFolderError if there is no
    checkpoint, it is damaged, anything but the cluster is changed, or a replay was not finished.
    """
    if is_replay(run):
        raise problem(run, "a replay that has not ended", "replay again, into another folder: --out DIR")
    if not previous and died_at_once(run):
        return None, scenario_at_once(run, overrides, folder)
    start = moved(load(run, previous=previous), folder)
    return start, scenario_of(run, start, overrides)


def moved(start: Checkpoint, folder: str | Path | None) -> Checkpoint:
    """Return a checkpoint whose scenario's relative paths start in `folder`, if one is given: others were moved there.

    Raises RunFolderError if it is no folder.
    """
    return start if folder is None else replace(start, folder=str(_there(folder)))


def _there(folder: str | Path) -> Path:
    """Return the full path of a folder of a scenario. Raises RunFolderError if it is none."""
    if not Path(folder).is_dir():
        raise problem(Path(folder), "no folder", "that in which relative paths of the scenario start")
    return Path(folder).resolve()


def died_at_once(run: Path) -> bool:
    """Whether `run` is the folder of a run that ended before its first checkpoint."""
    there = all((run / name).exists() for name in (SCENARIO, METRICS))
    return there and not (run / SUMMARY).exists() and not checkpoints(run)


def scenario_at_once(run: Path, overrides: Iterable[str] = (), folder: str | Path | None = None) -> Scenario:
    """Return the scenario of a run without a checkpoint, its cluster changed by `overrides`; `folder` as above.

    Raises RunFolderError if anything else is not what the folder says.
    """
    kept = scenario_data(run)
    before = json.loads(json.dumps(kept))
    apply_overrides(kept, overrides)
    scenario = validate(kept, str(run / SCENARIO), folder=scenario_folder(run) if folder is None else _there(folder))
    refuse_changes(run, before, kept)
    return scenario


def refuse_changes(run: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise RunFolderError, listing them, if two resolved scenarios differ in what changes results."""
    found = [change for change in differences(before, now) if not change.startswith(_FREE)]
    if found:
        more = [f"  … and {len(found) - _MOST} more"] if len(found) > _MOST else []
        raise RunFolderError(
            "\n".join(
                [
                    f"{run}: the scenario is not the one of the checkpoint:",
                    *(f"  {change}" for change in found[:_MOST]),
                    *more,
                    "(accepted: the same scenario; only its cluster may change; with something else changed:"
                    f" fedactors branch {run} --at round=N --set …)",
                ]
            )
        )


def differences(before: Any, now: Any, path: str = "") -> Iterator[str]:
    """Yield "key.path: before, now NOW" for every value that differs between two trees of plain data."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        keys = dict.fromkeys([*before, *now])
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        keys = dict.fromkeys(range(len(before)))
        before, now = dict(enumerate(before)), dict(enumerate(now))
    else:
        if before != now:
            yield f"{path}: {_short(before)}, now {_short(now)}"
        return
    for key in keys:
        yield from differences(before.get(key), now.get(key), f"{path}.{key}" if path else str(key))


def refuse_others(start: Checkpoint, now: Checkpoint, data: LoadedRun, run: Path, note: Callable[[str], None]) -> None:
    """Raise RunFolderError if the data or the device types are not those of the checkpoint; note other programs."""
    for part, found in now.devices.items():
        if found != (before := start.devices.get(part, found)):  # older checkpoints say nothing of "central"
            raise RunFolderError(
                f"{run}: computed on {before} so far, not on {found} ({part}): bits would differ"
                " (accepted: cluster.gpus_per_actor, server_gpus and central_gpus as they were)"
            )
    if not _same_data(start, now, data):
        raise RunFolderError(
            f"{run}: the data set is not the one of the checkpoint, or clients hold other samples of it"
            " (accepted: the same files)"
        )
    for change in differences(start.made_with, now.made_with):
        note(f"{run}: not as before, bits may differ: {change}")


def _same_data(start: Checkpoint, now: Checkpoint, data: LoadedRun) -> bool:
    """Whether `data`, known by the digest in `now`, are those of the checkpoint `start`.

    A branch with more rounds can have them loaded that were made on demand: the scenario says what they are then.
    """
    form, _, digest = start.data.rpartition(":")
    if not form:
        return digest == _sampled_digest(data)
    return form != now.data.rpartition(":")[0] or start.data == now.data


def recorded_rows(run: Path, start: Checkpoint) -> MetricRows:
    """Return the rows of metrics before the checkpoint.

    Raises RunFolderError if they, or the lines of the clients that were evaluated, are not as they were written.
    """
    path = run / METRICS
    rows = 0
    digests = Digests()
    for row in refuse_odd_times(path, objects_in(path, _lines_before(path, start.metrics_bytes))):
        rows += 1
        digests.metrics(row)
    if start.plans and (rows != start.plans or digests.values()["metrics"] != start.digests["metrics"]):
        last, *others = checkpoints(run)
        hint = "; the checkpoint before it may fit: --previous" if others and last.name == start.path.name else ""
        raise damaged(path, f"not the {start.plans} lines that the checkpoint was written with{hint}")
    found = MetricRows(path, rows)
    refuse_lost(run, found)
    return found


def _lines_before(path: Path, end: int) -> Iterator[bytes]:
    """Yield the lines in the first `end` bytes of a file. Raises RunFolderError if it cannot be read."""
    with reading(path) as file:
        while line := file.readline(end):
            end -= len(line)
            yield line


def _data_digest(data: LoadedRun) -> str:
    """Return the form of a digest, and a digest by which samples, and who holds which, are identified."""
    form = _ON_DEMAND if isinstance(data.samples, OnDemandData) else _ALL
    parts = (
        data.samples.signature(),
        data.samples.split.signature(),
        _tests(data.evaluation_set),
        signature(*data.own),
    )
    return f"{form}{_sha256(parts)}"


def _sampled_digest(data: LoadedRun) -> str:
    """Return a digest of one of every `_SAMPLED_EVERY` samples: the form in checkpoints whose digest has no prefix."""
    every, own = _SAMPLED_EVERY, data.own
    tests = _tests(data.evaluation_set, every)
    return _sha256([data.samples.signature(every), tests, signature(own.x, own.y, own.weights, every)])


def _tests(evaluation_set: EvaluationSet, every: int = 1) -> Iterator[Part]:
    """Yield what the samples that models are evaluated on are identified by, see `signature`."""
    yield from signature(evaluation_set.x, evaluation_set.y, every=every)
    if (validation := evaluation_set.validation) is not None:
        yield b"validation"
        yield from signature(validation.x, validation.y, every=every)


def _sha256(parts: Iterable[Iterable[Part]]) -> str:
    digest = hashlib.sha256()
    for part in chain.from_iterable(parts):
        digest.update(part)
    return digest.hexdigest()


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."

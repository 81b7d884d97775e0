"""Runs the cells of a study, each an ordinary run in a folder of its own; finished runs are skipped."""

from __future__ import annotations

import gc
import hashlib
import json
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple, TypeVar

from fedactors.errors import DivergedError, RunFolderError
from fedactors.run_files.files import CHECKPOINT, SUMMARY, bytes_of, object_of
from fedactors.run_files.summary_file import summary_of
from fedactors.run_files.writing import replacing_folder, write
from fedactors.scenario.model import Scenario
from fedactors.simulation.endings import INTERRUPTED, is_complete
from fedactors.simulation.progress import Silent
from fedactors.simulation.record.code_files import code_digests

_FAILURE = "failure.json"
T = TypeVar("T")


class StudyRun(NamedTuple):
    """One run that a study needs: a scenario file with overrides, and the folder in which its own folder is made."""

    scenario: Path
    overrides: tuple[str, ...]
    out: Path
    clock_only: bool = False  # replayed, without training


def finished(work: StudyRun) -> Path:
    """Return the folder of the run of `work`. If the run is not complete, continue it, or start it, first.

    A run that diverged is complete, and its folder says so (`failure`). Raises what loading and running raise.
    """
    scenario = Scenario.load(work.scenario, work.overrides)
    if work.clock_only:
        return _replayed(scenario, work.out)
    folder = folder_of(scenario, work.out)
    if not complete(folder):
        try:
            _play(scenario, folder)
        except DivergedError as error:
            said = {"kind": type(error).__name__, "text": str(error)}
            write(folder / _FAILURE, json.dumps(said) + "\n")
        gc.collect()  # parts of a run refer to one another: its data would stay beside those of the next runs
    return folder


def _replayed(scenario: Scenario, out: Path) -> Path:
    """Return the folder of a replay, made first if it is not there."""
    from fedactors.simulation.replay import replay

    run = folder_of(scenario, out)
    folder = run.with_name(run.name.replace("run-", "replay-", 1))
    if not complete(folder):
        replay(scenario, _fresh(folder))
    return folder


def _play(scenario: Scenario, folder: Path) -> None:
    """Go on from the checkpoint in `folder`, or run from the beginning if none there can be used."""
    from fedactors.simulation import runner

    if (folder / CHECKPOINT).exists():
        try:
            runner.resume(folder, fleet="local", report=False, progress=Silent())
            return
        except RunFolderError:
            pass  # damaged, or of other recordings: it is set aside, not lost
    runner.run(scenario, _fresh(folder), fleet="local", report=False, progress=Silent())


def folder_of(scenario: Scenario, out: Path) -> Path:
    """Return the folder of a run; studies that have a run in common share it, whatever they call it."""
    said = {key: value for key, value in scenario.dump().items() if key not in ("name", "cluster")}
    if code := code_digests(scenario):
        said["code"] = code
    return out / f"run-{hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]}"


def complete(folder: Path) -> bool:
    """Say whether a run came to its end, or diverged and would again."""
    if not (folder / SUMMARY).exists():
        return False
    return is_complete(str(summary_of(folder).get("ended_because", INTERRUPTED))) or bool(failure(folder))


def failure(folder: Path) -> str:
    """Return why a run could not be finished, and never can; nothing if it was."""
    path = folder / _FAILURE
    return str(object_of(path).get("text", "")) if path.exists() else ""


def each(function: Callable[[StudyRun], T], work: Sequence[StudyRun], jobs: int) -> Iterator[T]:
    """Yield what `function` makes of each piece of work, in order, `jobs` at a time in processes of this machine."""
    if jobs == 1 or len(work) < 2:
        yield from map(function, work)
        return
    with ProcessPoolExecutor(min(jobs, len(work)), multiprocessing.get_context("spawn")) as pool:
        futures = [pool.submit(function, one) for one in work]
        try:
            for future in futures:
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def on_cluster(work: Sequence[StudyRun], address: str) -> Iterator[Path]:
    """Yield the folder of each run, in order; what is not there is run by tasks of a Ray cluster, as many as it can.

    Each node must see the scenario, its recordings and its data under the same paths; run folders are sent back here.
    """
    from fedactors.fleet.ray.scatter import scatter

    scenarios = [Scenario.load(one.scenario, one.overrides) for one in work]
    folders = [folder_of(scenario, one.out) for scenario, one in zip(scenarios, work, strict=True)]
    missing = [k for k, folder in enumerate(folders) if not complete(folder)]
    first = scenarios[0].cluster
    resources = {"cpus": first.cpus_per_actor, "gpus": first.gpus_per_actor}
    found = scatter(packed, [(work[k].scenario.resolve(), work[k].overrides) for k in missing], address, **resources)
    for k, folder in enumerate(folders):
        if k in missing:
            unpack(next(found), _fresh(folder))
        yield folder


def packed(scenario: Path, overrides: tuple[str, ...]) -> dict[str, bytes]:
    """Run a scenario in a folder that is forgotten, and return that folder's files by their relative paths."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="fedactors-study-") as out:
        folder = finished(StudyRun(scenario, overrides, Path(out)))
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        return {path.relative_to(folder).as_posix(): bytes_of(path) for path in files}


def unpack(files: dict[str, bytes], folder: Path) -> None:
    """Write a folder that appears whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with replacing_folder(folder) as pending:
        for name, content in files.items():
            path = pending / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path, content)


def _fresh(folder: Path) -> Path:
    """Set a run that cannot be gone on with aside, and return the folder's path."""
    number = 0
    while folder.exists():
        number += 1
        aside = folder.with_name(f"{folder.name}.unfinished-{number}")
        if not aside.exists():
            folder.rename(aside)
    return folder

"""Runs the cells of a study, each an ordinary run in a folder of its own; finished runs are skipped."""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fedactors.errors import ClusterError, DivergedError, FolderAccessError, RunFolderError
from fedactors.job_limits import usable_cores
from fedactors.packaged import located
from fedactors.run_files.files import CHECKPOINT, bytes_of
from fedactors.run_files.writing import replacing_folder, write
from fedactors.scenario.model import Scenario
from fedactors.simulation.progress import Progress, Silent, Stoppable
from fedactors.simulation.record.folder_claims import refuse_claimed
from fedactors.simulation.resume.checkpoint import load
from fedactors.study.run_folders import FAILURE, complete, folder_of, fresh, replay_folder
from fedactors.study.worker_processes import each

if TYPE_CHECKING:
    from fedactors.simulation.fleet_choice import FleetKind

_COLLECT_EVERY = 1.5  # seconds of processor time


class StudyMachines(NamedTuple):
    """Where the runs of a study are computed.

    On the fleet "local" each run is one process, and `jobs` of them run at a time (by default one per core), or as many
    as the Ray cluster at `address` can. On the fleet "ray" one run at a time has `actors`, there or on this machine.
    """

    jobs: int | None = None
    address: str | None = None
    fleet: FleetKind = "local"
    actors: int | None = None

    def check(self) -> None:
        """Raise ClusterError if parts of it exclude each other."""
        if self.fleet == "ray" and self.jobs not in (None, 1):
            raise ClusterError(f"--jobs {self.jobs}: on the fleet ray one run at a time has all actors (accepted: 1)")
        if self.fleet == "local" and self.actors not in (None, 1):
            raise ClusterError(f"--actors {self.actors}: each run is one process (accepted: --fleet ray, or --jobs)")
        if self.fleet == "local" and self.address and self.jobs:
            raise ClusterError(
                "--jobs is for this machine; a cluster runs what it can at a time (accepted: one of the two)"
            )

    def refuse_training(self) -> None:
        """Raise ClusterError if it is where runs are trained: the clock alone is replayed on this machine."""
        elsewhere = f"--address {self.address}" if self.address else "--fleet ray" if self.fleet == "ray" else ""
        if elsewhere:
            raise ClusterError(f"{elsewhere}: the clock alone is replayed on this machine (accepted: --fleet local)")


class StudyRun(NamedTuple):
    """One run that a study needs: a scenario file with overrides, and the folder in which its own folder is made."""

    scenario: Path
    overrides: tuple[str, ...]
    out: Path
    clock_only: bool = False  # replayed, without training
    machines: StudyMachines = StudyMachines()
    until: float | None = None  # time.time() at which a run is interrupted, after its round; it is gone on with later


def finished(work: StudyRun) -> Path:
    """Return the folder of the run of `work`. If the run is not complete, continue it, or start it, first.

    A run that diverged is complete, and its folder says so (`failure`). Raises what loading and running raise, and
    KeyboardInterrupt when its time is up.
    """
    scenario = Scenario.load(work.scenario, work.overrides)
    if work.clock_only:
        return _replayed(scenario, work.out)
    folder = folder_of(scenario, work.out)
    if not complete(folder):
        try:
            _play(scenario, folder, work)
        except DivergedError as error:
            said = {"kind": type(error).__name__, "text": str(error)}
            write(folder / FAILURE, json.dumps(said) + "\n")
        _collect()
    return folder


_collected = [0.0]  # when unused memory was last looked for, s of processor time


def _collect() -> None:
    """Free what runs left, unless little was done since the last time.

    Parts of a run refer to one another: its data would stay beside those of the next runs. Looking for them takes about
    .15 s, which is longer than a small run.
    """
    if time.process_time() - _collected[0] > _COLLECT_EVERY:
        gc.collect()
        _collected[0] = time.process_time()


def _replayed(scenario: Scenario, out: Path) -> Path:
    """Return the folder of a replay, made first if it is not there."""
    from fedactors.simulation.replay import replay

    folder = replay_folder(folder_of(scenario, out))
    if not complete(folder):
        replay(scenario, fresh(folder, f"{folder}: a replay that did not come to its end"))
    return folder


def _play(scenario: Scenario, folder: Path, work: StudyRun) -> None:
    """Go on from the last checkpoint in `folder`, else from the one before it, else run from the beginning.

    What cannot be gone on with is damaged, or of other recordings, data, code or device types: it is set aside, not
    lost. The cluster is that of `scenario`. Raises FolderAccessError if the disk does not let the run go on.
    """
    from fedactors.simulation import runner

    machines = work.machines
    ray = machines.fleet == "ray"
    where: dict[str, Any] = {"fleet": "ray", "actors": machines.actors, "address": machines.address} if ray else {}
    options: dict[str, Any] = {"fleet": "local", "report": False, "progress": _progress(work), **where}
    why = f"{folder}: it ended before its first checkpoint"
    if (folder / CHECKPOINT).exists():
        go_on = partial(_go_on, folder, [f"cluster={json.dumps(scenario.dump()['cluster'])}"], **options)
        if not (why := go_on(previous=False)):
            return
        if not go_on(previous=True):
            print(f"{why}; gone on with from the checkpoint before that", file=sys.stderr, flush=True)
            return
    runner.run(scenario, fresh(folder, why), **options)


def _go_on(folder: Path, overrides: Sequence[str], *, previous: bool, **options: Any) -> str:
    """Go on with a run to its end, and return nothing; or return why it cannot be gone on with. Raises as `_play`."""
    from fedactors.simulation import runner

    try:
        if previous and not load(folder, previous=True).plans:
            return "the checkpoint before the last one has no rounds"  # nothing is gained by it
        runner.resume(folder, overrides, previous=previous, **options)
    except FolderAccessError:
        raise
    except RunFolderError as error:
        return str(error)
    return ""


def _progress(work: StudyRun) -> Progress:
    """Return a progress that shows nothing, and interrupts the run once its time is up."""
    until = work.until
    return Silent() if until is None else Stoppable(Silent(), lambda: time.time() >= until)


def played(work: Sequence[StudyRun], machines: StudyMachines) -> Iterator[Path]:
    """Yield the folder of each run, in order; what is not there is run on `machines`."""
    if machines.fleet == "ray":
        return each(finished, [one._replace(machines=machines) for one in work], 1)
    if machines.address:
        return on_cluster(work, machines.address)
    return each(finished, work, machines.jobs or usable_cores())


def on_cluster(work: Sequence[StudyRun], address: str) -> Iterator[Path]:
    """Yield the folder of each run, in order; what is not there is run by tasks of a Ray cluster, as many as it can.

    Each node must see the scenario, its recordings and its data under the same paths; run folders are sent back here,
    each as soon as its run ends: if another run fails, those that have ended are complete.
    """
    from fedactors.fleet.ray.scatter import Call, scatter

    scenarios = [Scenario.load(one.scenario, one.overrides) for one in work]
    folders = [folder_of(scenario, one.out) for scenario, one in zip(scenarios, work, strict=True)]
    missing = [k for k, folder in enumerate(folders) if not complete(folder)]
    for k in missing:
        refuse_claimed(folders[k])  # before it is computed
    calls = []
    for k in missing:
        one, wanted = work[k], scenarios[k].cluster
        name = " ".join(["run", str(one.scenario), *(f"--set {override}" for override in one.overrides)])
        arguments = (located(one.scenario).resolve(), one.overrides)
        calls.append(Call(name, arguments, wanted.cpus_per_actor, wanted.gpus_per_actor))
    found = scatter(packed, calls, address)
    awaited = set(missing)
    for k, folder in enumerate(folders):
        while k in awaited:
            place, files = next(found)
            filled = folders[missing[place]]
            unpack(files, fresh(filled, f"{filled}: not complete, and a cluster does not go on with it"))
            awaited.remove(missing[place])
        yield folder


def packed(scenario: Path, overrides: tuple[str, ...]) -> dict[str, bytes]:
    """Run a scenario in a folder that is forgotten, and return that folder's files by their relative paths.

    Checkpoints are left out: a run that has come to its end is not gone on with.
    """
    import tempfile

    with tempfile.TemporaryDirectory(prefix="fedactors-study-") as out:
        folder = finished(StudyRun(scenario, overrides, Path(out)))
        files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not _of_checkpoint(path, folder)]
        return {path.relative_to(folder).as_posix(): bytes_of(path) for path in files}


def _of_checkpoint(path: Path, folder: Path) -> bool:
    return path.relative_to(folder).match(f"{CHECKPOINT}/round-*/*")


def unpack(files: dict[str, bytes], folder: Path) -> None:
    """Write a folder that appears whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with replacing_folder(folder) as pending:
        for name, content in files.items():
            path = pending / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path, content)

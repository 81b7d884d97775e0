"""Runs a scenario, or goes on with a run: opens a fleet, loads the data, has every Plan executed, draws the report."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fedactors import bits
from fedactors.errors import UsageError
from fedactors.fleet.base import Fleet
from fedactors.learning.training_task import ServerExamples, share
from fedactors.own_code.user_errors import user_errors
from fedactors.report.html import write as write_report
from fedactors.run_files.files import METRICS
from fedactors.scenario.model import Scenario, ScenarioLike, as_scenario
from fedactors.simulation.checks.memory_forecast import refuse_too_much
from fedactors.simulation.checks.prepare_task import runs_own_code
from fedactors.simulation.fleet_choice import (
    FleetKind,
    has_centre,
    has_few_vectors,
    open_fleet,
    refuse_engine,
    refuse_idle,
    refuse_lacking,
)
from fedactors.simulation.loaded_data import LoadedRun, clients_data, evaluation_set_of, holdout_of, own_of
from fedactors.simulation.notebook_progress import unasked
from fedactors.simulation.prepare import check_files, prepare
from fedactors.simulation.prepared import Prepared
from fedactors.simulation.progress import Progress
from fedactors.simulation.record.availability_sample import write_windows
from fedactors.simulation.record.code_files import code_changes, code_digests
from fedactors.simulation.record.folder_claims import check_free, new_path
from fedactors.simulation.record.metric_rows import MetricRows
from fedactors.simulation.record.run_folder import RunFolder, check_resumable
from fedactors.simulation.result import Result
from fedactors.simulation.resume.checkpoint import Checkpoint, save
from fedactors.simulation.resume.checkpoint_tensors import refuse_other_tensors
from fedactors.simulation.resume.resume import beginning, past_of, recorded_rows, refuse_others, where_to_go_on
from fedactors.simulation.training_tasks import training_task_of
from fedactors.simulation.trials.own_classes import try_own_classes

if TYPE_CHECKING:
    from fedactors.clock.clock import Clock
    from fedactors.simulation.execution import Execution


@bits.one_thread()
def run(
    scenario: ScenarioLike,
    out: str | Path | None = None,
    *,
    fleet: FleetKind = "ray",
    actors: int | None = None,
    address: str | None = None,
    progress: Progress | None = None,
    report: bool = True,
    stop_after: int | None = None,
) -> Result:
    """Run `scenario` and return its result; the run folder is `out`, by default a new one under runs/.

    What is not a `Scenario` is loaded as by `Scenario.load`: a file, a name, or a mapping.
    `actors` and `address` take the place of those in the scenario's cluster; without `report` no page is drawn; without
    `progress` only a notebook shows any; a run that is to `stop_after` some rounds leaves a checkpoint of that moment.
    Raises UsageError for what the user can mend, FleetError if the fleet fails twice, DivergedError if an update holds
    NaN or Inf.
    """
    began = time.perf_counter()
    shown = progress or unasked()
    scenario = as_scenario(scenario)
    prepared = ready(scenario, address)
    refuse_lacking(scenario.cluster, fleet)
    if out is not None:
        check_free(Path(out))
    with user_errors(), _opened(prepared, fleet, actors, address) as opened:
        _note_bits(scenario, shown)
        data = load(prepared)
        _try_own_code(prepared, data)
        with RunFolder(new_path(scenario.name) if out is None else Path(out), scenario) as folder:
            _note_locks(folder, shown)
            start = beginning(scenario, data)
            save(folder.path, start, None)
            execution = _execution()(prepared, opened, data, folder, shown, start, began)
            result = execution.play(MetricRows(folder.path / METRICS), stop_after)
    _draw(folder.path, prepared, execution.clock, shown, report=report)
    return result


@bits.one_thread()
def resume(
    run: str | Path,
    overrides: Iterable[str] = (),
    *,
    previous: bool = False,
    changed_code: bool = False,
    scenario_folder: str | Path | None = None,
    fleet: FleetKind = "ray",
    actors: int | None = None,
    address: str | None = None,
    progress: Progress | None = None,
    report: bool = True,
    stop_after: int | None = None,
) -> Result:
    """Go on with the run in the folder `run` from its last checkpoint, or from the `previous` one; same bits.

    A run that ended before its first checkpoint starts again. `overrides` may change the scenario's cluster and nothing
    else; with `changed_code`, the user's own files may be others than before. Where these, recordings and data were
    moved, `scenario_folder` is that in which relative paths of the scenario start now. Raises RunFolderError if there
    is no checkpoint, it is damaged, the scenario, data or device type is another one, or the run is still going on; and
    what `run` raises.
    """
    began = time.perf_counter()
    path = Path(run)
    shown = progress or unasked()
    check_resumable(path)
    start, scenario = where_to_go_on(path, overrides, previous=previous, folder=scenario_folder)
    if start:
        start = _with_code_of(scenario, start, path, shown, allowed=changed_code)
    prepared = ready(scenario, address)
    rows = _rows_before(start, prepared, path, shown)
    with user_errors(), _opened(prepared, fleet, actors, address) as opened:
        _note_bits(scenario, shown)
        data = load(prepared)
        now = beginning(scenario, data)
        refuse_others(start or now, now, data, path, shown.note)
        refuse_lacking(scenario.cluster, fleet)
        _try_own_code(prepared, data)
        with RunFolder(path, scenario, start.metrics_bytes if start else 0) as folder:
            _note_locks(folder, shown)
            if start is None:
                save(path, now, None)
            start = replace(start or now, data=now.data)
            execution = _execution()(prepared, opened, data, folder, shown, start, began, past_of(start, path))
            result = execution.play(rows, stop_after)
    _draw(folder.path, prepared, execution.clock, shown, report=report)
    return result


def _with_code_of(
    scenario: Scenario, start: Checkpoint, path: Path, progress: Progress, *, allowed: bool
) -> Checkpoint:
    """Return a checkpoint with the user's files as they are now.

    Raises RunFolderError if they are others than before, and that is not `allowed`.
    """
    changes = code_changes(path, start.code, scenario, allowed=allowed)
    if not changes:
        return start
    progress.note(f"{path}: other code than before, bits may differ: {changes}")
    return replace(start, code=code_digests(scenario))


def _rows_before(start: Checkpoint | None, prepared: Prepared, path: Path, progress: Progress) -> MetricRows:
    """Return the rows of metrics up to a checkpoint; none, and say so, if there is no checkpoint yet."""
    if start is None:
        progress.note(f"{path}: ended before its first checkpoint: it starts again from its scenario")
        return MetricRows(path / METRICS)
    refuse_other_tensors(start, prepared)
    return recorded_rows(path, start)


def ready(scenario: Scenario, address: str | None) -> Prepared:
    """Return the scenario worked out. Raises UsageError for whatever would stop the run at its start."""
    bits.choose(scenario.cluster.bits)
    prepared = prepare(scenario)
    check_files(scenario)
    refuse_idle(prepared)
    refuse_engine(prepared)
    refuse_too_much(prepared, joined=bool(address or scenario.cluster.address))
    return prepared


def _opened(prepared: Prepared, kind: FleetKind, actors: int | None, address: str | None) -> Fleet:
    """Return the fleet of a run; see `open_fleet`. While it starts, what training needs is imported."""
    scenario = prepared.scenario
    threading.Thread(target=_imported, name="imports", daemon=True).start()
    central, few = has_centre(prepared), has_few_vectors(prepared)
    return open_fleet(scenario.cluster, kind, actors, address, scenario.population, central=central, few_vectors=few)


def _note_bits(scenario: Scenario, progress: Progress) -> None:
    """Say so if bits are not as portable as the scenario wants them."""
    if scenario.cluster.bits == "native" or not (late := bits.late()):
        return
    why = "they were used before fedactors was imported" if bits.available() else "the processor has no AVX2"
    progress.note(f"cluster.bits: not portable: {' and '.join(late)} may give other bits than elsewhere ({why})")


def _note_locks(folder: RunFolder, progress: Progress) -> None:
    """Say so if nothing keeps another run out of the folder, or what does may not reach the machine that it is on."""
    if folder.elsewhere:
        progress.note(
            f"{folder.path}: {folder.elsewhere} wrote to this folder and has not noted its end: make sure that it has"
            " ended; some file systems lock within one machine only"
        )
    if not folder.locked:
        where = f"{folder.path}: this file system has no locks"
        progress.note(f"{where}: a second run into this folder would not be noticed")


def _try_own_code(prepared: Prepared, data: LoadedRun) -> None:
    """Raise ScenarioError or DataError if a class, a module, a loss or a metric of the user cannot be used.

    torch is imported if there is any.
    """
    try_own_classes(prepared)
    if not runs_own_code(data.task.model, data.task.metrics):
        return
    from fedactors.simulation.trials.own_code_trial import try_own_code

    try_own_code(prepared, data.task, data.samples, data.evaluation_set)


def _execution() -> type[Execution]:
    """Return the class, imported when it is needed: torch takes seconds, in which others can start."""
    from fedactors.simulation.execution import Execution

    return Execution


def _imported() -> None:
    """Import what is needed later; what cannot be imported is an error where it is needed."""
    with suppress(Exception):
        _execution()


def _draw(folder: Path, prepared: Prepared, clock: Clock, progress: Progress, *, report: bool) -> None:
    """Draw the report, and write what it needs; a run whose figures cannot be drawn is a run all the same."""
    with _told(f"{folder}: when devices were on could not be written", progress):
        write_windows(folder, prepared, clock)
    if report:
        with _told(f"{folder}: the report could not be drawn", progress):
            write_report(folder)


@contextmanager
def _told(what: str, progress: Progress) -> Iterator[None]:
    """Note an exception after saying `what` could not be done; with its lines, if no file and no user is its cause."""
    try:
        yield
    except Exception as error:
        lines = "" if isinstance(error, UsageError | OSError) else f"\n{''.join(traceback.format_exception(error))}"
        progress.note(f"{what}: {type(error).__name__}: {error}{lines.rstrip()}")


def load(prepared: Prepared) -> LoadedRun:
    """Load the data, and assign them to clients and to the server."""
    server = prepared.scenario.server
    data, split, samples = clients_data(prepared)
    own = own_of(prepared, data, split)
    if server.algorithm.centre == "at clients":
        samples = replace(samples, central=ServerExamples(own, server.algorithm.central_work(prepared.setting).batch))
    samples = share(samples, own) if server.algorithm.shares else samples
    return LoadedRun(training_task_of(prepared, holdout_of(prepared, data)), samples, evaluation_set_of(data), own)

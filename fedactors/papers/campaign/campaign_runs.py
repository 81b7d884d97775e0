"""Plays the missing cells of a campaign, the cheapest experiment first, until all are there or the budget is spent."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from fedactors.errors import FedactorsError, UsageError
from fedactors.papers.campaign.campaign_cells import CampaignCell, ExperimentCells, digest
from fedactors.papers.campaign.campaign_costs import CellCosts
from fedactors.papers.campaign.campaign_file import Campaign
from fedactors.papers.campaign.cell_results import maker, note_maker, store
from fedactors.papers.campaign.experiment_results import judge
from fedactors.papers.experiment import DIVERGED, Measures
from fedactors.papers.grid import measures
from fedactors.run_files.files import METRICS, lines_of
from fedactors.run_files.summary_file import summary_of
from fedactors.scenario.model import Scenario
from fedactors.study.run_folders import complete, failure, folder_of, set_aside_if_damaged, set_aside_if_old
from fedactors.study.runs import StudyRun, finished
from fedactors.study.worker_processes import end_when_closed, ends_told
from fedactors.version import ENGINE

Tell = Callable[[str], None]


class PlayedCell(NamedTuple):
    """What came of a cell: measures, or why there are none; neither if the time was up."""

    measures: Measures | None = None
    asked: str = ""  # digest of the scenario, as it was when the run began
    failure: str = ""  # it diverged
    fault: str = ""  # it cannot be run here


class CampaignBudget(NamedTuple):
    """Until when cells are started and run; None for as long as it takes."""

    until: float | None = None

    @property
    def spent(self) -> bool:
        """Whether the time is up."""
        return self.until is not None and time.time() >= self.until

    @property
    def left(self) -> str:
        """What is left, for a person."""
        return "" if self.until is None else f"; {duration(max(0.0, self.until - time.time()))} of the budget left"


def play(
    campaign: Campaign, seconds: float | None, jobs: int, tell: Tell, *, again: bool = False
) -> list[dict[str, Any]]:
    """Run what is missing, `jobs` cells at a time, and return what is known of each experiment.

    A cell whose time is up keeps its checkpoint, and the next call goes on from there. With `again`, results of other
    engines are computed again. Raises KeyboardInterrupt when interrupted; what is done is kept then too.
    """
    budget = CampaignBudget(None if seconds is None else time.time() + seconds)
    known = [ExperimentCells(campaign, entry, again=again) for entry in campaign.entries]
    _tell_state(known, tell)
    costs = CellCosts(campaign.runs, tell)
    if not budget.spent:
        with _executor(jobs) as pool:
            _fill(pool, jobs, known, costs, budget, tell, campaign, again)
    return [said for cells in known if (said := judge(campaign.results, cells))]


def _tell_state(known: Sequence[ExperimentCells], tell: Tell) -> None:
    there = sum(len(cells.found) for cells in known)
    missing = sum(len(cells.missing) for cells in known)
    tell(f"{len(known)} experiments: {there:,} cells have results, {missing:,} are to be run")
    for cells in known:
        for where in cells.changed:
            tell(f"{where}: its scenario has changed since it was run: it is run again")
        other = sorted({result.engine for result in cells.found.values()} - {ENGINE})
        if other:
            tell(
                f"{cells.entry.name}: results of engine {', '.join(other)}, now {ENGINE} (--again computes them again)"
            )


def _fill(
    pool: Executor,
    jobs: int,
    known: Sequence[ExperimentCells],
    costs: CellCosts,
    budget: CampaignBudget,
    tell: Tell,
    campaign: Campaign,
    again: bool,
) -> None:
    """Keep the pool busy."""
    running: dict[Future[PlayedCell], tuple[ExperimentCells, CampaignCell]] = {}
    folders: dict[Future[PlayedCell], Path] = {}
    while not budget.spent or running:
        while len(running) < jobs and not budget.spent:
            chosen = _next(known, costs, set(folders.values()), tell)
            if chosen is None:
                break
            cells, one, seconds = chosen
            tell(f"{one.where}: forecast {duration(seconds)}{budget.left}")
            future = pool.submit(_played, one.work._replace(until=budget.until), again)
            running[future] = cells, one
            folders[future] = _folder(one.work)
        if not running:
            return
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            cells, one = running.pop(future)
            folders.pop(future)
            _take(future.result(), cells, one, tell)
            judge(campaign.results, cells)


def _folder(work: StudyRun) -> Path:
    return folder_of(Scenario.load(work.scenario, work.overrides), work.out)


def _next(
    known: Sequence[ExperimentCells], costs: CellCosts, running: set[Path], tell: Tell
) -> tuple[ExperimentCells, CampaignCell, float] | None:
    """Return the cheapest cell of the experiment that is finished soonest, with its cost; None if none is left.

    Cells whose run is `running`, by its folder, are left out: different cells may have a run in common.
    """
    best: tuple[float, ExperimentCells, CampaignCell, float] | None = None
    for cells in known:
        priced = _priced(cells, costs, tell)
        total = sum(seconds for seconds, _ in priced)
        if best and total >= best[0]:
            continue
        cheapest = sorted(priced, key=lambda pair: pair[0])
        if free := next((pair for pair in cheapest if _folder(pair[1].work) not in running), None):
            best = total, cells, free[1], free[0]
    return best[1:] if best else None


def _priced(cells: ExperimentCells, costs: CellCosts, tell: Tell) -> list[tuple[float, CampaignCell]]:
    """Return the missing cells with their seconds; none if the experiment cannot be run here."""
    if cells.fault:
        return []
    try:
        return [(seconds, cells.of(cell)) for cell, seconds in costs.of(cells)]
    except UsageError as error:
        cells.fault = str(error)
        tell(f"{cells.entry.name}: cannot be run here: {error}")
        return []


def _played(work: StudyRun, again: bool) -> PlayedCell:
    """Run a cell, or go on with it, and return its measures; with `again`, runs of other engines are set aside."""
    try:
        if again:
            set_aside_if_old(_folder(work))
        set_aside_if_damaged(_folder(work))
        asked, folder = digest(work), _noted(work)
        why = failure(folder)
        found = DIVERGED if why else measures(lines_of(folder / METRICS))
    except KeyboardInterrupt:
        if CampaignBudget(work.until).spent:
            return PlayedCell()
        raise
    except FedactorsError as error:
        return PlayedCell(fault=str(error))
    return PlayedCell(found._replace(folder=folder), asked, why)


def _noted(work: StudyRun) -> Path:
    """Return the folder of a cell's run, which says who finished it where that is done here. Raises as `finished`."""
    before, here = complete(_folder(work)), maker()
    folder = finished(work)
    if not before:
        note_maker(folder, here)
    return folder


def _take(played: PlayedCell, cells: ExperimentCells, one: CampaignCell, tell: Tell) -> None:
    """Keep what came of a cell."""
    if played.fault:
        cells.fault = played.fault
        tell(f"{one.where}: cannot be run here: {played.fault}")
    elif played.measures is None:
        tell(f"{one.where}: the time is up; it is gone on with next time")
    else:
        found = one.entry.experiment.of_run(played.measures)
        assert found.folder is not None  # it was run there
        store(one.file, _place(one, played.asked), found.folder, found, played.failure)
        cells.look(one.cell)
        if one.cell.labels not in cells.found:
            tell(f"{one.where}: its scenario has changed while it was run: it is run again")
            return
        took = summary_of(found.folder)["wall_seconds"]
        said = f"diverged: {played.failure}" if played.failure else f"accuracy {found.accuracy:.3f}"
        done = sum(cell.labels in cells.found for cell in cells.wanted)
        tell(f"{one.where}: {said}, {duration(took)}; {done} of {len(cells.wanted)} cells")


def _place(one: CampaignCell, asked: str) -> dict[str, Any]:
    """Return what says which cell a result is of; `asked` is the digest of the scenario that was run."""
    return {
        "experiment": one.entry.name,
        "size": one.entry.size,
        "labels": dict(one.cell.labels),
        "scenario": one.entry.experiment.scenario,
        "overrides": list(one.work.overrides),
        "asked": asked,
    }


@contextmanager
def _executor(jobs: int) -> Iterator[Executor]:
    """Give processes of this machine; with one job, this process."""
    if jobs == 1:
        yield _Here()
        return
    context = get_context("spawn")
    watched, held = context.Pipe(duplex=False)  # workers see its end when this process ends, however it does
    workers = ProcessPoolExecutor(jobs, context, initializer=end_when_closed, initargs=(watched,))
    with ends_told(), workers as pool:
        try:
            yield pool
        finally:
            pool.shutdown(cancel_futures=True)
            held.close()
            watched.close()


class _Here(Executor):
    """Does at once, in this process, what is submitted."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Return what the function returned. Raises what it raises."""
        future: Future[Any] = Future()
        future.set_result(function(*args, **kwargs))
        return future


def duration(seconds: float) -> str:
    """Return seconds as a person reads them: "48 s", "12 min", "3.5 h"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"

"""Runs the cells of a study, all variants of a seed before the next seed: one that is stopped can be compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fedactors.report.terminal_text import span
from fedactors.scenario.model import Scenario
from fedactors.study.run_figures import StudyRow, row
from fedactors.study.run_folders import complete, folder_of, replay_folder, set_aside_if_damaged, set_aside_if_old
from fedactors.study.runs import StudyMachines, StudyRun, played
from fedactors.study.study_cells import SEED, StudyCell, merged


class StudyPace(NamedTuple):
    """How far a study has come, and how many seconds it will still take; None while that is unknown."""

    done: int
    total: int
    left: float | None

    def __str__(self) -> str:
        """Return it as a person reads it."""
        said = f"{self.done} of {self.total} done"
        return f"{said}, about {span(self.left)} left" if self.left else said


Tell = Callable[[StudyRow, StudyPace], None]


class StudyInterruptedError(KeyboardInterrupt):
    """A study that was stopped: `found` is what its complete seeds say, `done` of `total` cells had been run."""

    def __init__(self, found: Any, done: int, total: int) -> None:
        super().__init__()
        self.found = found
        self.done = done
        self.total = total


class StudyWork(NamedTuple):
    """Cells of a study, in the order of its tables, and how they are run."""

    scenario: Path
    cells: Sequence[StudyCell]
    out: Path
    changes: tuple[str, ...]
    machines: StudyMachines
    clock_only: bool = False


def run_all(work: StudyWork) -> list[StudyRow]:
    """Return the row of each cell, running what is not there; all scenarios are validated before anything runs.

    Cells that make one scenario, as where one change undoes another, share its run.
    With `clock_only` they are replayed, without training.
    """
    found = dict(run_each(work, lambda row, pace: None))
    return [found[k] for k in range(len(work.cells))]


def run_for(work: StudyWork, tell: Tell, study: Callable[[Sequence[StudyCell], Sequence[StudyRow]], Any]) -> Any:
    """Return what `study` makes of all cells and their rows.

    Raises StudyInterruptedError with what it makes of the seeds whose cells were all run, if the user stops it.
    """
    rows: dict[int, StudyRow] = {}
    try:
        for k, one in run_each(work, tell):
            rows[k] = one
    except KeyboardInterrupt:
        whole = whole_seeds(work.cells, rows)
        if not whole:
            raise
        found = study([work.cells[k] for k in whole], [rows[k] for k in whole])
        raise StudyInterruptedError(found, len(rows), len(work.cells)) from None
    return study(work.cells, [rows[k] for k in range(len(work.cells))])


def whole_seeds(cells: Sequence[StudyCell], rows: Mapping[int, StudyRow]) -> list[int]:
    """Return the positions of the cells whose seed has a row in every cell."""
    missing = {cell.at(SEED) for k, cell in enumerate(cells) if k not in rows}
    return [k for k, cell in enumerate(cells) if cell.at(SEED) not in missing]


def run_each(work: StudyWork, tell: Tell) -> Iterator[tuple[int, StudyRow]]:
    """Yield the position and the row of each cell, seed by seed."""
    work.machines.check()
    if work.clock_only:
        work.machines.refuse_training()
    runs = _runs(work)
    folders = [folder_of(Scenario.load(one.scenario, one.overrides), work.out) for one in runs]
    order = by_seed(work.cells)
    once = dict[Path, StudyRun]()
    for k in order:
        once.setdefault(folders[k], runs[k])  # cells may have a run in common
    _set_aside(once, clock_only=work.clock_only)
    missing = {folder for folder in once if not complete(replay_folder(folder) if work.clock_only else folder)}
    paths = played(list(once.values()), work.machines)
    began = time.monotonic()
    done: dict[Path, Path] = {}
    for number, k in enumerate(order, 1):
        folder = folders[k]
        done[folder] = done.get(folder) or next(paths)
        one = row(work.cells[k], done[folder])
        yield k, one
        left = _left(time.monotonic() - began, len(missing & done.keys()), len(missing))
        tell(one, StudyPace(number, len(order), left))


def _set_aside(folders: Iterable[Path], *, clock_only: bool) -> None:
    """Set runs aside that are there and cannot stand in tables: made with another engine, or damaged."""
    for folder in folders:
        set_aside_if_damaged(replay_folder(folder) if clock_only else folder)
        if not clock_only:  # a replay notes no engine
            set_aside_if_old(folder)


def _runs(work: StudyWork) -> list[StudyRun]:
    """Return the run of each cell."""
    groups = [name for name, _ in Scenario.load(work.scenario, work.changes).groups]
    changes = [merged(work.changes, cell, groups) for cell in work.cells]
    return [StudyRun(work.scenario, one, work.out, work.clock_only) for one in changes]


def _left(seconds: float, done: int, total: int) -> float | None:
    """Return how many seconds runs still take, of which `done` took so many; None if there is none yet."""
    return seconds / done * (total - done) if done else None


def by_seed(cells: Sequence[StudyCell]) -> list[int]:
    """Return the positions of cells, all of the first seed before those of the second."""
    seeds = list(dict.fromkeys(cell.at(SEED) for cell in cells))
    return sorted(range(len(cells)), key=lambda k: seeds.index(cells[k].at(SEED)))

"""Which cells of an experiment are needed: all, or where axes are tuned, those of the labels that win with one seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedactors.papers.experiment import Experiment, Label, Measures, ResultTable
from fedactors.study.study_cells import SEED, StudyCell

Labels = tuple[tuple[str, Label], ...]


def wanted(experiment: Experiment, found: Mapping[Labels, Measures]) -> list[StudyCell]:
    """Return the cells that are needed, as far as what was `found` of some, by their labels, says.

    Where axes are tuned: all cells with the first seed, and once they are found, the best ones with the others.
    """
    if not experiment.tuned:
        return list(experiment.cells())
    first = list(experiment.cells(experiment.seeds[:1]))
    best = _best(experiment, found)
    if best is None or not experiment.seeds[1:]:
        return first
    return first + [cell for cell in experiment.cells(experiment.seeds[1:]) if place(cell.labels) in best]


def table_of(experiment: Experiment, found: Mapping[Labels, Measures], seeds: Sequence[int]) -> ResultTable:
    """Return the table of the wanted cells with these seeds, all of them found: where axes are tuned, the best ones."""
    cells = [cell for cell in wanted(experiment, found) if cell.at(SEED) in seeds]
    best = (_best(experiment, found) or set()) if experiment.tuned else {place(cell.labels) for cell in cells}
    return experiment.table([(dict(cell.labels), found[cell.labels]) for cell in cells if place(cell.labels) in best])


def place(labels: Labels) -> Labels:
    """Return the labels without the seed."""
    return tuple((axis, label) for axis, label in labels if axis != SEED)


def _best(experiment: Experiment, found: Mapping[Labels, Measures]) -> set[Labels] | None:
    """Return the places that win with the first seed; None while a result is missing."""
    first = [cell.labels for cell in experiment.cells(experiment.seeds[:1])]
    if any(labels not in found for labels in first):
        return None
    return {tuple(best.items()) for best in experiment.best([(dict(labels), found[labels]) for labels in first])}

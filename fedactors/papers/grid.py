"""Runs the cells of an experiment, and keeps of each run what the papers measure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from fedactors.papers.experiment import DIVERGED, EVALUATED, Evaluation, Experiment, Measures, ResultTable
from fedactors.papers.wanted_cells import Labels, table_of, wanted
from fedactors.run_files.files import METRICS, lines_of
from fedactors.scenario.model import Scenario
from fedactors.simulation.record.learning_curve import WINDOW, summary
from fedactors.study.run_folders import failure, folder_of, set_aside_if_damaged
from fedactors.study.runs import StudyRun, finished
from fedactors.study.study_cells import StudyCell
from fedactors.study.worker_processes import each

_HALF_WAY = ("loss", "spreadout")  # kept of the last evaluation in the first half of the rounds

Tell = Callable[[StudyCell, Measures], None]


def play(
    experiment: Experiment, scenarios: Path, out: Path, jobs: int, tell: Tell, overrides: Iterable[str]
) -> ResultTable:
    """Run every cell, `jobs` at a time, and return the table; `tell` is called for each result in the cells' order.

    Where axes are tuned, all their labels are run with the first seed and the best ones with the others; the table
    holds those. `overrides` change the scenario of all cells. Raises what loading and running raise.
    """
    path, more = scenarios / experiment.scenario, tuple(overrides)

    found: dict[Labels, Measures] = {}
    while cells := [cell for cell in wanted(experiment, found) if cell.labels not in found]:
        work = [StudyRun(path, (*cell.overrides, *more), out) for cell in cells]
        for cell, run in zip(cells, each(measured, work, jobs), strict=True):
            found[cell.labels] = experiment.of_run(run)
            tell(cell, found[cell.labels])
    return table_of(experiment, found, experiment.seeds)


def measured(work: StudyRun) -> Measures:
    """Return the measures of one run, from its folder if it is complete and whole, else by running it there.

    Those of a run that diverged are the worst possible ones.
    """
    set_aside_if_damaged(folder_of(Scenario.load(work.scenario, work.overrides), work.out))
    folder = finished(work)
    if failure(folder):
        return DIVERGED
    return measures(lines_of(folder / METRICS))._replace(folder=folder)


def measures(rows: Sequence[Mapping[str, Any]]) -> Measures:
    """Return the measures of a run from the rows of its metrics."""
    curve = summary(rows)
    assert curve is not None  # the last round is always evaluated
    apart = [row for row in rows if "xi2" in row]
    return Measures(
        accuracy=curve["rolling_accuracy"],
        t90=curve["rise_round"],
        t50=curve["rounds_to_half"],
        sd20=curve["last_deviation"],
        xi2=sum(row["xi2"] for row in apart) / len(apart) if apart else None,
        g2=sum(row["g2"] for row in apart) / len(apart) if apart else None,
        wall=rows[-1]["wall_seconds"],
        curve=tuple(Evaluation(row["round"], row["accuracy"], row["loss"]) for row in rows if "accuracy" in row),
        further=_further(rows),
    )


def _further(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return means over the last 20 rounds of what was measured, the deviation of the loss, and peaks of G~^2 and B~^2.

    The peaks are over the rounds 10 to 100, as Augenstein et al. have them.
    """
    last = [row for row in rows[-WINDOW:] if "loss" in row]
    found = _evaluated_means(last)
    found |= _half_way(rows)
    found["loss_sd"] = pstdev(row["loss"] for row in last)
    for name in ("gt2", "bt2"):
        if peaks := _evaluated_early(rows, name):
            found[f"max_{name}"] = max(peaks)
    return found


def _half_way(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return what the last evaluation in the first half of the rounds found; nothing if there was none."""
    half = [row for row in rows[: max(1, len(rows) // 2)] if "loss" in row]
    return {f"half_{name}": float(half[-1][name]) for name in _HALF_WAY if half and name in half[-1]}


def _evaluated_means(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the mean of each quantity that the last of `rows` has, over the rows that have it."""
    names = [name for name in rows[-1] if name.endswith(EVALUATED)]
    return {name: fmean(row[name] for row in rows if name in row) for name in names}


def _evaluated_early(rows: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    """Return the values of `name` in the rounds 10 to 100."""
    return [row[name] for row in rows if row.get(name) is not None and 10 <= row["round"] <= 100]

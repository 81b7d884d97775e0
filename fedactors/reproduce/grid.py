"""Runs the cells of an experiment, and keeps of each run what the papers measure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from fedactors.errors import DivergedError
from fedactors.reproduce.experiment import Cell, Experiment, Measures, Point, Table
from fedactors.run.learning_curve import summary
from fedactors.study.runs import Work, each, failure, finished

Tell = Callable[[Cell, Measures], None]


def play(experiment: Experiment, scenarios: Path, out: Path, jobs: int, tell: Tell, overrides: Iterable[str]) -> Table:
    """Run every cell, `jobs` at a time, and return the table; `tell` hears of each result, in the order of the cells.

    `overrides` change the scenario of all cells. Raises what loading and running raise.
    """
    path, cells, more = scenarios / experiment.scenario, list(experiment.cells()), tuple(overrides)
    work = [Work(path, (*cell.overrides, *more), out) for cell in cells]
    rows = []
    for cell, found in zip(cells, each(measured, work, jobs), strict=True):
        tell(cell, found)
        rows.append((dict(cell.labels), found))
    return Table(rows)


def measured(work: Work) -> Measures:
    """Return the measures of one run, from its folder if it is complete, else by running it there."""
    folder = finished(work)
    if why := failure(folder):
        raise DivergedError(why)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return measures(rows)


def measures(rows: list[Mapping[str, Any]]) -> Measures:
    """Return the measures of a run from the rows of its metrics."""
    curve = summary(rows)
    assert curve is not None  # the last round is always evaluated
    apart = [row for row in rows if "xi2" in row]
    return Measures(
        curve["rolling_accuracy"],
        curve["rise_round"],
        curve["rounds_to_half"],
        curve["last_deviation"],
        sum(row["xi2"] for row in apart) / len(apart) if apart else None,
        sum(row["g2"] for row in apart) / len(apart) if apart else None,
        rows[-1]["wall_seconds"],
        tuple(Point(row["round"], row["accuracy"], row["loss"]) for row in rows if "accuracy" in row),
    )

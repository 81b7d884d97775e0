"""Runs the cells of an experiment, each an ordinary run in a folder of its own; what is done is not done again."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from fedactors.reproduce.experiment import Cell, Experiment, Measures, Table
from fedactors.run.learning_curve import summary
from fedactors.scenario.model import Scenario

Tell = Callable[[Cell, Measures], None]


def play(experiment: Experiment, scenarios: Path, out: Path, jobs: int, tell: Tell, overrides: Iterable[str]) -> Table:
    """Run every cell, `jobs` at a time, and return the table; `tell` hears of each result, in the order of the cells.

    `overrides` change the scenario of all cells. Raises what loading and running raise.
    """
    path, cells, more = scenarios / experiment.scenario, list(experiment.cells()), tuple(overrides)
    work = [(path, (*cell.overrides, *more), out) for cell in cells]
    rows = []
    for cell, measures in zip(cells, _results(work, jobs), strict=True):
        tell(cell, measures)
        rows.append((dict(cell.labels), measures))
    return Table(rows)


def _results(work: list[tuple[Path, tuple[str, ...], Path]], jobs: int) -> Iterator[Measures]:
    if jobs == 1:
        yield from (measured(*one) for one in work)
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        futures = [pool.submit(measured, *one) for one in work]
        try:
            for future in futures:
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def measured(path: Path, overrides: tuple[str, ...], out: Path) -> Measures:
    """Return the measures of one run, from its folder under `out` if it is complete, else by running it there."""
    scenario = Scenario.load(path, overrides)
    folder = out / f"run-{_key(scenario)}"
    if not _complete(folder):
        from fedactors.run.conductor import run

        run(scenario, _fresh(folder), fleet="local", report=False)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return measures(rows)


def _key(scenario: Scenario) -> str:
    """Name what is run; experiments that have a run in common share it, whatever they call it."""
    said = {key: value for key, value in scenario.dump().items() if key not in ("name", "cluster")}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]


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
    )


def _complete(folder: Path) -> bool:
    written = folder / "summary.json"
    return written.exists() and json.loads(written.read_text())["ended_because"] == "all rounds done"


def _fresh(folder: Path) -> Path:
    """Set an unfinished run aside and return the folder's path."""
    number = 0
    while folder.exists():
        number += 1
        aside = folder.with_name(f"{folder.name}.unfinished-{number}")
        if not aside.exists():
            folder.rename(aside)
    return folder

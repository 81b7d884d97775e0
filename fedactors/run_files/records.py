"""Reads a run folder back, whole or interrupted, into plain frozen data.

A file that was never written gives empty data; a file that cannot be read is an error that names the file and line.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedactors.metric_names import VALIDATION, chooser, higher_is_better, without_part
from fedactors.plan import Outcome
from fedactors.run_files.files import (
    FAULTS,
    METRICS,
    SCENARIO,
    SUMMARY,
    damaged,
    objects_in,
    problem,
    scenario_text,
    whole_lines,
    yaml_of,
)
from fedactors.run_files.summary_file import summary_of
from fedactors.run_files.tables import ORDER_COLUMNS, columns_of

Column = NDArray[Any]
Table = Mapping[str, Column]
Move = tuple[int, Mapping[str, Any]]  # row of metrics, and an arrival or a departure that the objective has answered

OUTCOMES = tuple(outcome.value for outcome in Outcome)
_MARKS = (SCENARIO, METRICS, SUMMARY)
_STUDY_PAGES = ("comparison.html", "sweep.html")
_PLAN_COLUMNS = ("version", "opened", "closed", "ready", "asked", "heard")
_FIGURES = (
    "round", "virtual_seconds", "wall_seconds", "asked", "heard", "steps", "bytes_down", "bytes_up",
    "accuracy", "loss", "validation_accuracy", "validation_loss", "train_loss", "joules", "cost", "epsilon",
    "client_accuracy", "client_accuracy_worst", "client_accuracy_variance",
)  # fmt: skip
AT_CLIENTS = "client_accuracy_of/"  # before the name of a group: the mean accuracy at its clients


@dataclass(frozen=True)
class DeviceGroup:
    """Devices of one kind; their ids are consecutive."""

    name: str
    count: int


@dataclass(frozen=True)
class Records:
    """What a run folder holds.

    `metrics` has one float64 column per figure, NaN where a row lacks it, and one column per outcome, none of which may
    be changed. `plans` and
    `orders` have one integer column per field, times in ns; an order's `outcome` is an index into `OUTCOMES`.
    `plans` also counts `arrived` and `departed`. A table that was never completed is empty.
    """

    path: Path
    name: str
    summary: Mapping[str, Any]
    metrics: Table
    plans: Table
    orders: Table
    faults: tuple[Mapping[str, Any], ...] = ()
    scenario: str = ""
    groups: tuple[DeviceGroup, ...] = ()
    missing: tuple[str, ...] = field(default=())
    moves: tuple[Move, ...] = ()
    measures: tuple[str, ...] = ()  # columns of `metrics` that a scenario named, besides accuracy and loss
    directions: Mapping[str, bool] = field(default_factory=dict)
    """Of measures of the user's own: whether higher values are better."""

    def rises(self, column: str) -> bool | None:
        """Return whether higher values of a column of `metrics` are better; None if nothing says so."""
        if column in self.directions:
            return self.directions[column]
        known = higher_is_better(column)
        return self.directions.get(without_part(column)) if known is None else known

    @property
    def tests_by_seed(self) -> bool:
        """Whether a run with another seed may have other test samples: also where the summary says nothing."""
        return self.summary.get("tests_by_seed") is not False

    @property
    def validated(self) -> bool:
        """Whether there are samples for validation, on which models were evaluated beside the test samples."""
        return bool(np.isfinite(self.metrics[f"{VALIDATION}loss"]).any())

    def chooser(self, name: str) -> str:
        """Return the column of `metrics` that a choice by a measure looks at, see `metric_names.chooser`."""
        return chooser(name, self.measures, validated=self.validated)

    def ahead(self, column: str) -> float:
        """Return what was spent before the first round, of a column of `metrics`."""
        found = self.summary.get("ahead")
        value = found.get(column) if isinstance(found, Mapping) else None
        return float(value) if isinstance(value, int | float) else 0.0

    @property
    def rounds(self) -> int:
        """Number of rounds that have a row of metrics."""
        return len(self.metrics["round"])

    @property
    def devices(self) -> int:
        """Size of the population, as far as it is known."""
        seen = int(self.orders["client"].max()) + 1 if len(self.orders["client"]) else 0
        return max(sum(group.count for group in self.groups), int(self.summary.get("devices", 0)), seen)


def read(folder: str | Path, *, tables: bool = True) -> Records:
    """Read a run folder of `run` or `replay`, also one of an interrupted run; without `tables` these stay empty.

    Raises RunFolderError if `folder` is not a run folder, or if a file in it is damaged.
    """
    path = Path(folder)
    check_run_folder(path)
    scenario = scenario_text(path) if (path / SCENARIO).exists() else ""
    resolved = yaml_of(path / SCENARIO, scenario)
    summary = _summary(path)
    named = _named(resolved)
    groups = _groups(resolved)
    metrics, moves = _metrics(path / METRICS, named, groups)
    return Records(
        path=path,
        name=str(summary.get("name") or resolved.get("name") or path.name),
        summary=summary,
        metrics=metrics,
        plans=_table(path / "plans.parquet" if tables else None, _PLAN_COLUMNS, ("arrived", "departed")),
        orders=_table(path / "orders.parquet" if tables else None, ORDER_COLUMNS),
        faults=tuple(_objects(path / FAULTS)),
        scenario=scenario,
        groups=groups,
        missing=tuple(name for name in (SUMMARY, "plans.parquet", "orders.parquet") if not (path / name).exists()),
        moves=moves,
        measures=named,
        directions=_directions(resolved),
    )


def _named(resolved: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the measures in `task.metrics` of a resolved scenario."""
    names = [one.get("name") for one in _wanted(resolved)]
    return tuple(name for name in names if isinstance(name, str) and name not in (*_FIGURES, *OUTCOMES))


def _directions(resolved: Mapping[str, Any]) -> dict[str, bool]:
    """Return what a resolved scenario says of measures of the user's own."""
    said = {one.get("name"): one.get("higher_is_better") for one in _wanted(resolved)}
    return {name: way for name, way in said.items() if isinstance(name, str) and isinstance(way, bool)}


def _wanted(resolved: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the entries of `task.metrics`."""
    task = resolved.get("task")
    metrics = task.get("metrics") if isinstance(task, dict) else None
    return [one for one in metrics if isinstance(one, dict)] if isinstance(metrics, list) else []


def check_run_folder(path: Path) -> None:
    """Raise RunFolderError if `path` is not a run folder."""
    if not path.is_dir():
        found = "a file" if path.exists() else "nothing there"
        raise problem(path, found, "a folder that `fedactors run` or `replay` wrote")
    for inner in path.iterdir():
        if inner.exists() and not (inner.is_file() or inner.is_dir()):  # reading a pipe would never end
            raise problem(inner, "neither a file nor a folder", "what `fedactors run` wrote")
    if not any((path / mark).exists() for mark in _MARKS):
        raise problem(path, f"not a run folder: it holds none of {', '.join(_MARKS)}{_study(path)}")


def _study(path: Path) -> str:
    """Return where the page of a study is, as the end of a sentence; empty if `path` is no study's."""
    page = next((path / name for name in _STUDY_PAGES if (path / name).exists()), None)
    return "" if page is None else f"; it is a study's, whose page is {page}, with runs in folders below it"


def _summary(run: Path) -> dict[str, Any]:
    """Return the summary of a run without what is null; empty if the run has not ended."""
    found = summary_of(run) if (run / SUMMARY).exists() else {}
    return {key: value for key, value in found.items() if value is not None}


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a file, one in each whole line; none if there is no file."""
    if path.exists():
        yield from objects_in(path, whole_lines(path))


def _metrics(path: Path, named: tuple[str, ...], groups: Sequence[DeviceGroup]) -> tuple[Table, tuple[Move, ...]]:
    """Return the columns of metrics, and every arrival and departure that the objective has answered.

    The accuracy at the clients of each of the `groups` is a column under `AT_CLIENTS` and its name.
    """
    by_group = [AT_CLIENTS + group.name for group in groups]
    named = (*named, *(VALIDATION + name for name in named))
    columns = {name: array("d") for name in (*_FIGURES, *named, *OUTCOMES, *by_group)}
    moves: list[Move] = []
    for number, row in enumerate(_objects(path)):
        at_groups = _numbers(path, number + 1, _at_groups(row, by_group))
        for name, value in (*_figures(path, number + 1, row, named), *at_groups):
            columns[name].append(np.nan if value is None else value)
        moves += [(number, move) for move in _moves(row)]
    return {name: _compact(np.array(values, np.float64)) for name, values in columns.items()}, tuple(moves)


def _compact(column: Column) -> Column:
    """Return a column; one of a single value, such as NaN of a figure that no row has, takes no memory for each row."""
    alike = column.view(np.int64)  # equal bits: NaN is not equal to itself
    return np.broadcast_to(column[:1].copy(), column.shape) if len(column) and (alike == alike[0]).all() else column


def _at_groups(row: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    """Return the accuracies at the clients of groups in a row of metrics, by column; None where there is none."""
    found = row.get(AT_CLIENTS[:-1])
    by_group = found if isinstance(found, dict) else {}
    return {column: by_group.get(column.removeprefix(AT_CLIENTS)) for column in columns}


def _moves(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the arrivals and departures in a row of metrics that the objective has answered."""
    found = row.get("moves")
    return [move for move in found if isinstance(move, dict)] if isinstance(found, list) else []


def _figures(
    path: Path, line: int, row: Mapping[str, Any], named: tuple[str, ...]
) -> Iterator[tuple[str, float | None]]:
    """Yield the figures of a row of metrics by name. Raises RunFolderError if one is no number."""
    outcomes = row.get("outcomes", {})
    if not isinstance(outcomes, dict):
        raise problem(path, f"outcomes: found {outcomes}", "a JSON object", line)
    figures = {name: row.get(name) for name in (*_FIGURES, *named)} | {name: outcomes.get(name, 0) for name in OUTCOMES}
    yield from _numbers(path, line, figures)


def _numbers(path: Path, line: int, figures: Mapping[str, Any]) -> Iterator[tuple[str, float | None]]:
    for name, value in figures.items():
        if not isinstance(value, int | float | None):
            raise problem(path, f"{name}: found {value!r}", "a number", line)
        yield name, value


def _table(path: Path | None, columns: tuple[str, ...], lists: tuple[str, ...] = ()) -> Table:
    """Read integer columns, and the lengths of list columns; all empty if the file is not there."""
    if path is None or not path.exists():
        return {name: np.zeros(0, np.int64) for name in (*columns, *lists)}
    import pyarrow.compute as pc

    table = columns_of(path, (*columns, *lists))
    found = {name: _integers(path, table.column(name), name) for name in columns}
    return found | {name: pc.list_value_length(table.column(name)).fill_null(0).to_numpy() for name in lists}


def _integers(path: Path, column: Any, name: str) -> Column:
    import pyarrow as pa
    import pyarrow.compute as pc

    if name == "outcome":
        column = pc.index_in(column.cast(pa.string()), value_set=pa.array(OUTCOMES))
    elif not pa.types.is_integer(column.type):
        raise damaged(path, f"column {name} holds {column.type}", "integers")
    if column.null_count:
        accepted = ", ".join(OUTCOMES) if name == "outcome" else ""
        raise damaged(path, f"{column.null_count} unknown values in column {name}", accepted)
    return np.asarray(column.to_numpy())


def _groups(resolved: Mapping[str, Any]) -> tuple[DeviceGroup, ...]:
    """Return the groups of a resolved scenario; none if it does not look like one."""
    population = resolved.get("population")
    try:
        return tuple(DeviceGroup(str(group["name"]), int(group["count"])) for group in population or ())
    except (TypeError, KeyError, ValueError):
        return ()

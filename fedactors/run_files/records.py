"""Reads a run folder back, whole or interrupted, into plain frozen data.

What was never written is empty here; what was written and cannot be read is an error that names the file and line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedactors.errors import RunFolderError
from fedactors.plan import Order, Outcome
from fedactors.run_files.files import refuse_other_kinds

Column = NDArray[Any]
Table = Mapping[str, Column]

OUTCOMES = tuple(outcome.value for outcome in Outcome)
_MARKS = ("scenario.yaml", "metrics.jsonl", "summary.json")
_PLAN_COLUMNS = ("version", "opened", "closed", "ready", "asked", "heard")
_ORDER_COLUMNS = ("version", *Order._fields)
_FIGURES = (
    "round", "virtual_seconds", "wall_seconds", "asked", "heard", "steps", "bytes_down", "bytes_up",
    "accuracy", "loss", "train_loss", "joules", "cost",
)  # fmt: skip


@dataclass(frozen=True)
class DeviceGroup:
    """Devices of one kind; their ids are consecutive."""

    name: str
    count: int


@dataclass(frozen=True)
class Records:
    """What a run folder holds.

    `metrics` has one float64 column per figure, NaN where a row lacks it, and one column per outcome. `plans` and
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
    moves: tuple[tuple[int, Mapping[str, Any]], ...] = ()  # (row of metrics, arrival or departure that was answered)

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
    refuse_others(path)
    scenario = _text(path / "scenario.yaml")
    resolved = _yaml(path / "scenario.yaml", scenario)
    summary = _summary(path / "summary.json")
    missing = [name for name in ("summary.json", "plans.parquet", "orders.parquet") if not (path / name).exists()]
    return Records(
        path=path,
        name=str(summary.get("name") or resolved.get("name") or path.name),
        summary=summary,
        metrics=_metrics(path / "metrics.jsonl"),
        plans=_table(path / "plans.parquet" if tables else None, _PLAN_COLUMNS, ("arrived", "departed")),
        orders=_table(path / "orders.parquet" if tables else None, _ORDER_COLUMNS),
        faults=tuple(row for _, row in _lines(path / "faults.jsonl")),
        scenario=scenario,
        groups=_groups(resolved),
        missing=tuple(missing),
        moves=tuple(_moves(path / "metrics.jsonl")),
    )


def refuse_others(path: Path) -> None:
    """Raise RunFolderError if `path` is not a run folder."""
    if not path.is_dir():
        found = "a file" if path.exists() else "nothing there"
        raise RunFolderError(f"{path}: {found} (accepted: a folder that `fedactors run` or `replay` wrote)")
    for inner in path.iterdir():
        if not (inner.is_file() or inner.is_dir()):  # reading a pipe would never end
            raise RunFolderError(f"{inner}: neither a file nor a folder (accepted: what `fedactors run` wrote)")
    if not any((path / mark).exists() for mark in _MARKS):
        raise RunFolderError(f"{path}: not a run folder: it holds none of {', '.join(_MARKS)}")


def _text(path: Path) -> str:
    if not path.exists():
        return ""
    refuse_other_kinds(path)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RunFolderError(f"{path}: cannot be read: {error}") from None


def _yaml(path: Path, text: str) -> Mapping[str, Any]:
    import yaml

    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise RunFolderError(f"{path}{where}: damaged: not YAML") from None
    except (ValueError, RecursionError):
        raise RunFolderError(f"{path}: damaged: not YAML that a run has written") from None
    return found if isinstance(found, dict) else {}


def _summary(path: Path) -> Mapping[str, Any]:
    """Return summary.json, or nothing if there is none; what a report computes with are numbers."""
    text = _text(path)
    if not text:
        return {}
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise RunFolderError(f"{path}, line {error.lineno}: damaged: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise RunFolderError(f"{path}: damaged: {error}") from None
    if not isinstance(found, dict):
        raise RunFolderError(f"{path}: damaged: found a {type(found).__name__} (accepted: a JSON object)")
    for key, value in _numbers_of(found):
        if not isinstance(value, int | float | None):
            raise RunFolderError(f"{path}: {key}: found {value!r} (accepted: a number)")
    return {key: value for key, value in found.items() if value is not None}


def _numbers_of(summary: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key in ("devices", "virtual_seconds", "wall_seconds"):
        yield key, summary.get(key)
    for key in ("final", "outcomes", "bytes"):
        part = summary.get(key)
        if isinstance(part, dict):
            yield from ((f"{key}.{name}", value) for name, value in part.items())


def _lines(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield (line number, object); a last line that was cut off while it was written is left out."""
    if not path.exists():
        return
    refuse_other_kinds(path)
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                if not line.endswith("\n"):
                    return
                raise RunFolderError(f"{path}, line {number}: damaged: {error.msg}") from None
            except (ValueError, RecursionError) as error:
                raise RunFolderError(f"{path}, line {number}: damaged: {error}") from None
            if not isinstance(row, dict):
                raise RunFolderError(f"{path}, line {number}: found {line.strip()[:40]} (accepted: a JSON object)")
            yield number, row


def _metrics(path: Path) -> Table:
    columns: dict[str, list[float]] = {name: [] for name in (*_FIGURES, *OUTCOMES)}
    for number, row in _lines(path):
        outcomes = row.get("outcomes", {})
        if not isinstance(outcomes, dict):
            raise RunFolderError(f"{path}, line {number}: outcomes: found {outcomes} (accepted: a JSON object)")
        figures = {name: row.get(name) for name in _FIGURES} | {name: outcomes.get(name, 0) for name in OUTCOMES}
        for name, value in figures.items():
            if not isinstance(value, int | float | None):
                raise RunFolderError(f"{path}, line {number}: {name}: found {value!r} (accepted: a number)")
            columns[name].append(np.nan if value is None else value)
    return {name: np.array(values, np.float64) for name, values in columns.items()}


def _moves(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield (row, move) of every arrival and departure that the objective has answered."""
    if not path.exists() or b'"moves"' not in path.read_bytes():
        return
    for row, (_, line) in enumerate(_lines(path)):
        found = line.get("moves")
        for move in found if isinstance(found, list) else ():
            if isinstance(move, dict):
                yield row, move


def _table(path: Path | None, columns: tuple[str, ...], lists: tuple[str, ...] = ()) -> Table:
    """Read integer columns, and the lengths of list columns; all empty if the file is not there."""
    if path is None or not path.exists():
        return {name: np.zeros(0, np.int64) for name in (*columns, *lists)}
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            absent = [name for name in (*columns, *lists) if name not in file.schema_arrow.names]
            if absent:
                raise RunFolderError(f"{path}: damaged: no column {', '.join(absent)}")
            table = file.read(columns=[*columns, *lists])
    except (pa.ArrowException, OSError) as error:
        raise RunFolderError(f"{path}: damaged: {str(error).splitlines()[0]}") from None
    found = {name: _integers(path, table.column(name), name) for name in columns}
    return found | {name: pc.list_value_length(table.column(name)).fill_null(0).to_numpy() for name in lists}


def _integers(path: Path, column: Any, name: str) -> Column:
    import pyarrow as pa
    import pyarrow.compute as pc

    if name == "outcome":
        column = pc.index_in(column.cast(pa.string()), value_set=pa.array(OUTCOMES))
    elif not pa.types.is_integer(column.type):
        raise RunFolderError(f"{path}: damaged: column {name} holds {column.type} (accepted: integers)")
    if column.null_count:
        accepted = f" (accepted: {', '.join(OUTCOMES)})" if name == "outcome" else ""
        raise RunFolderError(f"{path}: damaged: {column.null_count} unknown values in column {name}{accepted}")
    return np.asarray(column.to_numpy())


def _groups(resolved: Mapping[str, Any]) -> tuple[DeviceGroup, ...]:
    """Return the groups of a resolved scenario; none if it does not look like one."""
    population = resolved.get("population")
    try:
        return tuple(DeviceGroup(str(group["name"]), int(group["count"])) for group in population or ())
    except (TypeError, KeyError, ValueError):
        return ()

"""A run folder: everything a report needs, in formats that are read without fedactors.

    scenario.yaml                  the scenario, every default shown
    plans.parquet, orders.parquet  one row per aggregation; one row per client asked
    metrics.jsonl                  one line per aggregation: outcomes, bytes, train loss, accuracy, loss
    faults.jsonl                   real faults that were met and mended
    checkpoint/model.safetensors   the server's state
    summary.json                   totals, final figures, digests
    report.html                    all of it as one page, which opens without a network

Files are written to the side and renamed, so that a reader never meets half of one; metrics and faults are appended
line by line, so that a run can be followed.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from datetime import datetime
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

import numpy as np
import yaml
from numpy.typing import NDArray

from fedactors.errors import RunFolderError
from fedactors.plan import Order, Plan
from fedactors.scenario.model import Scenario

_NOT_EMPTY = "not empty (accepted: a new folder, or an empty one)"
_ROWS_AT_ONCE = 50_000
_PLAN_COLUMNS = ("version", "opened", "closed", "ready", "asked", "heard", "arrived", "departed")
_ORDER_COLUMNS = ("version", *Order._fields)


class RunFolder:
    """The folder of a new run. Raises RunFolderError if it cannot be made or already holds something."""

    def __init__(self, path: Path, scenario: Scenario) -> None:
        self.path = path
        try:
            check_free(path)
            path.mkdir(parents=True, exist_ok=True)
            # "x" makes the claim exclusive: of two runs that begin at once, one is refused
            self._metrics: TextIO = (path / "metrics.jsonl").open("x", encoding="utf-8")
            write(path / "scenario.yaml", yaml.safe_dump(scenario.dump(), sort_keys=False, allow_unicode=True))
        except FileExistsError:
            raise RunFolderError(f"{path}: {_NOT_EMPTY}") from None
        except OSError as error:
            raise RunFolderError(f"{path}: cannot be written: {error.strerror}") from None
        self._plans = _Table(path / "plans.parquet", _PLAN_COLUMNS)
        self._orders = _Table(path / "orders.parquet", _ORDER_COLUMNS)

    def plan(self, plan: Plan) -> None:
        """Write down a plan and its orders."""
        heard = sum(order.heard for order in plan.orders)
        moves = (list(plan.arrived), list(plan.departed))
        self._plans.add((plan.version, plan.opened, plan.closed, plan.ready, len(plan.orders), heard, *moves))
        for order in plan.orders:
            self._orders.add((plan.version, *order))

    def metrics(self, row: Mapping[str, Any]) -> None:
        """Append a line of metrics."""
        self._metrics.write(json.dumps({key: _finite(value) for key, value in row.items()}) + "\n")
        self._metrics.flush()

    def fault(self, row: Mapping[str, Any]) -> None:
        """Append a line about a fault that was met."""
        with (self.path / "faults.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def model(self, state: Mapping[str, NDArray[np.float32]]) -> None:
        """Write the server's state."""
        from safetensors.numpy import save

        folder = self.path / "checkpoint"
        folder.mkdir(exist_ok=True)
        write(folder / "model.safetensors", save({name: np.ascontiguousarray(v) for name, v in state.items()}))

    def summary(self, summary: Mapping[str, Any]) -> None:
        """Write summary.json."""
        write(self.path / "summary.json", json.dumps(summary, indent=2) + "\n")

    def close(self) -> None:
        """Complete the tables."""
        self._metrics.close()
        self._plans.close()
        self._orders.close()

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Table:
    """A Parquet file that grows by rows and appears when it is complete."""

    def __init__(self, path: Path, columns: tuple[str, ...]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._path, self._pending = path, path.with_name(f".{path.name}.part")
        kinds = {"outcome": pa.dictionary(pa.int8(), pa.string()), "arrived": pa.list_(pa.int64())}
        kinds["departed"] = kinds["arrived"]
        self._schema = pa.schema([(name, kinds.get(name, pa.int64())) for name in columns])
        self._writer = pq.ParquetWriter(self._pending, self._schema)
        self._rows: list[tuple[Any, ...]] = []

    def add(self, row: tuple[Any, ...]) -> None:
        self._rows.append(row)
        if len(self._rows) >= _ROWS_AT_ONCE:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()
        self._pending.replace(self._path)

    def _flush(self) -> None:
        import pyarrow as pa

        if self._rows:
            columns = zip(*self._rows, strict=True)
            arrays = [_array(values, field.type) for values, field in zip(columns, self._schema, strict=True)]
            self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        self._rows = []


def _array(values: tuple[Any, ...], kind: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return pa.array([value.value for value in values], pa.string()).dictionary_encode().cast(kind)
    return pa.array(values, kind)


def write(path: Path, content: str | bytes) -> None:
    """Write a file so that it appears whole or not at all."""
    data = content.encode() if isinstance(content, str) else content
    pending = path.with_name(f".{path.name}.part")
    with pending.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    pending.replace(path)


def check_free(path: Path) -> None:
    """Raise RunFolderError if `path` cannot become a run folder: it holds something, or is none and cannot be made."""
    try:
        if path.exists() and any(path.iterdir()):
            raise RunFolderError(f"{path}: {_NOT_EMPTY}")
    except OSError as error:
        raise RunFolderError(f"{path}: cannot be a run folder: {error.strerror}") from None


def new_path(name: str, root: Path = Path("runs")) -> Path:
    """Make an empty folder for a run that starts now: runs/NAME-YYYYMMDD-HHMMSS, with a number if that exists."""
    stem = f"{name}-{datetime.now().strftime('%Y%m%d-%H%M%S')}"
    for number in count():
        path = root / (f"{stem}-{number}" if number else stem)
        try:
            path.mkdir(parents=True)  # of two commands in one second, one makes it and the other goes on
        except FileExistsError:
            continue
        except OSError as error:
            raise RunFolderError(f"{path}: cannot be made: {error.strerror}") from None
        return path
    raise AssertionError("there is always another number")


def _finite(value: Any) -> Any:
    """Return `value` with null in place of numbers that JSON cannot hold."""
    return None if isinstance(value, float) and not math.isfinite(value) else value

"""A run folder: everything a report needs, in formats that are read without fedactors.

    scenario.yaml                  the scenario, every default shown
    plans.parquet, orders.parquet  one row per aggregation; one row per client asked
    clients.parquet                one row per client: its group, and the samples it trains on
    weights.parquet                one row per update that counted
    metrics.jsonl                  one line per aggregation: outcomes, bytes, train loss, accuracy, loss
    faults.jsonl                   real faults that were met and mended
    checkpoint/model.safetensors   the server's state
    checkpoint/round-N/            what the run can be resumed from, see `fedactors.simulation.resume.checkpoint`
    wall.parquet                   when each actor worked, by the wall clock
    windows.parquet                when a sample of the devices was on
    summary.json                   totals, final figures, digests
    report.html                    all of it as one page, which opens without a network

Files are written to the side and renamed, so that a reader never meets half of one; metrics and faults are appended
line by line, so that a run can be followed.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from io import FileIO
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from fedactors.errors import RunFolderError
from fedactors.plan import Plan
from fedactors.run_files.files import refuse_other_kinds
from fedactors.run_files.tables import CLIENT_COLUMNS, ORDER_COLUMNS, PLAN_COLUMNS, WEIGHT_COLUMNS, ParquetTable
from fedactors.scenario.model import Scenario
from fedactors.simulation.prepare import Prepared

METRICS = "metrics.jsonl"
_NOT_EMPTY = "not empty (accepted: a new folder, or an empty one)"


class RunFolder:
    """The folder of a run, claimed by it alone until it is closed.

    Args:
        path: where it is or will be.
        scenario: the run's.
        past: bytes of metrics that a run which goes on keeps; None for a new run.

    Raises RunFolderError if it cannot be made, already holds something, or another process is writing to it.

    """

    def __init__(self, path: Path, scenario: Scenario, past: int | None = None) -> None:
        self.path = path
        try:
            self._metrics: FileIO = _new(path) if past is None else _again(path, past)
            write(path / "scenario.yaml", yaml.safe_dump(scenario.dump(), sort_keys=False, allow_unicode=True))
        except FileExistsError:
            raise RunFolderError(f"{path}: {_NOT_EMPTY}") from None
        except OSError as error:
            raise RunFolderError(f"{path}: cannot be written: {error.strerror}") from None
        self._plans = ParquetTable(path / "plans.parquet", PLAN_COLUMNS)
        self._orders = ParquetTable(path / "orders.parquet", ORDER_COLUMNS)
        self._weights = ParquetTable(path / "weights.parquet", WEIGHT_COLUMNS)

    def metrics_length(self) -> int:
        """Return the bytes of metrics.jsonl written so far."""
        return os.fstat(self._metrics.fileno()).st_size

    def sync(self) -> None:
        """Have the lines written so far reach the disk."""
        os.fsync(self._metrics.fileno())

    def plan(self, plan: Plan) -> None:
        """Write down a plan and its orders."""
        heard = sum(order.heard for order in plan.orders)
        moves = (list(plan.arrived), list(plan.departed))
        self._plans.add((plan.version, plan.opened, plan.closed, plan.ready, len(plan.orders), heard, *moves))
        self._orders.extend((plan.version, *order) for order in plan.orders)

    def weights(self, version: int, weights: Iterable[tuple[int, int, float]]) -> None:
        """Write down what weight updates had: client, the version it started from, weight."""
        self._weights.extend((version, *row) for row in weights)

    def clients(self, prepared: Prepared) -> None:
        """Write down who takes part: group, samples trained on, when each arrives and departs."""
        names = [group.name for group in prepared.scenario.population for _ in range(group.count)]
        people = prepared.population
        table = ParquetTable(self.path / "clients.parquet", CLIENT_COLUMNS)
        for row in zip(count(), names, prepared.held.tolist(), people.arrive.tolist(), people.depart.tolist()):
            table.add(row)
        table.close()

    def metrics(self, row: Mapping[str, Any]) -> None:
        """Append a line of metrics, which is in the file then. Raises OSError if the disk does not take all of it."""
        line = f"{json.dumps(row)}\n".encode()
        while line:  # a disk that fills up takes part of it
            line = line[self._metrics.write(line) :]

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
        self._weights.close()

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def finite(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of metrics with null in place of numbers that JSON cannot hold."""
    return {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()}


def write(path: Path, content: str | bytes) -> None:
    """Write a file so that it appears whole or not at all."""
    data = content.encode() if isinstance(content, str) else content
    pending = path.with_name(f".{path.name}.part")
    with pending.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    pending.replace(path)


def _new(path: Path) -> FileIO:
    """Claim a new folder and return its file of metrics. Raises FileExistsError if it is another's."""
    check_free(path)
    path.mkdir(parents=True, exist_ok=True)
    # "x" makes the claim exclusive: of two runs that begin at once, one is refused
    return _claim((path / METRICS).open("xb", buffering=0), path)


def _again(path: Path, past: int) -> FileIO:
    """Claim the folder of a run that goes on and return its file of metrics, cut after `past` bytes."""
    file = _claim((path / METRICS).open("ab", buffering=0), path)
    file.truncate(past)
    _mend(path / "faults.jsonl")
    for stale in ("summary.json", "report.html"):
        (path / stale).unlink(missing_ok=True)
    return file


def check_unclaimed(path: Path) -> None:
    """Raise RunFolderError if another process is writing to the run folder `path`."""
    refuse_other_kinds(path / METRICS)
    if (path / METRICS).exists():
        _claim((path / METRICS).open("ab", buffering=0), path).close()


def _claim(file: FileIO, path: Path) -> FileIO:
    """Hold the folder for as long as this process lives. Raises RunFolderError if another one does."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise RunFolderError(f"{path}: a run is writing to this folder (accepted: wait until it has ended)") from None
    return file


def _mend(path: Path) -> None:
    """Cut off a last line that was not written to its end."""
    refuse_other_kinds(path)
    if path.exists():
        whole = path.read_bytes()
        write(path, whole[: whole.rfind(b"\n") + 1])


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

"""A run folder: everything a report needs, in formats that are read without fedactors.

    scenario.yaml                  the scenario, every default shown
    code/                          copies of the Python files that it names
    plans.parquet, orders.parquet  one row per aggregation; one row per client asked
    clients.parquet                one row per client: its group, and the samples it trains on
    weights.parquet                one row per update that counted
    tiers.parquet                  one row per model that is mixed into one, where edges stand between clients and cloud
    stages.parquet                 one row per client asked: how long it was on in each stage, where that costs energy
    client_metrics.parquet         one row per client evaluated, and client_metrics.jsonl, of which it is made
    metrics.jsonl                  one line per aggregation: outcomes, bytes, train loss, accuracy, loss
    faults.jsonl                   real faults that were met and mended
    ray.log                        what Ray said of them, if it did
    checkpoint/model.safetensors   the server's state
    checkpoint/model.json          which tensors lie one after the other in its `x`
    checkpoint/best.safetensors    the same after the best round, where `server.stop` says what is good
    checkpoint/round-N/            what the run can be resumed from, see `fedactors.simulation.resume.checkpoint`
    wall.parquet                   when each actor worked, by the wall clock
    windows.parquet                when a sample of the devices was on
    writer.json                    while a run goes on, or if it ended before its first checkpoint: its process
    trackers.json                  under which ids MLflow or Weights & Biases know the run, if it is logged there
    summary.json                   totals, final figures, digests
    report.html                    all of it as one page, which opens without a network

Files are written under other names and renamed, so that a reader never meets half of one; metrics and faults are
appended line by line, so that a run can be followed. See `fedactors.run_files.writing`. The summary is written after
the tables: where it is, they are. Of a run, windows.parquet and report.html follow the summary.
"""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from io import FileIO
from itertools import count
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedactors.plan import Int64, Plan
from fedactors.run_files import client_metrics
from fedactors.run_files.best_model import BEST
from fedactors.run_files.files import CHECKPOINT, FAULTS, METRICS, RAY_LOG, SCENARIO, STAGES, SUMMARY, TIERS, bytes_of
from fedactors.run_files.tables import (
    CLIENT_COLUMNS,
    ORDER_COLUMNS,
    PLAN_COLUMNS,
    STAGE_COLUMNS,
    TIER_COLUMNS,
    WEIGHT_COLUMNS,
    ParquetTable,
)
from fedactors.run_files.tier_table import rows_of_tier
from fedactors.run_files.writer_note import note_writer, writer_elsewhere
from fedactors.run_files.writing import (
    appending,
    inner_folder,
    refuse_folder,
    refuse_linked,
    sync_folder,
    writable,
    write,
    write_all,
)
from fedactors.scenario.model import Scenario
from fedactors.scenario.yaml_text import written
from fedactors.simulation.prepared import Prepared
from fedactors.simulation.record.code_files import write_code
from fedactors.simulation.record.folder_claims import claim, claim_new, leave, new_metrics
from fedactors.simulation.record.taken_folder import taken

_NOTHING: Mapping[str, NDArray[np.float64]] = MappingProxyType({})
_OF_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO)
_MODEL = f"{CHECKPOINT}/model.safetensors"
_AT_THE_END = (
    "plans.parquet", "orders.parquet", "weights.parquet", STAGES, TIERS, client_metrics.TABLE, "wall.parquet",
    "windows.parquet", SUMMARY, "report.html",
)  # fmt: skip
_WRITTEN = (SCENARIO, "clients.parquet", _MODEL, f"{CHECKPOINT}/model.json", BEST, *_AT_THE_END)


class RunFolder:
    """The folder of a run, claimed by it alone until it is closed.

    Args:
        path: where it is or will be.
        scenario: the run's.
        past: bytes of metrics that a run which goes on keeps; None for a new run. What is there stays as it is until
            `begin`.
        replays: whether nothing is trained.

    Raises RunFolderError if it cannot be made, already holds something, or another process is writing to it; that is
    not known where the file system has no locks (`locked`), or locks within one machine only (`elsewhere`: who wrote to
    it on another one and has not noted its end).

    """

    def __init__(self, path: Path, scenario: Scenario, past: int | None = None, *, replays: bool = False) -> None:
        self.path = path
        self._scenario = scenario
        self._past = past
        self._begun = False
        with ExitStack() as held:
            with _writing_to(path):
                new = past is None
                self._metrics: FileIO = held.enter_context(new_metrics(path) if new else appending(path / METRICS))
                self.locked = (claim_new if new else claim)(self._metrics, path)
                held.callback(leave, path)  # before the folder is free for another writer
                self.elsewhere = writer_elsewhere(path)
                note_writer(path, scenario.folder, replays=replays)
            if past is None:
                self.begin()
            self._incomplete = held.enter_context(ExitStack())  # what completes the tables
            self._incomplete.callback(self._tabulate_clients)
            self._plans = self._table("plans.parquet", PLAN_COLUMNS)
            self._orders = self._table("orders.parquet", ORDER_COLUMNS)
            self._stages: ParquetTable | None = None  # where energy depends on them
            self._tiers: ParquetTable | None = None  # where there are edges
            self._weights = self._table("weights.parquet", WEIGHT_COLUMNS)
            self._held = held.pop_all()  # after an error it is left at once

    def begin(self) -> None:
        """Begin to write: what a former end of the run knows of rounds that are cut off is removed."""
        if self._begun:
            return
        self._begun = True
        with _writing_to(self.path):
            if self._past is not None:
                _cut(self.path, self._metrics, self._past)
            write(self.path / SCENARIO, written(self._scenario.dump()))
            write_code(self.path, self._scenario)

    def metrics_length(self) -> int:
        """Return the bytes of metrics.jsonl written so far."""
        return os.fstat(self._metrics.fileno()).st_size

    def sync(self) -> None:
        """Have the lines written so far reach the disk."""
        os.fsync(self._metrics.fileno())

    def plan(self, plan: Plan) -> None:
        """Write down a plan and its orders."""
        heard = int(np.count_nonzero(plan.orders.is_heard))
        moves = (list(plan.arrived), list(plan.departed))
        self._plans.add((plan.version, plan.opened, plan.closed, plan.ready, len(plan.orders), heard, *moves))
        self._orders.add_columns(plan.version, *plan.orders.columns)
        if plan.stages is not None:
            self._stages = self._stages or self._table(STAGES, STAGE_COLUMNS)
            self._stages.add_columns(plan.version, plan.orders.client, *plan.stages)
        if plan.tier is not None:
            self._tiers = self._tiers or self._table(TIERS, TIER_COLUMNS)
            self._tiers.extend(rows_of_tier(plan.version, plan.tier))

    def weights(self, version: int, clients: Int64, bases: Int64, weights: NDArray[np.float64]) -> None:
        """Write down what weight updates had: client, the version it started from, weight; each `(updates,)`."""
        self._weights.add_columns(version, clients, bases, weights)

    def clients(self, prepared: Prepared, further: Mapping[str, NDArray[np.float64]] = _NOTHING) -> None:
        """Write down who takes part: group, samples trained on, when each arrives and departs; `further` columns."""
        names = [group.name for group in prepared.scenario.population for _ in range(group.count)]
        people = prepared.population
        columns = [column.tolist() for column in (prepared.held, people.arrive, people.depart, *further.values())]
        with ParquetTable(self.path / "clients.parquet", (*CLIENT_COLUMNS, *further)) as table:
            for row in zip(count(), names, *columns):
                table.add(row)

    def metrics(self, row: Mapping[str, Any]) -> None:
        """Append a line of metrics, which is in the file then. Raises OSError if the disk does not take all of it."""
        write_all(self._metrics, f"{json.dumps(row)}\n".encode())

    def fault(self, row: Mapping[str, Any]) -> None:
        """Append a line about a fault that was met."""
        with appending(self.path / FAULTS) as file:
            write_all(file, f"{json.dumps(row)}\n".encode())

    def ray_log(self, text: str) -> None:
        """Append a message of Ray's."""
        with appending(self.path / RAY_LOG) as file:
            write_all(file, f"{text.rstrip()}\n".encode(errors="backslashreplace"))

    def model(self, state: Mapping[str, NDArray[np.float32]]) -> None:
        """Write the server's state."""
        from safetensors.numpy import save

        inner_folder(self.path / CHECKPOINT)
        write(self.path / _MODEL, save({name: np.ascontiguousarray(v) for name, v in state.items()}))

    def complete(self) -> None:
        """Complete the tables, each once; of a run that has not begun to go on, those that were there stay.

        Raises OSError if the disk does not take one of them, when all have been tried.
        """
        self._incomplete.close()

    def summary(self, summary: Mapping[str, Any]) -> None:
        """Complete the tables, then write summary.json. Raises OSError if the disk does not take all of them."""
        self.complete()
        self.sync()
        write(self.path / SUMMARY, json.dumps(_in_json(summary), indent=2, allow_nan=False) + "\n")

    def close(self) -> None:
        """Complete the tables and leave the folder. Raises as `complete`."""
        self._held.close()

    def _table(self, name: str, columns: tuple[str, ...]) -> ParquetTable:
        """Return a new table of the folder, to be completed at the end."""
        table = ParquetTable(self.path / name, columns)
        self._incomplete.callback(lambda: table.close() if self._begun else table.discard())
        return table

    def _tabulate_clients(self) -> None:
        if self._begun:
            client_metrics.tabulate(self.path)

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _say_where(error, self.path)
        try:
            self.close()
        except OSError as further:
            _say_where(further, self.path)
            raise


def _say_where(error: BaseException | None, path: Path) -> None:
    """Give an error of the disk the folder `path`, if it names no file: those of open files do not."""
    if isinstance(error, OSError) and error.errno in _OF_DISK and error.filename is None:
        error.filename = str(path)


def finite(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of metrics with null in place of numbers that JSON cannot hold."""
    return {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()}


def _in_json(value: Any) -> Any:
    """Return plain data with null in place of numbers that JSON cannot hold."""
    if isinstance(value, Mapping):
        return {key: _in_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_in_json(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cut(path: Path, metrics: FileIO, past: int) -> None:
    """Cut the metrics of the folder `path` after `past` bytes, and remove what was written at a former end.

    The summary is the first to go, for good: it must not stand beside fewer rounds than it counts.
    """
    (path / SUMMARY).unlink(missing_ok=True)
    sync_folder(path)
    metrics.truncate(past)
    _mend(path / FAULTS)
    client_metrics.carry_over(path, path, rounds=bytes_of(path / METRICS).count(b"\n"))
    for stale in _AT_THE_END:
        (path / stale).unlink(missing_ok=True)


@contextmanager
def _writing_to(path: Path) -> Iterator[None]:
    """Translate what the disk says against a folder. Raises FolderAccessError in place of OSError."""
    with writable(path):
        try:
            yield
        except FileExistsError:
            raise taken(path) from None


def check_resumable(path: Path) -> None:
    """Raise RunFolderError if the run folder `path` cannot be written to again.

    That is so if another process is writing to it, or if it holds links or folders where a run writes its files.
    """
    refuse_linked(path / CHECKPOINT)
    for name in _WRITTEN:
        refuse_folder(path / name)
    for name in (METRICS, client_metrics.LINES, FAULTS, RAY_LOG):
        if os.path.lexists(path / name):
            with writable(path / name), appending(path / name) as file:
                claim(file, path)


def _mend(path: Path) -> None:
    """Cut off a last line that was not written to its end."""
    if path.exists():
        whole = bytes_of(path)
        write(path, whole[: whole.rfind(b"\n") + 1])

"""The tables of a run folder: how they are written row by row, and read back as rows, columns or Plans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager, suppress
from itertools import accumulate, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedactors.plan import OUTCOMES, Order, Orders, Outcome, Plan, StageTimes
from fedactors.run_files.column_types import refuse_other_types
from fedactors.run_files.files import damaged, reading
from fedactors.run_files.writing import PendingFile, replacing

_ROWS_AT_ONCE = 10_000  # in a part of the file
_LOOSE = 256  # rows that are kept as Python's objects, half a kilobyte each; as columns they take a sixth of that
PLAN_COLUMNS = ("version", "opened", "closed", "ready", "asked", "heard", "arrived", "departed")
ORDER_COLUMNS = ("version", *Order._fields)
CLIENT_COLUMNS = ("client", "group", "samples", "arrive", "depart")
CLIENT_METRIC_COLUMNS = ("round", "client", "samples")  # and a measure in each further one
ENERGY_COLUMNS = ("joules", "co2_grams")  # of a client, where they are counted, once the run has ended
STAGE_COLUMNS = ("version", "client", *StageTimes._fields)
TIER_COLUMNS = ("version", "edge", "model", "share", "bytes_backhaul", "cloud_round", "edge_round")
WEIGHT_COLUMNS = ("version", "client", "base", "weight")


class ParquetTable:
    """A Parquet file that grows by rows and appears when it is complete; `measures` are more columns, of numbers.

    As a context it is completed at the end, or discarded after an exception.
    """

    def __init__(self, path: Path, columns: tuple[str, ...], measures: tuple[str, ...] = ()) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        names = pa.dictionary(pa.int8(), pa.string())
        moves = pa.list_(pa.int64())
        kinds = {"outcome": names, "group": pa.string(), "arrived": moves, "departed": moves}
        kinds |= dict.fromkeys(("weight", "share", *ENERGY_COLUMNS, *measures), pa.float64())
        self._schema = pa.schema([(name, kinds.get(name, pa.int64())) for name in (*columns, *measures)])
        self._pending = PendingFile(path)
        self._writer = pq.ParquetWriter(self._pending.file, self._schema)
        self._rows: list[tuple[Any, ...]] = []
        self._parts: list[tuple[NDArray[Any], ...]] = []
        self._loose = 0  # rows in those parts
        self._packed: list[Any] = []

    def add(self, row: tuple[Any, ...]) -> None:
        """Append a row; an outcome as its place in OUTCOMES."""
        self.extend([row])

    def extend(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Append rows."""
        self._rows.extend(rows)
        if len(self._rows) >= _LOOSE:
            self._pack()

    def add_columns(self, version: int, *columns: NDArray[Any]) -> None:
        """Append rows of one `version` in columns `(rows,)`; outcomes as indices into OUTCOMES."""
        self._parts.append((np.full(len(columns[0]), version), *columns))
        self._loose += len(columns[0])
        if self._loose >= _LOOSE:
            self._pack()

    def discard(self) -> None:
        """Remove what has been written; a file under its name stays as it was."""
        with suppress(OSError):
            self._writer.close()
        self._pending.discard()

    def close(self) -> None:
        """Complete the file, which appears under its name and stays when the machine fails."""
        try:
            self._pack()
            self._flush()
            self._writer.close()
            self._pending.finish(sync=True)
        except BaseException:
            self._pending.discard()
            raise

    def __enter__(self) -> ParquetTable:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def _pack(self) -> None:
        """Keep the rows as columns."""
        import pyarrow as pa

        columns: list[Any] = list(zip(*self._rows, strict=True))
        if self._loose:
            columns = [np.concatenate(parts) for parts in zip(*self._parts, strict=True)]
        if columns:
            arrays = [_array(values, field.type) for values, field in zip(columns, self._schema, strict=True)]
            self._packed.append(pa.Table.from_arrays(arrays, schema=self._schema))
        self._rows = []
        self._parts = []
        self._loose = 0
        if sum(map(len, self._packed)) >= _ROWS_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        """Write the columns as a part of the file."""
        import pyarrow as pa

        if self._packed:
            self._writer.write_table(pa.concat_tables(self._packed).unify_dictionaries())
        self._packed = []


def _array(values: Sequence[Any], kind: Any) -> Any:
    """Return `values` as an Arrow array; made of buffers, because `pyarrow.array` imports pandas where there is one."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        # those that occur: pandas counts the others as categories of nobody
        codes, places = np.unique(values, return_inverse=True)
        outcomes = _array([OUTCOMES[code].value for code in codes.tolist()], pa.string())
        return pa.DictionaryArray.from_arrays(_array(places.tolist(), pa.int8()), outcomes)
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(_ends(values), _array([one for value in values for one in value], pa.int64()))
    if pa.types.is_string(kind):
        encoded = [value.encode() for value in values]
        buffers = [_ends(encoded).buffers()[1], pa.py_buffer(b"".join(encoded))]
    else:
        buffers = [pa.py_buffer(np.array(values, kind.to_pandas_dtype()))]
    return pa.Array.from_buffers(kind, len(values), [None, *buffers])


def _ends(values: Sequence[Sized]) -> Any:
    """Return where each value begins when they lie one behind the other, and where the last one ends."""
    import pyarrow as pa

    return _array(list(accumulate(map(len, values), initial=0)), pa.int32())


def write_table(path: Path, table: Any) -> None:
    """Write an Arrow table as a Parquet file that appears whole or not at all. Raises as `replacing`."""
    import pyarrow.parquet as pq

    with replacing(path) as file:
        pq.write_table(table, file)


@contextmanager
def _parquet(path: Path, columns: Sequence[str]) -> Iterator[Any]:
    """Open a Parquet file that has `columns`. Raises RunFolderError if it cannot be read, or lacks one of them.

    Arrow's threads are not used: one that still holds a buffer of Python's when the process ends aborts it.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with reading(path) as raw:
        try:
            with pq.ParquetFile(raw) as file:
                absent = [name for name in columns if name not in file.schema_arrow.names]
                if absent:
                    raise damaged(path, f"no column {', '.join(absent)}")
                yield file
        except (pa.ArrowException, OSError, KeyError, ValueError) as error:
            raise damaged(path, (str(error).splitlines() or [type(error).__name__])[0]) from None


def columns_of(path: Path, columns: Sequence[str] = ()) -> Any:
    """Return an Arrow table of some columns, of all if none are named. Raises RunFolderError if it cannot be read."""
    with _parquet(path, columns) as file:
        table = file.read(columns=list(columns) or None, use_threads=False)  # see `_parquet`
        refuse_other_types(path, table, table.column_names)
        return table


def rows_of(path: Path, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table, a part of the file at a time. Raises RunFolderError if it cannot be read."""
    with _parquet(path, columns) as file:
        for batch in file.iter_batches(_ROWS_AT_ONCE, columns=list(columns), use_threads=False):
            refuse_other_types(path, batch, list(columns))
            yield from zip(*(batch.column(name).to_pylist() for name in columns), strict=True)


def plans_of(run: Path) -> Iterator[Plan]:
    """Yield the Plans in a run folder. `oldest` is not in the tables: it is set to the next version.

    Raises RunFolderError if a table cannot be read.
    """
    orders = groupby(rows_of(run / "orders.parquet", ORDER_COLUMNS), key=itemgetter(0))
    held: tuple[int, Orders] | None = None
    for version, opened, closed, ready, _, _, arrived, departed in rows_of(run / "plans.parquet", PLAN_COLUMNS):
        held = held or _next(orders, run)
        mine = Orders.of(())
        if held is not None and held[0] == version:
            mine, held = held[1], None
        yield Plan(version, opened, closed, ready, mine, version + 1, tuple(arrived), tuple(departed))
    if held is not None or next(orders, None) is not None:
        raise damaged(run / "orders.parquet", "orders of a round that plans.parquet does not have")


def _next(orders: Iterator[tuple[Any, Iterator[tuple[Any, ...]]]], run: Path) -> tuple[int, Orders] | None:
    try:
        version, rows = next(orders)
        return version, Orders.of(Order._make((*row[1:5], Outcome(row[5]), *row[6:])) for row in rows)
    except StopIteration:
        return None
    except ValueError as error:
        raise damaged(run / "orders.parquet", str(error)) from None

"""Columns of Parquet files, whoever wrote them: recognised by their names, and times converted by their types.

A time is an int64 in nanoseconds, or in the unit that the column's name states (`on_s`); a duration of any unit; or a
timestamp of any unit, which is a moment of the calendar. Other types are no times.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from fedactors.errors import TraceError
from fedactors.plan import NEVER
from fedactors.traces.source import RecordingFile, shown
from fedactors.traces.timeline import Int64

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}  # ns
_INDEX = "__index_level_0__"  # what pandas adds
TIMES = "int64 in ns, or in the unit of a name such as on_s; a timestamp; a duration"


def is_parquet(data: bytes) -> bool:
    """Whether `data` is Parquet."""
    return data.startswith(b"PAR1")


def names(data: bytes) -> tuple[str, ...]:
    """Return the names of the columns, in lower case; nothing if `data` is no Parquet that can be read."""
    if not is_parquet(data):
        return ()
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = pq.read_schema(pa.BufferReader(data)).names
    except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError):
        return ()
    return tuple(str(name).strip().lower() for name in found if name != _INDEX)


def table(source: RecordingFile, accepted: str) -> pa.Table:
    """Return the whole file, names in lower case, without an index of pandas. Raises TraceError if it is damaged."""
    with _told(source, accepted):
        file = _opened(source)
        found = _checked(file, [name for name in file.schema_arrow.names if name != _INDEX])
        renamed = found.rename_columns([_known(name) for name in found.column_names])
        return renamed.replace_schema_metadata(found.schema.metadata)


def schema(source: RecordingFile, accepted: str) -> pa.Schema:
    """Return names, in lower case, types and metadata of the columns. Raises TraceError if the file is damaged."""
    with _told(source, accepted):
        found = _opened(source).schema_arrow
        renamed = found.empty_table().rename_columns([_known(name) for name in found.names]).schema
        return renamed.with_metadata(found.metadata)


def column(source: RecordingFile, name: str, accepted: str) -> pa.ChunkedArray:
    """Return one column by its name in lower case, the others unread. Raises TraceError if it is damaged or twice."""
    with _told(source, accepted):
        file = _opened(source)
        written = [one for one in file.schema_arrow.names if _known(one) == name]
        if len(written) > 1:
            raise source.error(f'column "{name}"', f"{len(written)} columns of this name", "each column once")
        return _checked(file, written).column(0)


def _opened(source: RecordingFile) -> pq.ParquetFile:
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pq.ParquetFile(pa.BufferReader(source.data), page_checksum_verification=True)


def _checked(file: pq.ParquetFile, written: list[str]) -> pa.Table:
    found = file.read(written, use_threads=False)
    found.validate(full=True)
    return found


def _known(name: object) -> str:
    """Return the name by which a column is known."""
    return str(name).strip().lower()


@contextmanager
def _told(source: RecordingFile, accepted: str) -> Iterator[None]:
    """Turn errors of Arrow into one message."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError) as error:
        if isinstance(error, TraceError):
            raise
        raise source.error("", f"cannot be read as Parquet: {shown(error, 200)}", accepted) from error


def texts(column: pa.ChunkedArray, name: str, source: RecordingFile) -> list[str]:
    """Return a column of text. Raises TraceError if it is something else."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise source.error(f'column "{name}"', f"of type {column.type}", "text")
    result: list[str] = whole(column, name, source).to_pylist()
    return result


def numbers(column: pa.ChunkedArray, name: str, source: RecordingFile) -> Int64:
    """Return a column of whole numbers of any width. Raises TraceError if one is none, or too large."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_duration(kind) and name.endswith("_ns"):
        return times(column, name, None, source)[0]
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise source.error(f'column "{name}"', f"of type {kind}", "whole numbers")
    try:
        return np.asarray(whole(column, name, source).cast(pa.int64()).to_numpy(), np.int64)
    except pa.ArrowException as error:
        raise source.error(f'column "{name}"', shown(error, 120), "whole numbers below 2**63") from error


def times(column: pa.ChunkedArray | pa.Array, name: str, unit: int | None, source: RecordingFile) -> tuple[Int64, bool]:
    """Return a column of times in ns, and whether they are moments of the calendar.

    `unit` is that of its name, in ns. Raises TraceError if its type is no time, or a time is beyond 146 years.
    """
    import pyarrow as pa

    kind = column.type
    calendar = pa.types.is_timestamp(kind)
    if calendar or pa.types.is_duration(kind):
        factor = _UNITS[kind.unit]
    elif pa.types.is_int64(kind) or (pa.types.is_null(kind) and not len(column)):  # lists that are all empty
        factor = unit or 1
    else:
        raise source.error(f'column "{name}"', f"of type {kind}", TIMES)
    values = np.asarray(whole(column, name, source).cast(pa.int64()).to_numpy(), np.int64)
    if len(values) and max(abs(int(values.min())), abs(int(values.max()))) > NEVER // factor:
        raise source.error(f'column "{name}"', "a time out of range", "at most 146 years")
    return values if factor == 1 else values * factor, calendar


def whole(column: pa.ChunkedArray | pa.Array, name: str, source: RecordingFile) -> pa.ChunkedArray | pa.Array:
    """Return `column`. Raises TraceError if a cell is empty."""
    if column.null_count:
        raise source.error(f'column "{name}"', "an empty cell", "a value in every cell")
    return column

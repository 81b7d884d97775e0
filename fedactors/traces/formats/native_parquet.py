"""The Parquet half of our own format: one row per device, its windows as two lists.

Columns: device (text), on, off (lists of times), first, last (times); what a time can be is said in
`parquet_columns`. We write int64 ns, and pages with checksums, so that a flipped bit is an error and not a different
window.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from fedactors.traces import parquet_columns
from fedactors.traces.columns import assemble, from_midnight, windows
from fedactors.traces.csv_cells import timed
from fedactors.traces.source import RecordingFile, RepairLog, device
from fedactors.traces.timeline import Int64, Timeline

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("device", "on", "off", "first", "last")
_KIND = {True: "timeline 1", False: "timeline 1, no time of day"}
_TIMES = COLUMNS[1:]
_ACCEPTED = "Parquet with device text, first, last times, on, off lists of times"


def pack(timeline: Timeline) -> bytes:
    """Return `timeline` as a Parquet file. Raises ValueError if a name is no Unicode text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    starts = pa.array(timeline.starts)
    lists = [pa.LargeListArray.from_arrays(starts, pa.array(column)) for column in (timeline.on, timeline.off)]
    columns = [
        pa.array(timeline.names, pa.string()),
        *lists,
        pa.array(timeline.first),
        pa.array(timeline.last),
    ]
    sink = io.BytesIO()
    table = pa.table(columns, names=list(COLUMNS)).replace_schema_metadata({"fedactors": _KIND[timeline.time_of_day]})
    pq.write_table(table, sink, write_page_checksum=True)
    return sink.getvalue()


def looks_like(data: bytes) -> bool:
    """Whether `data` is Parquet; its columns are checked when it is read."""
    return parquet_columns.is_parquet(data)


def read(source: RecordingFile, repair_log: RepairLog) -> Timeline:
    """Read windows from Parquet; the layout is in docs/traces.md. Raises TraceError if it is damaged."""
    schema = parquet_columns.schema(source, _ACCEPTED)
    found = {timed(name, _TIMES)[0]: name for name in schema.names}
    if missing := [name for name in COLUMNS if name not in found]:
        raise source.error("", f"cannot be read as windows: no column {', '.join(missing)}", _ACCEPTED)

    def column(name: str) -> pa.ChunkedArray:
        return parquet_columns.column(source, found[name], _ACCEPTED)

    names = parquet_columns.texts(column("device"), "device", source)
    lengths, on = _lists(column("on"), found["on"], source)
    others, off = _lists(column("off"), found["off"], source)
    if not np.array_equal(lengths, others):
        raise source.error("", "on and off lists of different lengths", "one off for each on")
    columns = [on, off, *(_times(column(name), found[name], source) for name in ("first", "last"))]
    begin, end, first, last = _from_epoch(columns, source, repair_log)
    row = np.repeat(np.arange(len(names)), lengths)

    def place(k: int) -> str:
        return device(names[int(row[k])])

    told = (schema.metadata or {}).get(b"fedactors", b"").decode("utf-8", "replace")
    recorded = windows(row, begin, end)
    return assemble(names, recorded, (first, last), repair_log, place, time_of_day=told != _KIND[False])


def _lists(column: pa.ChunkedArray, name: str, source: RecordingFile) -> tuple[Int64, tuple[Int64, bool]]:
    """Return how long each list of a column of times is, and all their values as `times` has them."""
    import pyarrow as pa

    kind = column.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        raise source.error(f'column "{name}"', f"of type {kind}", f"a list for each device of {parquet_columns.TIMES}")
    lists = parquet_columns.whole(column, name, source).combine_chunks()
    return lists.value_lengths().to_numpy().astype(np.int64), _times(lists.flatten(), name, source)


def _times(values: pa.ChunkedArray | pa.Array, name: str, source: RecordingFile) -> tuple[Int64, bool]:
    return parquet_columns.times(values, name, timed(name, _TIMES)[1], source)


def _from_epoch(columns: list[tuple[Int64, bool]], source: RecordingFile, repair_log: RepairLog) -> list[Int64]:
    """Return times in ns from the recording's epoch: midnight of its earliest day, if they are of the calendar."""
    calendar = {dated for times, dated in columns if len(times)}
    values = [times for times, _ in columns]
    if len(calendar) > 1:
        raise source.error("", "timestamps beside other times", "on, off, first and last all timestamps, or none")
    return from_midnight(values, repair_log, tick=1) if True in calendar else values

"""The Parquet half of our own format: one row per device, its windows as two lists.

Columns: device (text), on, off (lists of int64 ns), first, last (int64 ns). Pages carry checksums, so that a
flipped bit is an error and not a different window.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from fedactors.traces.columns import assemble, windows
from fedactors.traces.source import RecordingFile, RepairLog, device, shown
from fedactors.traces.timeline import Timeline

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("device", "on", "off", "first", "last")


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
    table = pa.table(columns, names=list(COLUMNS)).replace_schema_metadata({"fedactors": "timeline 1"})
    pq.write_table(table, sink, write_page_checksum=True)
    return sink.getvalue()


def looks_like(data: bytes) -> bool:
    """Whether `data` is Parquet; its columns are checked when it is read."""
    return data.startswith(b"PAR1")


def read(source: RecordingFile, repair_log: RepairLog) -> Timeline:
    """Read our Parquet; the layout is in docs/traces.md. Raises TraceError if it is damaged."""
    table = _table(source)
    names = table["device"].to_pylist()
    on, off = (table[name].combine_chunks() for name in ("on", "off"))
    lengths = on.value_lengths().to_numpy()
    if not np.array_equal(lengths, off.value_lengths().to_numpy()):
        raise source.error("", "on and off lists of different lengths", "one off for each on")
    row = np.repeat(np.arange(len(names)), lengths)
    found = windows(row, on.flatten().to_numpy(), off.flatten().to_numpy())
    seen = tuple(table[name].to_numpy() for name in ("first", "last"))

    def place(k: int) -> str:
        return device(names[int(row[k])])

    return assemble(names, found, seen, repair_log, place)


def _table(source: RecordingFile) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(pa.BufferReader(source.data), page_checksum_verification=True)
        table = file.read(use_threads=False)
        table.validate(full=True)
        lists = pa.large_list(pa.int64())
        wanted = dict(zip(COLUMNS, (pa.string(), lists, lists, pa.int64(), pa.int64()), strict=True))
        columns = [table[name].cast(kind) for name, kind in wanted.items()]
    except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError) as error:
        accepted = "Parquet with device text, first, last int64, on, off lists of int64"
        raise source.error("", f"cannot be read as Parquet: {shown(error, 200)}", accepted) from error
    if any(c.null_count or (k in (1, 2) and c.combine_chunks().flatten().null_count) for k, c in enumerate(columns)):
        raise source.error("", "an empty cell", "a value in every cell")
    return pa.table(columns, names=list(COLUMNS))

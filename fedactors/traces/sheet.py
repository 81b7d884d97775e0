"""Flat columns as CSV or Parquet: what our own formats of rates, device tables and latencies are made of.

A sheet has columns of text and columns of whole numbers from 0 to 2**62, all of one length. Times in a CSV may
have a unit (`90s`). Parquet pages carry checksums.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedactors.plan import NEVER
from fedactors.traces.csv_cells import preface, time
from fedactors.traces.source import RecordingFile, shown
from fedactors.traces.timeline import Int64

_DIGITS = 19


@dataclass(frozen=True, eq=False)
class CsvSheet:
    """Columns by name, texts and numbers, in the order of the file."""

    order: tuple[str, ...]
    texts: Mapping[str, Sequence[str]]
    numbers: Mapping[str, Int64]

    def __len__(self) -> int:
        return len(self.texts[self.order[0]])


def header(data: bytes) -> tuple[str, ...]:
    """Return the column names that a CSV begins with, in lower case; nothing for Parquet."""
    head = data[:65_536].decode("utf-8-sig", "replace")
    line = next((line for line in head.splitlines() if line.strip() and not line.startswith("#")), "")
    return tuple(name.strip().strip('"').lower() for name in line.split(","))


def to_csv(sheet: CsvSheet) -> bytes:
    """Return `sheet` as CSV; texts stand in quotes."""
    columns = [sheet.texts[name] if name in sheet.texts else sheet.numbers[name].tolist() for name in sheet.order]
    text = io.StringIO(newline="")
    text.write(",".join(sheet.order) + "\n")
    csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n").writerows(zip(*columns, strict=True))
    return text.getvalue().encode()


def to_parquet(sheet: CsvSheet, kind: str) -> bytes:
    """Return `sheet` as a Parquet file whose metadata name its `kind`. Raises ValueError if a text is no Unicode."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = [
        pa.array(sheet.texts[name], pa.string()) if name in sheet.texts else pa.array(sheet.numbers[name])
        for name in sheet.order
    ]
    sink = io.BytesIO()
    table = pa.table(columns, names=list(sheet.order)).replace_schema_metadata({"fedactors": kind})
    pq.write_table(table, sink, write_page_checksum=True)
    return sink.getvalue()


def is_parquet(data: bytes, kind: str) -> bool:
    """Whether `data` is a Parquet file of ours of that `kind`."""
    return data.startswith(b"PAR1") and f"fedactors\x18{chr(len(kind))}{kind}".encode() in data[-65_536:]


def parse(source: RecordingFile, texts: Sequence[str], times: Sequence[str] = ()) -> CsvSheet:
    """Return the columns of a CSV or Parquet file; those in `texts` are texts, those in `times` may have units.

    Raises TraceError that names the line of a cell that cannot be read.
    """
    if source.data.startswith(b"PAR1"):
        return _from_parquet(source, texts)
    order, rows = _csv_rows(source)
    columns = {name: [(line, row[k]) for line, row in rows] for k, name in enumerate(order)}
    return CsvSheet(
        order,
        {name: [cell for _, cell in columns[name]] for name in order if name in texts},
        {name: _numbers(cells, name, name in times, source) for name, cells in columns.items() if name not in texts},
    )


def _csv_rows(source: RecordingFile) -> tuple[tuple[str, ...], list[tuple[int, list[str]]]]:
    """Return the header of a CSV and its rows, each with its line."""
    text = source.text()
    skipped, start = preface(text)
    lines = csv.reader(io.StringIO(text[start:], newline=""), strict=True)
    try:
        order = tuple(name.strip().lower() for name in next(lines, []))
        rows = [(skipped + lines.line_num, row) for row in lines if row]
    except csv.Error as error:
        raise source.error(f"line {skipped + lines.line_num}", str(error), "comma-separated values") from error
    _check(order, source)
    for line, row in rows:
        if len(row) != len(order):
            raise source.error(f"line {line}", f"{len(row)} fields", f"{len(order)}, as in the header")
    return order, rows


def _numbers(cells: list[tuple[int, str]], name: str, timed: bool, source: RecordingFile) -> Int64:
    values = []
    for line, cell in cells:
        try:
            values.append(_number(cell.strip(), timed))
        except ValueError:
            accepted = "a whole number >= 0" + (", or a time such as 90s" if timed else "")
            raise source.error(f"line {line}", f"{name} {shown(cell)}", accepted) from None
    return np.array(values, dtype=np.int64)


def _number(cell: str, timed: bool) -> int:
    """Return the number in a cell. Raises ValueError if it is none, or beyond 2**62."""
    if not (cell.isascii() and cell.isdigit() and len(cell) <= _DIGITS):
        value = time(cell) if timed else None
        if value is None:
            raise ValueError(cell)
        return value
    if int(cell) > NEVER:
        raise ValueError(cell)
    return int(cell)


def _from_parquet(source: RecordingFile, texts: Sequence[str]) -> CsvSheet:
    columns = _parquet_columns(source, texts)
    if any(column.null_count for column in columns.values()):
        raise source.error("", "an empty cell", "a value in every cell")
    numbers = {name: column.to_numpy().astype(np.int64) for name, column in columns.items() if name not in texts}
    labels = {name: column.to_pylist() for name, column in columns.items() if name in texts}
    return CsvSheet(tuple(columns), labels, numbers)


def _parquet_columns(source: RecordingFile, texts: Sequence[str]) -> dict[str, Any]:
    """Return the columns of a Parquet file in their order, those in `texts` as texts and the others as int64."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(pa.BufferReader(source.data), page_checksum_verification=True)
        table = file.read(use_threads=False)
        table.validate(full=True)
        order = tuple(str(name) for name in table.column_names)
        _check(order, source)
        kinds = {name: pa.string() if name in texts else pa.int64() for name in order}
        return {name: table[name].cast(kind) for name, kind in kinds.items()}
    except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError) as error:
        raise source.error("", f"cannot be read as Parquet: {shown(error, 200)}", "our own Parquet") from error


def _check(order: tuple[str, ...], source: RecordingFile) -> None:
    if not order or len(set(order)) != len(order):
        raise source.error("line 1", "no columns, or one twice", "a header with each column once")

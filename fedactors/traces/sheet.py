"""Flat columns as CSV or Parquet: what our own formats of rates, device tables and latencies are made of.

A sheet has columns of text and columns of whole numbers from 0 to 2**62, all of one length. Times in a CSV have a
unit (`90s`), or stand in a column whose name states it (`from_s`). Parquet pages carry checksums.
"""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedactors.plan import NEVER
from fedactors.traces import parquet_columns
from fedactors.traces.csv_cells import header, preface, time, timed
from fedactors.traces.source import RecordingFile, shown
from fedactors.traces.timeline import Int64

_DIGITS = 19
_KNOWN = 100_000  # texts of a column that are looked up
_TIMES = ("from", "to")


@dataclass(frozen=True, eq=False)
class CsvSheet:
    """Columns by name, texts and numbers, in the order of the file."""

    order: tuple[str, ...]
    texts: Mapping[str, Sequence[str]]
    numbers: Mapping[str, Int64]

    def __len__(self) -> int:
        return len(self.texts[self.order[0]])


def to_csv(sheet: CsvSheet) -> bytes:
    """Return `sheet` as CSV; texts stand in quotes."""
    columns = [sheet.texts[name] if name in sheet.texts else sheet.numbers[name].tolist() for name in sheet.order]
    for name in sheet.texts[sheet.order[0]]:
        check_name(name)
    text = io.StringIO(newline="")
    timed_order = [f"{name}_ns" if name in _TIMES and name in sheet.numbers else name for name in sheet.order]
    text.write(",".join(timed_order) + "\n")
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


def columns(data: bytes, times: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names of the columns of a CSV or Parquet, those of `times` without the unit they may state."""
    found = parquet_columns.names(data) if parquet_columns.is_parquet(data) else header(data)
    return tuple(timed(name, times)[0] for name in found)


def parse(
    source: RecordingFile, names: Sequence[str], times: Sequence[str] = (), labels: Sequence[str] = ()
) -> CsvSheet:
    """Return the columns of a CSV or Parquet file: names and labels are texts, and times have units.

    Blanks around a name do not count. Raises TraceError that names the line of a cell that cannot be read.
    """
    texts = (*names, *labels)
    if parquet_columns.is_parquet(source.data):
        return _from_parquet(source, texts, times)
    return _from_csv(source, texts, times, stripped=names)


def check_name(name: str) -> None:
    """Refuse a name that a CSV cannot hold. Raises ValueError if it begins or ends with blanks."""
    if name != name.strip():
        raise ValueError(f"the name {shown(name)} begins or ends with a blank (accepted: .parquet)")


class _CsvColumn:
    """One column of a CSV, converted cell by cell: texts, or numbers of eight bytes each."""

    def __init__(self, written: str, name: str, *, stripped: bool, is_text: bool, is_time: bool) -> None:
        self.name = name
        self.is_text = is_text
        self._written = written
        self._stripped = stripped
        self._is_time = is_time
        self._unit = timed(written, _TIMES)[1]
        self.texts: list[str] = []
        self._values = array("q")
        self._known: dict[str, str] = {}  # texts of several rows are kept once
        self._wrong: tuple[int, str, ValueError] | None = None  # line and text of the first cell that is no number

    def add(self, line: int, cell: str) -> None:
        """Convert the next cell; after one that is wrong, none."""
        if self.is_text:
            text = cell.strip() if self._stripped else cell
            self.texts.append(self._known.setdefault(text, text) if len(self._known) < _KNOWN else text)
        elif self._wrong is None:
            try:
                self._values.append(_number(cell.strip(), self._is_time, self._unit))
            except ValueError as error:
                self._wrong = line, cell, error

    def numbers(self, source: RecordingFile) -> Int64:
        """Return the numbers. Raises TraceError that names the line of the first cell that is none."""
        if self._wrong is not None:
            line, cell, error = self._wrong
            raise source.error(f"line {line}", *_wrong(cell, self._written, self._is_time, self._unit, error)) from None
        return np.array(self._values, dtype=np.int64)


def _from_csv(source: RecordingFile, texts: Sequence[str], times: Sequence[str], stripped: Sequence[str]) -> CsvSheet:
    order, rows = _csv_rows(source)
    names = [timed(name, times)[0] for name in order]
    columns = [
        _CsvColumn(written, name, stripped=name in stripped, is_text=name in texts, is_time=name in times)
        for written, name in zip(order, names, strict=True)
    ]
    uneven = _fill(columns, rows)
    _check(tuple(timed(name, _TIMES)[0] for name in order), source)
    if uneven is not None:
        raise source.error(f"line {uneven[0]}", f"{uneven[1]} fields", f"{len(order)}, as in the header")
    return CsvSheet(
        tuple(names),
        {column.name: column.texts for column in columns if column.is_text},
        {column.name: column.numbers(source) for column in columns if not column.is_text},
    )


def _fill(columns: Sequence[_CsvColumn], rows: Iterable[tuple[int, list[str]]]) -> tuple[int, int] | None:
    """Convert all rows; return line and fields of the first that has not one field for each column, if there is one."""
    uneven = None
    for line, row in rows:
        if len(row) == len(columns):
            for column, cell in zip(columns, row, strict=True):
                column.add(line, cell)
        elif uneven is None:
            uneven = line, len(row)
    return uneven


def _csv_rows(source: RecordingFile) -> tuple[tuple[str, ...], Iterator[tuple[int, list[str]]]]:
    """Return the header of a CSV, and an iterator of its rows, each with its line, which raises TraceError."""
    skipped, start = preface(source.text())
    file = io.TextIOWrapper(io.BytesIO(source.data), encoding="utf-8-sig", newline="")
    file.read(start)
    lines = csv.reader(file, strict=True)

    def rows() -> Iterator[list[str]]:
        try:
            yield from lines
        except csv.Error as error:
            raise source.error(f"line {skipped + lines.line_num}", str(error), "comma-separated values") from error

    found = rows()
    order = tuple(name.strip().lower() for name in next(found, []))
    return order, ((skipped + lines.line_num, row) for row in found if row)


def _wrong(cell: str, written: str, is_time: bool, unit: int | None, error: ValueError) -> tuple[str, str]:
    """Return what was found in a cell, and what is accepted there."""
    if not is_time:
        return f"{written} {shown(cell)}", "a whole number >= 0"
    if str(error).endswith("has no unit"):
        return f"{written} {error}", f"a time such as 90s, or a column that states its unit, such as {written}_s"
    return f"{written} {shown(cell)}", "a time such as 90s" + (", or a number in the column's unit" if unit else "")


def _number(cell: str, is_time: bool, unit: int | None) -> int:
    """Return the number in a cell. Raises ValueError if it is none, or beyond 2**62."""
    if is_time:
        value = time(cell, unit)
        if value is None:
            raise ValueError(cell)
        return value
    if not (cell.isascii() and cell.isdigit() and len(cell) <= _DIGITS) or int(cell) > NEVER:
        raise ValueError(cell)
    return int(cell)


def _from_parquet(source: RecordingFile, texts: Sequence[str], times: Sequence[str]) -> CsvSheet:
    table = parquet_columns.table(source, "Parquet of rates, devices or latencies, as docs/traces.md has it")
    written = [timed(name, times) for name in table.column_names]
    order = tuple(name for name, _ in written)
    _check(order, source)
    found = dict(zip(order, table.columns, strict=True))
    of_times = {name: (found[name], unit) for name, unit in written if name in times}
    of_counts = [name for name in order if name not in (*texts, *times)]
    return CsvSheet(
        order,
        {name: parquet_columns.texts(found[name], name, source) for name in order if name in texts},
        {
            **_parquet_times(of_times, source),
            **{name: parquet_columns.numbers(found[name], name, source) for name in of_counts},
        },
    )


def _parquet_times(found: dict[str, tuple[Any, int | None]], source: RecordingFile) -> dict[str, Int64]:
    """Return columns of times; timestamps count from the earliest of them."""
    read = {name: parquet_columns.times(column, name, unit, source) for name, (column, unit) in found.items()}
    dated = [times for times, calendar in read.values() if calendar]
    if len(dated) not in (0, len(read)):
        raise source.error("", "timestamps beside other times", f"{' and '.join(read)} both timestamps, or neither")
    begin = min((int(times.min()) for times in dated if len(times)), default=0)
    return {name: times - begin for name, (times, _) in read.items()}


def _check(order: tuple[str, ...], source: RecordingFile) -> None:
    if not order or len(set(order)) != len(order):
        raise source.error("line 1", "no columns, or one twice", "a header with each column once")

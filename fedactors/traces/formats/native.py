"""Our own interval format, as CSV to write by hand and as Parquet for large fleets; see docs/traces.md.

Reading what was written gives the same Timeline: names, windows, first and last sight. Repairs are not
stored: what was repaired once is whole.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from fedactors.errors import TraceError, suggestion
from fedactors.plan import Time
from fedactors.traces.columns import assemble, windows
from fedactors.traces.csv_cells import preface, time
from fedactors.traces.device_tables import DeviceTable, Matrix
from fedactors.traces.formats import native_parquet, native_sheets
from fedactors.traces.series import Series
from fedactors.traces.source import RecordingFile, RepairLog, device, shown
from fedactors.traces.timeline import Timeline

COLUMNS = ("device", "on", "off", "first", "last")
_NEEDED = COLUMNS[:3]
_TIMES = "whole nanoseconds, or text such as 90s, 2h; at most 146 years"
_PLAIN = re.compile(r"[\w .:@+-]+")  # names that need no quotes


def write(recording: Timeline | Series | DeviceTable | Matrix, path: str | Path, head: str = "") -> None:
    """Write `recording` to `path`: Parquet if it ends in `.parquet`, else CSV, gzipped if it ends in `.gz`.

    `head`, lines that begin with #, stands above a CSV. The file appears whole or not at all. Raises TraceError if it
    cannot be written.
    """
    target = Path(path)
    try:
        parquet = target.suffix == ".parquet"
        data = (b"" if parquet else head.encode()) + _packed(recording, parquet)
        draft = target.with_name(f".{target.name}.{os.getpid()}")
        draft.write_bytes(gzip.compress(data, mtime=0) if target.suffix == ".gz" else data)
        draft.replace(target)
    except (OSError, ValueError) as error:
        raise TraceError(f"{path}: cannot be written: {error}") from error


def _packed(recording: Timeline | Series | DeviceTable | Matrix, parquet: bool) -> bytes:
    if not isinstance(recording, Timeline):
        return native_sheets.pack(recording, parquet)
    return native_parquet.pack(recording) if parquet else _csv(recording).encode()


def looks_like(data: bytes) -> bool:
    """Whether `data` begins like our CSV: a header that names device, on and off."""
    head = data[:65_536].decode("utf-8-sig", "replace")
    line = next((line for line in head.splitlines() if line.strip() and not line.startswith("#")), "")
    return set(_NEEDED) <= set(_header(line))


class _Row(NamedTuple):
    """One line of the CSV, with empty fields as None."""

    line: int
    device: str
    on: Time | None
    off: Time | None
    first: Time | None
    last: Time | None


@dataclass
class _Sheet:
    """The columns of a CSV while they are gathered."""

    rows: dict[str, int] = field(default_factory=dict)  # name -> device number
    first: list[Time | None] = field(default_factory=list)
    last: list[Time | None] = field(default_factory=list)
    row: list[int] = field(default_factory=list)
    on: list[Time] = field(default_factory=list)
    off: list[Time] = field(default_factory=list)
    line: list[int] = field(default_factory=list)

    def add(self, entry: _Row, source: RecordingFile) -> None:
        """Take in one line. Raises TraceError if it contradicts itself or an earlier one."""
        number = self.rows.setdefault(entry.device, len(self.rows))
        if number == len(self.first):
            self.first.append(None)
            self.last.append(None)
        for column, value, word in ((self.first, entry.first, "first"), (self.last, entry.last, "last")):
            if value is not None and column[number] not in (None, value):
                where = device(entry.device, entry.line)
                raise source.error(where, f"a second value of {word}: {value}", f"{column[number]}, or nothing")
            column[number] = column[number] if value is None else value
        if entry.on is not None and entry.off is not None:
            self.row.append(number)
            self.on.append(entry.on)
            self.off.append(entry.off)
            self.line.append(entry.line)


def read(source: RecordingFile, repair_log: RepairLog) -> Timeline:
    """Read our CSV; the layout is in docs/traces.md. Raises TraceError if it is damaged."""
    sheet = _Sheet()
    for entry in _rows(source):
        sheet.add(entry, source)
    names = tuple(sheet.rows)
    given = [value for column in (sheet.first, sheet.last) for value in column if value is not None]
    end = max(max(sheet.off, default=0), max(given, default=0))
    seen = ([v or 0 for v in sheet.first], [end if v is None else v for v in sheet.last])
    found = windows(sheet.row, sheet.on, sheet.off)

    def place(k: int) -> str:
        return device(names[sheet.row[k]], sheet.line[k])

    return assemble(names, found, seen, repair_log, place)


def _rows(source: RecordingFile) -> Iterator[_Row]:
    """Yield the lines of the CSV below its header, checked one by one."""
    text = source.text()
    skipped, start = preface(text)
    lines = csv.reader(io.StringIO(text[start:], newline=""), strict=True)
    try:
        order = _order(next(lines, []), source, skipped + 1)
        for fields in lines:
            if fields:
                yield _row(fields, order, skipped + lines.line_num, source)
    except csv.Error as error:
        raise source.error(f"line {skipped + lines.line_num}", str(error), "comma-separated values") from error


def _header(line: str) -> list[str]:
    return [field.strip().strip('"').lower() for field in line.split(",")]


def _order(fields: list[str], source: RecordingFile, line: int) -> list[int]:
    """Return where each of COLUMNS stands in the header, -1 for an absent one."""
    found = [name.strip().lower() for name in fields]
    unknown = next((name for name in found if name not in COLUMNS), None)
    if unknown is not None:
        raise source.error(f"line {line}", f"unknown column {shown(unknown)}{suggestion(unknown, COLUMNS)}")
    if problem := _missing_or_double(found):
        raise source.error(f"line {line}", problem, "device,on,off and if wanted first,last")
    return [found.index(name) if name in found else -1 for name in COLUMNS]


def _missing_or_double(names: list[str]) -> str:
    """Say which column is missing, or that one stands there twice; nothing if neither."""
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        return f"no column {', '.join(missing)}"
    return "a column twice" if len(set(names)) != len(names) else ""


def _row(fields: list[str], order: list[int], line: int, source: RecordingFile) -> _Row:
    wanted = sum(k >= 0 for k in order)
    if len(fields) != wanted:
        raise source.error(f"line {line}", f"{len(fields)} fields", f"{wanted}, as in the header")
    name = fields[order[0]]
    try:
        on, off, first, last = [time(fields[k]) if k >= 0 else None for k in order[1:]]
    except ValueError as error:
        raise source.error(device(name, line), str(error), _TIMES) from error
    if (on is None) != (off is None):
        accepted = "both, or neither for a device without windows"
        raise source.error(device(name, line), "only one of on and off", accepted)
    if first is not None and last is not None and last < first:
        raise source.error(device(name, line), f"last {last} before first {first}", "first <= last")
    return _Row(line, name, on, off, first, last)


def _csv(timeline: Timeline) -> str:
    lines = [",".join(COLUMNS)]
    for number, name in enumerate(timeline.names):
        plain = _PLAIN.fullmatch(name) is not None
        label = name if plain else '"' + name.replace('"', '""') + '"'
        sight = f"{timeline.first[number]},{timeline.last[number]}"
        for on, off in timeline.windows(number):
            lines.append(f"{label},{on},{off},{sight}")
            sight = ","
        if sight != ",":
            lines.append(f"{label},,,{sight}")
    return "\n".join(lines) + "\n"

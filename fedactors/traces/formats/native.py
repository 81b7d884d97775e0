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
from fedactors.traces import sheet
from fedactors.traces.columns import assemble, windows
from fedactors.traces.csv_cells import header, preface, time, timed
from fedactors.traces.device_tables import DeviceTable, Matrix
from fedactors.traces.formats import native_parquet, native_sheets
from fedactors.traces.series import Series
from fedactors.traces.source import RecordingFile, RepairLog, device, shown
from fedactors.traces.timeline import Timeline

COLUMNS = ("device", "on", "off", "first", "last")
_NEEDED = COLUMNS[:3]
_TIMED = COLUMNS[1:]
_TIMES = "a number in the column's unit, or a time such as 90s, 2h; at most 146 years"
_NO_TIME_OF_DAY = "# no time of day"
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
        _replace(target, gzip.compress(data, mtime=0) if target.suffix == ".gz" else data)
    except (OSError, ValueError) as error:
        raise TraceError(f"{path}: cannot be written: {error}") from error


def _replace(target: Path, data: bytes) -> None:
    """Write a file under another name, and rename it; nothing is left of one that cannot be written. Raises OSError."""
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        draft.write_bytes(data)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _packed(recording: Timeline | Series | DeviceTable | Matrix, parquet: bool) -> bytes:
    if not isinstance(recording, Timeline):
        return native_sheets.pack(recording, parquet)
    return native_parquet.pack(recording) if parquet else _csv(recording).encode()


def looks_like(data: bytes) -> bool:
    """Whether `data` begins like our CSV: a header that names device, on and off."""
    return set(_NEEDED) <= {timed(name, COLUMNS)[0] for name in header(data)}


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
    found = _Sheet()
    for entry in _rows(source):
        found.add(entry, source)
    names = tuple(found.rows)
    given = [value for column in (found.first, found.last) for value in column if value is not None]
    end = max(max(found.off, default=0), max(given, default=0))
    seen = ([v or 0 for v in found.first], [end if v is None else v for v in found.last])
    recorded = windows(found.row, found.on, found.off)

    def place(k: int) -> str:
        return device(names[found.row[k]], found.line[k])

    return assemble(names, recorded, seen, repair_log, place, time_of_day=not _without_time_of_day(source))


def _without_time_of_day(source: RecordingFile) -> bool:
    """Whether a line above the header says that the epoch is no midnight."""
    text = source.text()
    return _NO_TIME_OF_DAY in text[: preface(text)[1]].splitlines()


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


class _Column(NamedTuple):
    """Where one of COLUMNS stands in the file, and the unit in its name, ns."""

    at: int
    unit: int | None
    name: str


def _order(fields: list[str], source: RecordingFile, line: int) -> list[_Column | None]:
    """Return where each of COLUMNS stands in the header, None for an absent one."""
    written = [name.strip().lower() for name in fields]
    found = [timed(name, _TIMED) for name in written]
    unknown = next((name for name, _ in found if name not in COLUMNS), None)
    if unknown is not None:
        raise source.error(f"line {line}", f"unknown column {shown(unknown)}{suggestion(unknown, COLUMNS)}")
    names = [name for name, _ in found]
    if problem := _missing_or_double(names):
        raise source.error(f"line {line}", problem, "device,on,off and if wanted first,last")
    at = {name: _Column(k, unit, written[k]) for k, (name, unit) in enumerate(found)}
    return [at.get(name) for name in COLUMNS]


def _missing_or_double(names: list[str]) -> str:
    """Say which column is missing, or that one stands there twice; nothing if neither."""
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        return f"no column {', '.join(missing)}"
    return "a column twice" if len(set(names)) != len(names) else ""


def _row(fields: list[str], order: list[_Column | None], line: int, source: RecordingFile) -> _Row:
    wanted = sum(column is not None for column in order)
    if len(fields) != wanted:
        raise source.error(f"line {line}", f"{len(fields)} fields", f"{wanted}, as in the header")
    named, *timed_columns = order
    name = fields[named.at].strip() if named else ""
    on, off, first, last = (_time(fields, column, name, line, source) for column in timed_columns)
    if (on is None) != (off is None):
        accepted = "both, or neither for a device without windows"
        raise source.error(device(name, line), "only one of on and off", accepted)
    if first is not None and last is not None and last < first:
        raise source.error(device(name, line), f"last {last} ns before first {first} ns", "first <= last")
    return _Row(line, name, on, off, first, last)


def _time(fields: list[str], column: _Column | None, name: str, line: int, source: RecordingFile) -> Time | None:
    if column is None:
        return None
    try:
        return time(fields[column.at], column.unit)
    except ValueError as error:
        accepted = f"a time such as 90s or 9h, or a column that states its unit, such as {column.name}_s or"
        accepted = f"{accepted} {column.name}_ns; at most 146 years" if column.unit is None else _TIMES
        raise source.error(
            device(name, line), f"{column.name} {str(error).partition(' (accepted')[0]}", accepted
        ) from error


def _csv(timeline: Timeline) -> str:
    lines = [] if timeline.time_of_day else [_NO_TIME_OF_DAY]
    lines += [",".join((COLUMNS[0], *(f"{name}_ns" for name in _TIMED)))]
    for number, name in enumerate(timeline.names):
        sheet.check_name(name)
        plain = _PLAIN.fullmatch(name) is not None
        label = name if plain else '"' + name.replace('"', '""') + '"'
        sight = f"{timeline.first[number]},{timeline.last[number]}"
        for on, off in timeline.windows(number):
            lines.append(f"{label},{on},{off},{sight}")
            sight = ","
        if sight != ",":
            lines.append(f"{label},,,{sight}")
    return "\n".join(lines) + "\n"

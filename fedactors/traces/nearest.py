"""What is wrong with a file of no known format: a word on the format that it comes nearest to."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping

from fedactors.errors import TraceError
from fedactors.traces.csv_cells import header, timed
from fedactors.traces.lines import head, is_decimal, is_whole
from fedactors.traces.source import RecordingFile, RepairLog, shown

_MOST = 0.8  # share of the lines that look like those of a format
_ALIKE = 0.6  # of two names
_TIMES = ("on", "off", "first", "last", "from", "to")
_HEADERS = {
    "csv": ("device", "on", "off"),
    "rates": ("row", "from", "to", "bytes/s"),
    "devices": ("device", "flops_per_s"),
    "latencies": ("from", "to", "ns"),
    "irish-5g": ("timestamp", "dl_bitrate", "ul_bitrate", "state"),
}
_LINES: dict[str, Callable[[str], bool]] = {
    "mahimahi": is_whole,
    "cooked": lambda line: len(line.split()) == 2 and all(is_decimal(cell) for cell in line.split()),
    "hsdpa": lambda line: len(line.split()) == 6 and is_whole(line.split()[0]),
    "latency": lambda line: line.count(",") > 1 and all(is_decimal(c.strip().lstrip("-")) for c in line.split(",")),
}
Read = Callable[[RecordingFile, RepairLog], object]


def nearest(source: RecordingFile, readers: Mapping[str, Read]) -> str:
    """Return `; nearest is mahimahi: line 3: …`, or nothing if no format is near."""
    start = source.data[:64].removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if start in (b"{", b"["):
        return _json(source)
    lines = head(source.data)
    for name, fits in _LINES.items():
        if lines and name in readers and sum(map(fits, lines)) >= _MOST * len(lines):
            return _read(name, readers[name], source)
    return _header(source)


def _read(name: str, read: Read, source: RecordingFile) -> str:
    """Return what the reader of a format says of the file."""
    try:
        read(source, RepairLog(source))
    except TraceError as error:
        return f"; nearest is {name}: {str(error).removeprefix(f'{source.path}: ')}"
    return f"; it can be read as {name}, if that is what it is: give format {name}"


def _json(source: RecordingFile) -> str:
    try:
        source.json()
    except TraceError as error:
        return f"; {str(error).removeprefix(f'{source.path}: ')}"
    return "; it is JSON, but neither an event log, counts of instances nor a table of phones"


def _header(source: RecordingFile) -> str:
    """Return what is wrong with the first line of a table."""
    names = header(source.data)
    if otherwise := _otherwise_separated(names):
        return otherwise
    found = tuple(timed(name, _TIMES)[0] for name in names)
    count, name = _likeness(found)
    if count < 2 and "device" not in found:
        return ""
    missing = [wanted for wanted in _HEADERS[name] if wanted not in found]
    return f"; nearest is {name}: no column {', '.join(missing)} in {shown(','.join(names))}" if missing else ""


def _otherwise_separated(names: tuple[str, ...]) -> str:
    """Return which table the first line is of if another mark than the comma separates its cells, else nothing."""
    for mark, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        cells = tuple(cell.strip(' "') for cell in ",".join(names).split(mark))
        if len(cells) > max(2, len(names)) and _likeness(cells)[0]:
            return f"; nearest is {_likeness(cells)[1]}, but its columns are separated by {word}, not commas"
    return ""


def _likeness(cells: tuple[str, ...]) -> tuple[float, str]:
    """Return how many columns of the most similar table format `cells` have, similar names counted, and its name."""
    names = [timed(cell, _TIMES)[0] for cell in cells]
    counts = {
        name: sum(bool(difflib.get_close_matches(wanted, names, 1, _ALIKE)) for wanted in columns)
        for name, columns in _HEADERS.items()
    }
    best = max(counts, key=lambda name: counts[name])
    return counts[best], best

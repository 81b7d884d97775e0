"""Numbers in lines of text, exactly: no decimal fraction passes through a float."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction

from fedactors.plan import NEVER, SECOND
from fedactors.traces.columns import DAY_SECONDS
from fedactors.traces.source import RecordingFile, RepairLog, shown

_WHOLE = re.compile(r"\d{1,15}", re.ASCII)
_DECIMAL = re.compile(r"\d{1,15}(?:\.\d{0,30})?(?:[eE][+-]?\d{1,2})?", re.ASCII)
_LARGEST = 10**18


def numbered(source: RecordingFile) -> Iterator[tuple[int, str]]:
    """Yield (line number, line) of every line that is not blank."""
    for number, line in enumerate(source.text().split("\n"), 1):
        if line.strip():
            yield number, line.strip()


def head(data: bytes, size: int = 4096) -> list[str]:
    """Return the first whole lines of `data` that are not blank, for recognising a format."""
    text = data[:size].decode("utf-8-sig", "replace")
    lines = text.split("\n")[: -1 if len(data) > size else None]
    return [line.strip() for line in lines if line.strip()]


def places_of(wanted: Sequence[str], header: Sequence[str], source: RecordingFile, repair_log: RepairLog) -> list[int]:
    """Return where the columns `wanted` stand in the header, a file's line 1; of one that stands twice, the first.

    Raises TraceError if one is missing.
    """
    missing = [name for name in wanted if name not in header]
    if missing:
        raise source.error("line 1", f"no column {', '.join(missing)}", ", ".join(wanted))
    for name in wanted:
        if header.count(name) > 1:
            repair_log.note(f"column {name} stands twice, the first counts", "line 1")
    return [header.index(name) for name in wanted]


def whole(text: str, what: str, where: str, source: RecordingFile) -> int:
    """Return the whole number that `text` is, of up to 15 digits. Raises TraceError if it is none."""
    if not _WHOLE.fullmatch(text):
        raise source.error(where, f"{what} {shown(text)}", "a whole number")
    return int(text)


def scaled(text: str, factor: int, what: str, where: str, source: RecordingFile, most: int = _LARGEST) -> int:
    """Return `text` times `factor`, rounded to the nearest whole number, halves to even.

    Raises TraceError if `text` is no decimal number, is negative or, times `factor`, above `most`.
    """
    if not _DECIMAL.fullmatch(text):
        raise source.error(where, f"{what} {shown(text)}", "a number >= 0")
    value = round(Fraction(text) * factor)
    if value > most:
        raise source.error(where, f"{what} {shown(text)}", f"a number up to {most // factor:,}")
    return value


def bounded(time: int, where: str, source: RecordingFile) -> int:
    """Return `time` in ns. Raises TraceError if it is beyond 146 years."""
    if time > NEVER:
        raise source.error(where, f"{time // (365 * DAY_SECONDS * SECOND)} years", "at most 146 years")
    return time


def is_decimal(text: str) -> bool:
    """Whether `text` is a decimal number >= 0."""
    return _DECIMAL.fullmatch(text) is not None


def is_whole(text: str) -> bool:
    """Whether `text` is a whole number >= 0."""
    return _WHOLE.fullmatch(text) is not None

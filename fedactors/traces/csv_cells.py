"""Cells and first lines of the CSV files that people write by hand."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction

from fedactors.durations import DURATIONS
from fedactors.plan import NEVER, Time
from fedactors.traces.source import shown

_LONGEST = 60  # characters of a time
_NUMBER = re.compile(r"[+-]?[\d.]+(?:[eE][+-]?\d+)?", re.ASCII)


def preface(text: str) -> tuple[int, int]:
    """Return how many lines, and characters, of blanks and `#` comments stand above the header."""
    lines, characters = 0, 0
    while characters < len(text):
        end = text.find("\n", characters) + 1 or len(text)
        line = text[characters:end]
        if line.strip() and not line.startswith("#"):
            break
        lines, characters = lines + 1, end
    return lines, characters


def header(data: bytes) -> tuple[str, ...]:
    """Return the column names that a CSV begins with, in lower case; of a file that is none, whatever stands there."""
    head = data[:65_536].decode("utf-8-sig", "replace")
    line = next((line for line in head.splitlines() if line.strip() and not line.startswith("#")), "")
    return tuple(name.strip().strip('"').strip().lower() for name in line.split(","))


def timed(name: str, times: Iterable[str]) -> tuple[str, int | None]:
    """Return ("on", 10**9) of a column "on_s", where "on" is among `times`; ("on", None) of one that states no unit."""
    base, _, unit = name.rpartition("_")
    return (base, DURATIONS[unit]) if base in times and unit in DURATIONS else (name, None)


def time(text: str, unit: int | None = None) -> Time | None:
    """Return ns of "7200" in a column of `unit` ns, or of "2h"; None of an empty field.

    Raises ValueError of anything else: a bare number, other than 0, in a column that states no unit, or 1e3.
    """
    text = text.strip()
    if not text:
        return None
    if len(text) > _LONGEST:
        raise ValueError(f"time {shown(text)}")
    value = _bare(text, unit)
    if value is None:
        if unit is not None and _NUMBER.fullmatch(text):
            raise ValueError(f"{shown(text)} is no plain number")
        from fedactors.scenario.units import duration  # pydantic is heavy; numbers do not need it

        value = duration(text)
    if value > NEVER:
        raise ValueError(f"time {value} ns")
    return value


def _bare(text: str, unit: int | None) -> Time | None:
    """Return ns of a number without a unit of its own; None if it is no such number."""
    if not text.isascii() or not text.replace(".", "", 1).isdigit():
        return None
    if unit is None:
        if not text.strip("0."):
            return 0
        raise ValueError(f"{text} has no unit")
    if text.isdigit():
        return int(text) * unit
    value = Fraction(text) * unit if not text.startswith(".") else Fraction(f"0{text}") * unit
    if value.denominator != 1:
        raise ValueError(f"{text} is not a whole number of nanoseconds")
    return int(value)

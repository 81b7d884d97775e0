"""Cells and first lines of the CSV files that people write by hand."""

from __future__ import annotations

import io

from fedactors.plan import NEVER, Time
from fedactors.traces.source import shown

_LONGEST = 60  # characters of a time


def preface(text: str) -> tuple[int, int]:
    """Return how many lines, and characters, of blanks and `#` comments stand above the header."""
    lines, characters = 0, 0
    for line in io.StringIO(text):
        if line.strip() and not line.startswith("#"):
            break
        lines, characters = lines + 1, characters + len(line)
    return lines, characters


def time(text: str) -> Time | None:
    """Return ns of "7200000000000" or "2h", None of an empty field. Raises ValueError of anything else."""
    text = text.strip()
    if not text:
        return None
    if len(text) > _LONGEST:
        raise ValueError(f"time {shown(text)}")
    if text.isascii() and text.isdigit():
        value = int(text)
    else:
        from fedactors.scenario.units import duration  # pydantic is heavy; integers do not need it

        value = duration(text)
    if value > NEVER:
        raise ValueError(f"time {value} ns")
    return value

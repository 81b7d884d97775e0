"""Figures of rates over time: of all rows, or of each direction where a recording has rows of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np

from fedactors.plan import Time
from fedactors.traces.describe import LEVELS, picture, repaired, shown_time
from fedactors.traces.device_selection import select
from fedactors.traces.series import Series
from fedactors.traces.timeline import Int64, Repair

PARTS = 24  # of the longest row, in the picture of rates
_WAYS = ("down", "up")


@dataclass(frozen=True)
class RateSummary:
    """Figures of a Series; quantiles are over time, in its unit."""

    rows: int
    unit: str
    pieces: int
    longest: Time
    total: Time  # of all rows
    mean: float
    quantiles: dict[float, int]
    course: tuple[float | None, ...]  # mean in each of 24 equal parts of the longest row
    repairs: tuple[Repair, ...]

    def data(self) -> dict[str, object]:
        """Return everything as plain values for JSON."""
        levels = {str(level): value for level, value in self.quantiles.items()}
        return asdict(self) | {"quantiles": levels, "repairs": [asdict(repair) for repair in self.repairs]}

    def text(self) -> str:
        """Return some ten lines for a terminal."""
        levels = ", ".join(f"{level:.0%} {value:,}" for level, value in self.quantiles.items())
        lines = [
            f"{self.rows:,} rows of {self.unit}, {self.pieces:,} pieces; the longest lasts {shown_time(self.longest)}",
            f"{self.mean:,.0f} {self.unit} on average over time, at most: {levels}",
            f"from the beginning to the end of the longest row, highest {max(map(_or0, self.course)):,.0f}",
        ]
        return "\n".join([*lines, *picture(self.course), *repaired(self.repairs)])


@dataclass(frozen=True)
class Directions:
    """Figures of a Series whose rows are directions, `name/down` and `name/up`: an average of both says nothing."""

    parts: Mapping[str, RateSummary]
    repairs: tuple[Repair, ...]

    def data(self) -> dict[str, object]:
        """Return everything as plain values for JSON."""
        repairs = [asdict(repair) for repair in self.repairs]
        return {"directions": {way: part.data() for way, part in self.parts.items()}, "repairs": repairs}

    def text(self) -> str:
        """Return some ten lines for each direction."""
        parts = [f"{way}:\n{replace(part, repairs=()).text()}" for way, part in self.parts.items()]
        return "\n".join([*parts, *repaired(self.repairs)])


def by_direction(series: Series) -> dict[str, RateSummary]:
    """Return the figures of each direction, by its name; of a Series that has no two, of all rows under ""."""
    ways = [name.rpartition("/")[2] for name in series.names]
    if not set(_WAYS) <= set(ways) or not set(ways) <= set(_WAYS):
        return {"": _rates(series)}
    found = {}
    for way in _WAYS:
        part = select(series, np.array([k for k, other in enumerate(ways) if other == way], np.int64))
        assert isinstance(part, Series)
        found[way] = _rates(part)
    return found


def _or0(value: float | None) -> float:
    return value or 0.0


def _rates(series: Series) -> RateSummary:
    ends = np.concatenate((series.at[1:], [0])).astype(np.int64)
    ends[series.starts[1:] - 1] = series.end
    lengths = (ends - series.at).astype(float)
    order = np.argsort(series.value, kind="stable")
    passed = np.cumsum(lengths[order])
    total = float(passed[-1]) if len(passed) else 0.0
    at = np.minimum(np.searchsorted(passed, np.array(LEVELS) * total), len(order) - 1)
    longest = int(series.end.max(initial=0))
    return RateSummary(
        rows=len(series),
        unit=series.unit,
        pieces=len(series.at),
        longest=longest,
        total=int(total),
        mean=float((lengths * series.value).sum() / total) if total else 0.0,
        quantiles=dict(zip(LEVELS, series.value[order][at].tolist(), strict=True)) if total else {},
        course=_course(series.at, ends, series.value, longest),
        repairs=series.repairs,
    )


def _course(begin: Int64, end: Int64, value: Int64, longest: Time) -> tuple[float | None, ...]:
    """Return the mean in each part of [0, longest), over all rows that last so long; None where none does."""
    means: list[float | None] = []
    for part in range(PARTS):
        low, high = longest * part // PARTS, longest * (part + 1) // PARTS
        inside = np.clip(np.minimum(end, high) - np.maximum(begin, low), 0, None).astype(float)
        means.append(float((inside * value).sum() / inside.sum()) if inside.any() else None)
    return tuple(means)

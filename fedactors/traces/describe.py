"""What a recording of availability holds, at a glance: as data, and as text for a terminal."""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from fedactors.durations import DAY, HOUR
from fedactors.plan import NEVER, SECOND, Time
from fedactors.traces.timeline import Int64, Repair, Timeline

HOURS = 24
LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
_BARS = " ▁▂▃▄▅▆▇█"
_UNITS = (
    ("days", DAY),
    ("h", HOUR),
    ("min", 60 * SECOND),
    ("s", SECOND),
    ("ms", 10**6),
    ("us", 1000),
    ("ns", 1),
)


@dataclass(frozen=True)
class Description:
    """Figures of one timeline. Times are ns, shares lie between 0 and 1."""

    devices: int
    never: int  # devices without a window
    windows: int
    begin: Time  # first sight of the first device
    end: Time  # last sight of the last
    observed: float  # mean time for which a device was observed
    share: float  # of the observed time, how much devices were on
    lengths: dict[float, Time]  # quantiles of the windows' lengths, by level; empty without windows
    hourly: tuple[float | None, ...]  # share by hour of the day (t mod 24 h), None for one never observed, or unknown
    repairs: tuple[Repair, ...]

    def data(self) -> dict[str, object]:
        """Return everything as plain values for JSON."""
        lengths = {str(level): length for level, length in self.lengths.items()}
        return asdict(self) | {"lengths": lengths, "repairs": [asdict(repair) for repair in self.repairs]}

    def text(self) -> str:
        """Return some ten lines for a terminal."""
        seen = f"{shown_time(self.end - self.begin)} in all, {shown_time(round(self.observed))} each on average"
        lines = [
            f"{self.devices:,} devices, observed for {seen}",
            f"on {self.share:.1%} of the time, in {self.windows:,} windows; devices never on: {self.never:,}",
        ]
        if self.lengths:
            quantiles = [f"{level:.0%} {shown_time(length)}" for level, length in self.lengths.items()]
            lines.append(f"windows are at most: {', '.join(quantiles)}")
        return "\n".join([*lines, *_hours(self.hourly), *repaired(self.repairs)])


def describe(timeline: Timeline) -> Description:
    """Return the figures of `timeline`."""
    lengths = timeline.off - timeline.on
    observed = _by_hour(timeline.first, timeline.last)
    on = _by_hour(timeline.on, timeline.off)
    quantiles = np.quantile(lengths, LEVELS, method="inverted_cdf").tolist() if len(lengths) else []
    total = float(observed.sum())
    return Description(
        devices=len(timeline),
        never=int((np.diff(timeline.starts) == 0).sum()),
        windows=len(lengths),
        begin=int(timeline.first.min(initial=2**62)) if len(timeline) else 0,
        end=int(timeline.last.max(initial=0)),
        observed=total / max(len(timeline), 1),
        share=float(on.sum()) / total if total else 0.0,
        lengths=dict(zip(LEVELS, quantiles, strict=False)),
        hourly=tuple(
            float(a) / float(b) if b and timeline.time_of_day else None for a, b in zip(on, observed, strict=True)
        ),
        repairs=timeline.repairs,
    )


def course(timeline: Timeline) -> tuple[float | None, ...]:
    """Return the share of devices that are on in each of 24 equal parts of the recording; None where none is seen."""
    begin = int(timeline.first.min(initial=NEVER))
    span = max(int(timeline.last.max(initial=0)) - begin, 0)
    edges = [begin + span * part // HOURS for part in range(HOURS + 1)]

    def inside(starts: Int64, ends: Int64, low: Time, high: Time) -> float:
        return float(np.clip(np.minimum(ends, high) - np.maximum(starts, low), 0, None).sum(dtype=np.float64))

    shares: list[float | None] = []
    for low, high in itertools.pairwise(edges):
        seen = inside(timeline.first, timeline.last, low, high)
        shares.append(inside(timeline.on, timeline.off, low, high) / seen if seen else None)
    return tuple(shares)


def _by_hour(begin: Int64, end: Int64) -> NDArray[np.float64]:
    """Return how much of the intervals [begin, end) falls into each hour of the day, `(24,)` ns.

    Sums are floats: a million devices over a year exceed an int64.
    """

    def before(time: Int64, hour: int) -> Int64:
        """Return the time spent in this hour of the day before `time`."""
        passed: Int64 = time // DAY * HOUR + np.clip(time % DAY - hour * HOUR, 0, HOUR)
        return passed

    return np.array([(before(end, h) - before(begin, h)).sum(dtype=np.float64) for h in range(HOURS)])


def _hours(hourly: tuple[float | None, ...]) -> list[str]:
    """Return the hourly shares as a row of bars over its scale; the highest bar is the highest share."""
    known = [share for share in hourly if share is not None]
    peak = max(known, default=0.0)
    if not peak:
        return []
    top = hourly.index(peak)
    return [
        f"on by hour of the day, highest {peak:.1%} at {top:02}:00, lowest {min(known):.1%}",
        *picture(hourly),
        "  " + "".join(f"{hour:<6}" for hour in range(0, HOURS, 3)).rstrip(),
    ]


def picture(heights: tuple[float | None, ...]) -> list[str]:
    """Return a row of bars, the highest one for the highest of `heights`; nothing if all are 0."""
    peak = max((height for height in heights if height is not None), default=0.0)
    bars = ["·" if h is None else _BARS[round(h / peak * (len(_BARS) - 1))] for h in heights] if peak else []
    return ["  " + "".join(bar * 2 for bar in bars)] if bars else []


def repaired(repairs: tuple[Repair, ...]) -> list[str]:
    """Return a line for each kind of repair."""
    lines = [f"  {repair.count:,} x {repair.kind}, first at {repair.first}" for repair in repairs]
    return ["repaired:", *lines] if lines else []


def shown_time(ns: Time) -> str:
    """Return a time in its largest fitting unit, with two or three digits."""
    unit, size = next(((unit, size) for unit, size in _UNITS if ns >= size), _UNITS[-1])
    value = ns / size
    return f"{value:.1f} {unit}" if value < 10 and ns % size else f"{value:.0f} {unit}"

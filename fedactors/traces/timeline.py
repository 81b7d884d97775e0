"""What every reader returns: windows of many devices in columns, and what had to be repaired on the way.

A `Timeline` is availability in compressed rows: device d is on during the half-open windows
`[on[k], off[k])` for `starts[d] <= k < starts[d + 1]`. Times are integer nanoseconds from the recording's
epoch, sorted and disjoint inside a device, never empty, and never touching (touching windows are one window).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedactors.errors import TraceError
from fedactors.plan import NEVER, Time

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Repair:
    """One kind of damage that a reader repaired, how often, and where it came first."""

    kind: str
    count: int
    first: str  # 'device "17", line 203'


@dataclass(frozen=True, eq=False)
class Timeline:
    """Availability of `len(names)` devices in columns; see the module's docstring for the layout.

    `first` and `last` are the instants between which a device was observed, `(devices,)` ns: arrival and
    departure, or the period of a loop. Raises TraceError if the columns break the layout. Two timelines are
    compared by `same_as`; `==` is identity.
    """

    names: tuple[str, ...]
    starts: Int64  # (devices + 1,)
    on: Int64  # (windows,) ns
    off: Int64  # (windows,) ns
    first: Int64  # (devices,) ns
    last: Int64  # (devices,) ns
    repairs: tuple[Repair, ...] = ()
    time_of_day: bool = True  # whether the epoch is a midnight, so that t mod 24 h is the time of day

    def __post_init__(self) -> None:
        problem = _problem(self)
        if problem:
            raise TraceError(f"not a timeline: {problem}")

    def __len__(self) -> int:
        return len(self.names)

    def windows(self, device: int) -> Iterator[tuple[Time, Time]]:
        """Yield the windows of `device` (a row number) as (on, off) in ns."""
        row = slice(int(self.starts[device]), int(self.starts[device + 1]))
        return zip(self.on[row].tolist(), self.off[row].tolist(), strict=True)

    def same_as(self, other: Timeline) -> bool:
        """Whether both hold the same devices and windows, whatever was repaired."""
        columns = ("starts", "on", "off", "first", "last")
        return self.names == other.names and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in columns
        )


def build(
    devices: Iterable[tuple[str, Sequence[tuple[Time, Time]], Time, Time]], repairs: Sequence[Repair] = ()
) -> Timeline:
    """Put (name, windows, first, last) of each device into columns.

    Windows may come unsorted, touching or overlapping: they are merged. Empty ones are dropped.
    """
    names: list[str] = []
    starts: list[int] = [0]
    on: list[Time] = []
    off: list[Time] = []
    first: list[Time] = []
    last: list[Time] = []
    for name, windows, begin, end in devices:
        for low, high in merged(windows):
            on.append(low)
            off.append(high)
        names.append(name)
        starts.append(len(on))
        first.append(begin)
        last.append(end)
    rows, opened, closed, begun, ended = (
        np.asarray(values, dtype=np.int64) for values in (starts, on, off, first, last)
    )
    return Timeline(tuple(names), rows, opened, closed, begun, ended, tuple(repairs))


def merged(windows: Iterable[tuple[Time, Time]]) -> list[tuple[Time, Time]]:
    """Return `windows` sorted, without empty ones, with overlapping and touching ones joined."""
    result: list[tuple[Time, Time]] = []
    for low, high in sorted(w for w in windows if w[0] < w[1]):
        if result and low <= result[-1][1]:
            result[-1] = (result[-1][0], max(high, result[-1][1]))
        else:
            result.append((low, high))
    return result


def _problem(t: Timeline) -> str:
    """Say what breaks the layout, or nothing."""
    devices, windows = len(t.names), len(t.on)
    if (len(t.starts), len(t.first), len(t.last), len(t.off)) != (devices + 1, devices, devices, windows):
        return "columns of different lengths"
    if len(set(t.names)) != devices:
        return "two devices of one name"
    if t.starts[0] != 0 or t.starts[-1] != windows or (np.diff(t.starts) < 0).any():
        return "rows do not cover the windows"
    if (t.first < 0).any() or (t.last > NEVER).any():
        return "a time before the epoch or more than 146 years after it"
    if (t.first > t.last).any():
        return "a device last seen before it was first seen"
    return _problem_of_windows(t)


def _problem_of_windows(t: Timeline) -> str:
    """Say which windows are wrong, or nothing; the rows cover them."""
    if (t.on >= t.off).any():
        return "an empty or backward window"
    follows_too_soon = t.on[1:] <= t.off[:-1]
    begins, ends = t.starts[:-1], t.starts[1:]
    inner = begins[(begins > 0) & (begins < len(t.on))]
    follows_too_soon[inner - 1] = False  # the next window is that of another device
    if follows_too_soon.any():
        return "windows that touch, overlap or run backwards"
    some = begins < ends  # devices with windows, which ascend: the first and the last one tell about all
    if (t.on[begins[some]] < t.first[some]).any() or (t.off[ends[some] - 1] > t.last[some]).any():
        return "a window outside its device's first and last sight"
    return ""

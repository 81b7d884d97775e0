"""The rate of a link or a processor over time: its integral, and when the integral reaches a value, in exact integers.

A flow is piecewise constant: bytes/s of a link, or parts per million of a processor. Its integral is in the unit times
nanoseconds, far beyond 64 bits, so all sums are Python's integers. Many devices can share one recording.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from fedactors.clock.availability import Int64, integers
from fedactors.plan import NEVER, Time
from fedactors.traces.series import Series

MOST_WINDOWS = 1_000_000  # of one stage of a trip; at fourteen a week these are 1,370 years
MOST_MISSES = 20_000  # times in a row that a flow gives something only while its device is off
CONSTANT = -1  # the row of a device whose rate never changes
_NO_WINDOW = NEVER, NEVER
Gate = Callable[[int, Time], Iterator[tuple[Time, Time]]]  # (device, time) -> when it is on from then on


@dataclass(frozen=True)
class FlowColumns:
    """The columns of a `Flow` for the devices of one group, each `(devices,)`; rates in the flow's unit."""

    series: Series | None  # the recordings; None if no device follows one
    row: Int64  # of `series`, that a device follows; or CONSTANT
    shift: Int64  # ns from the device's time to the recording's
    loops: bool  # whether recordings begin again after their end; else their last value holds
    constant: Int64  # rate of a device of row CONSTANT: bytes/s, or parts per million of a processor


class Flow:
    """One resource of every device: device d follows row `row[d]` at its own time `t + shift[d]`.

    After its end the row begins again (`loops[d]`) or its last value holds. Devices of row CONSTANT have `constant[d]`.
    """

    def __init__(self, groups: Sequence[FlowColumns]) -> None:
        recorded = [group.series for group in groups if group.series is not None]
        self._at = integers(_joined([series.at for series in recorded]))
        self._value = integers(_joined([series.value for series in recorded]))
        self._starts, self._end = _rows(recorded)
        self._before, self._total = self._sums()
        self._row = integers(_joined(_shifted_rows(groups)))
        self._shift = integers(_joined([group.shift for group in groups]))
        self._loops = integers(np.concatenate([np.full(len(group.row), group.loops) for group in groups]))
        self._constant = integers(_joined([group.constant for group in groups]))

    def constant(self, device: int) -> int | None:
        """Return the rate of a device whose rate never changes; None of any other."""
        return self._constant[device] if self._row[device] < 0 else None

    def given(self, device: int, begin: Time, end: Time) -> int:
        """Return the integral over [begin, end), in the flow's unit times ns."""
        return self._until(device, end) - self._until(device, begin)

    def reach(self, device: int, begin: Time, work: int) -> Time:
        """Return the earliest time at which the integral from `begin` is `work` (> 0) or more; NEVER if it is not."""
        row = self._row[device]
        if row < 0:
            rate = self._constant[device]
            return min(begin - (-work // rate), NEVER) if rate else NEVER
        wanted, total = self._until(device, begin) + work, self._total[row]
        turns, rest = 0, wanted
        if self._loops[device]:
            if not total:
                return NEVER
            turns, rest = divmod(wanted - 1, total)
            rest += 1
        first, last = self._starts[row], self._starts[row + 1]
        k = bisect_left(self._before, rest, first, last) - 1  # the last piece that begins below `rest`
        rate = self._value[k]
        if not rate:  # only the integral of the last piece can be less than is wanted
            return NEVER
        into = self._at[k] - (-(rest - self._before[k]) // rate)
        return min(turns * self._end[row] + into - self._shift[device], NEVER)

    def _until(self, device: int, time: Time) -> int:
        """Return the integral from a fixed origin to `time`."""
        row = self._row[device]
        if row < 0:
            return time * self._constant[device]
        turns, local = 0, time + self._shift[device]
        if self._loops[device]:
            turns, local = divmod(local, self._end[row])
        k = bisect_right(self._at, local, self._starts[row], self._starts[row + 1]) - 1
        return turns * self._total[row] + self._before[k] + (local - self._at[k]) * self._value[k]

    def _sums(self) -> tuple[list[int], list[int]]:
        """Return the integral before each piece, and that of each row."""
        before: list[int] = []
        totals: list[int] = []
        for first, last, end in zip(self._starts, self._starts[1:], self._end, strict=False):
            ends = [*self._at[first + 1 : last], end]
            parts = [(b - a) * v for a, b, v in zip(self._at[first:last], ends, self._value[first:last], strict=True)]
            *sums, total = accumulate(parts, initial=0)
            before += sums
            totals.append(total)
        return before, totals


def through(gate: Gate, flow: Flow, device: int, begin: Time, work: int, limit: Time) -> Time:
    """Return when `work` (in the flow's unit times ns) is done from `begin` on, counting only while `gate` is open.

    NEVER if that is not by `limit`, not in MOST_WINDOWS windows, or if the flow gives something MOST_MISSES times in a
    row only while the gate is closed: a link that is dead whenever its device is on.
    """
    if work <= 0:
        return begin
    misses, windows = 0, gate(device, begin)
    for _ in range(MOST_WINDOWS):
        on, off = next(windows, _NO_WINDOW)
        if on >= limit or misses > MOST_MISSES:
            return NEVER
        end = flow.reach(device, on, work)
        if end <= off:
            return end
        given = flow.given(device, on, off)
        if given:
            work, misses = work - given, 0
        else:  # windows do not matter before the flow gives something
            misses, windows = misses + 1, gate(device, flow.reach(device, on, 1) - 1)
    return NEVER


def within(gate: Gate, flow: Flow, device: int, begin: Time, end: Time) -> int:
    """Return the integral of `flow`, in its unit times ns, over the parts of [begin, end) in which `gate` is open."""
    total = 0
    for on, off in gate(device, begin):
        if on >= end:
            break
        total += flow.given(device, on, min(off, end))
    return total


def open_always(device: int, time: Time) -> Iterator[tuple[Time, Time]]:
    """Yield the one window of a device that is never interrupted."""
    yield time, NEVER


def _shifted_rows(groups: Sequence[FlowColumns]) -> list[Int64]:
    """Return the row of each device among those of all groups."""
    lengths = [len(group.series) if group.series else 0 for group in groups]
    before = accumulate(lengths, initial=0)
    return [np.where(g.row < 0, CONSTANT, g.row + first) for g, first in zip(groups, before, strict=False)]


def _rows(recorded: Sequence[Series]) -> tuple[list[int], list[int]]:
    counts = [count for series in recorded for count in np.diff(series.starts).tolist()]
    return [0, *accumulate(counts)], [end for series in recorded for end in series.end.tolist()]


def _joined(columns: Sequence[Int64]) -> Int64:
    return np.concatenate([np.zeros(0, np.int64), *columns])

"""When devices are on, in columns: the on-time until a moment, and the moment at which it reaches a value.

Many devices can share one recording: windows are stored once per recording, and a device is a row number, a shift
and a period. All arithmetic is on integers, so a trip that ends exactly at a deadline ends exactly there.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fedactors.clock.row_search import RowSearch
from fedactors.plan import NEVER, Time
from fedactors.traces.timeline import Timeline

Int64 = NDArray[np.int64]
ALWAYS = -1  # the row of a device that is never off
_ROWS = 2**17  # that are worked on at once


@dataclass(frozen=True)
class RecordingColumns:
    """Recordings in columns. Row r holds the half-open windows starts[r] <= k < starts[r + 1], from its start."""

    starts: Int64  # (rows + 1,)
    on: Int64  # (windows,)
    off: Int64  # (windows,)

    def on_times(self) -> tuple[Int64, Int64]:
        """Return the on-time of a row before each of its windows, `(windows,)`, and of each whole row, `(rows,)`, ns.

        It is worked out in place and row after row: recordings of ten million devices take gigabytes.
        """
        sums = np.zeros(len(self.on) + 1, np.int64)
        np.subtract(self.off, self.on, out=sums[1:])
        np.cumsum(sums[1:], out=sums[1:])
        at_starts = sums[self.starts]
        counts = self.counts
        before = sums[:-1]
        for first in range(0, len(counts), _ROWS):
            rows = slice(first, min(first + _ROWS, len(counts)))
            piece = slice(self.starts[rows.start], self.starts[rows.stop])
            before[piece] -= np.repeat(at_starts[rows], counts[rows])
        return before, np.diff(at_starts)

    @property
    def counts(self) -> Int64:
        """Windows per row, `(rows,)`."""
        return np.diff(self.starts)

    @property
    def rows_filled(self) -> NDArray[np.bool_]:
        """Which rows have a window, `(rows,)`."""
        return self.counts > 0


class Availability:
    """On-time of every device, from shared recordings.

    Device d follows row `row[d]` at its own time `t + shift[d]`, again from the start after `period[d]` ns (0: once).
    """

    def __init__(self, windows: RecordingColumns, row: Int64, shift: Int64, period: Int64) -> None:
        self.windows = windows
        self.row = row
        self.shift = shift
        self.period = period
        self.before, self.total = windows.on_times()
        self._on = integers(windows.on)
        self._off = integers(windows.off)
        self._before = integers(self.before)
        self._total = integers(self.total)
        self._starts = integers(windows.starts)
        self._row = integers(row)
        self._shift = integers(shift)
        self._period = integers(period)

    def __len__(self) -> int:
        return len(self.row)

    @cached_property
    def on_search(self) -> RowSearch:
        """Finds the window of a row that began last."""
        return RowSearch(self.windows.on, self.windows.starts)

    @cached_property
    def before_search(self) -> RowSearch:
        """Finds the window of a row in which an on-time is reached."""
        return RowSearch(self.before, self.windows.starts)

    def elapsed(self, device: int, time: Time) -> Time:
        """Return the on-time of `device` before `time`, from a fixed origin: only differences mean something."""
        row = self._row[device]
        if row < 0:
            return time
        turns, local = self._local(device, time)
        first, last = self._starts[row], self._starts[row + 1]
        k = bisect_right(self._on, local, first, last) - 1
        inside = self._before[k] + min(local, self._off[k]) - self._on[k] if k >= first else 0
        return turns * self._total[row] + inside

    def reach(self, device: int, work: Time) -> Time:
        """Return the earliest time at which `elapsed` is `work` or more; NEVER if that does not happen.

        If `work` is no more than `elapsed` at some time, the answer may lie before that time.
        """
        row = self._row[device]
        if row < 0:
            return work
        total, period = self._total[row], self._period[device]
        turns, rest = divmod(work - 1, total) if period and total else (0, work - 1)
        if rest >= total or not total:
            return NEVER
        first, last = self._starts[row], self._starts[row + 1]
        k = max(first, bisect_left(self._before, rest + 1, first, last) - 1)
        return min(turns * period + self._on[k] + rest + 1 - self._before[k] - self._shift[device], NEVER)

    def is_on(self, device: int, time: Time) -> bool:
        """Whether `time` lies in a window of `device`."""
        return self.elapsed(device, time + 1) > self.elapsed(device, time)

    def window_end(self, device: int, time: Time) -> Time:
        """Return when the window around `time` ends (`time` itself if there is none); NEVER if it does not end."""
        row = self._row[device]
        if row < 0 or (self._period[device] and self._total[row] == self._period[device]):
            return NEVER
        turns, local = self._local(device, time)
        first, last = self._starts[row], self._starts[row + 1]
        k = bisect_right(self._on, local, first, last) - 1
        if k < first or local >= self._off[k]:
            return time
        if self._off[k] == self._period[device] and self._on[first] == 0:  # goes on into the next turn
            turns, k = turns + 1, first
        return turns * self._period[device] + self._off[k] - self._shift[device]

    def spans(self, device: int, time: Time) -> Iterator[tuple[Time, Time]]:
        """Yield when `device` is on from `time` on, as (on, off) in order; without end if its recording repeats."""
        row, period = self._row[device], self._period[device]
        if row < 0:
            yield time, NEVER
            return
        turns, local = self._local(device, time)
        first, last = self._starts[row], self._starts[row + 1]
        k = max(first, bisect_right(self._on, local, first, last) - 1)
        while first < last:
            base = turns * period - self._shift[device]
            for on, off in zip(self._on[k:last], self._off[k:last], strict=True):
                if off + base > time:
                    yield max(on + base, time), off + base
            if not period:
                return
            turns, k = turns + 1, first

    def _local(self, device: int, time: Time) -> tuple[int, Time]:
        """Return (turns of the recording completed, time inside the recording)."""
        local, period = time + self._shift[device], self._period[device]
        return divmod(local, period) if period else (0, local)


def from_first_sight(timeline: Timeline) -> RecordingColumns:
    """Return the windows of a recording, which count from the first sight of each device."""
    if not timeline.first.any():
        return RecordingColumns(timeline.starts, timeline.on, timeline.off)
    first = np.repeat(timeline.first, np.diff(timeline.starts))
    return RecordingColumns(timeline.starts, timeline.on - first, timeline.off - first)


def integers(column: Any) -> Sequence[int]:
    """Return a view of a column that hands out Python integers: faster to bisect, and they never overflow."""
    return cast("Sequence[int]", memoryview(column))


def join(tables: Sequence[RecordingColumns]) -> RecordingColumns:
    """Put several tables under one another."""
    if not tables:
        nothing = np.zeros(0, np.int64)
        return RecordingColumns(np.zeros(1, np.int64), nothing, nothing)
    if len(tables) == 1:
        return tables[0]
    counts = np.concatenate([table.counts for table in tables])
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return RecordingColumns(starts, np.concatenate([t.on for t in tables]), np.concatenate([t.off for t in tables]))

"""Which devices are on now: a bitmap of the population, updated from window edges in order of time.

The cost of a round is the number of edges since the last one plus one scan of the bitmap; devices that are not asked
never become objects. Edges are made for one stretch of time after the other, so that looping recordings need no
horizon. Where there are many edges of each device since the last round, they are left out: every device is looked up
at the new time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedactors.clock import ontime
from fedactors.clock.availability import Availability, Int64
from fedactors.clock.next_edges import Edges, NextEdges, in_order, no_edges
from fedactors.clock.row_search import search
from fedactors.plan import NEVER, Time

_FIRST_SLAB = 4_096  # edges, or one for every so many devices: each slab looks at every device once
_DEVICES = 16
_LEAP = 4  # edges of a device that cost about as much as looking it up
_LARGEST_SLAB = 2_000_000  # about 64 MB while they are sorted


class Stay(NamedTuple):
    """When each device belongs to the population: from `arrive` until `depart`, `(devices,)` ns."""

    arrive: Int64
    depart: Int64


class Presence:
    """The devices that are on and belong to the population at the current time; only the `counted` ones, if given.

    A device is there during its `stay`; by default, always.
    """

    def __init__(
        self, availability: Availability, counted: NDArray[np.bool_] | None = None, stay: Stay | None = None
    ) -> None:
        self._availability = availability
        counted = np.ones(len(availability), bool) if counted is None else counted
        self._counted = counted
        self._stay = stay or _always(len(availability))
        self._visitors = np.flatnonzero(counted & ((self._stay.arrive > 0) | (self._stay.depart < NEVER)))
        moving = np.flatnonzero((availability.row >= 0) & counted)
        self._moving = moving[availability.windows.counts[availability.row[moving]] > 0]  # others are never on
        self.on: NDArray[np.bool_] = (availability.row < 0) & counted
        self._last = self._last_edge()
        self._rate = self._edges_per_ns()
        self._size = max(_FIRST_SLAB, len(self._moving) // _DEVICES)
        self._next_edges = NextEdges(availability, self._moving)
        self._end: Time = 0  # edges before this instant are in the arrays below
        self._cursor = 0
        self._times, self._devices, self._states = no_edges()
        self._followers: list[Callable[[Int64 | None], None]] = []
        self.on[self._moving] = self._state_at_zero()
        self.on &= self._stay.arrive <= 0

    def advance(self, time: Time) -> None:
        """Apply every edge up to and including `time`."""
        while True:
            stop = int(np.searchsorted(self._times, time, side="right"))
            # a device may have several edges in one stretch: numpy keeps the last, and edges are in order
            self.on[self._devices[self._cursor : stop]] = self._states[self._cursor : stop]
            if stop > self._cursor:
                self._tell(self._devices[self._cursor : stop])
            self._cursor = max(self._cursor, stop)
            if self._end > time:
                return None
            if time - self._end > self._leap() and self._end < self._last:
                return self._jump(time)
            if not self._more():
                return None

    def _jump(self, time: Time) -> None:
        """Look every device up at `time`, after the edges of that instant; go on with the edges after it."""
        at = np.full(len(self._moving), time, np.int64)
        on = self._counted & (self._availability.row < 0)
        before, after = (ontime.elapsed(self._availability, self._moving, instant) for instant in (at, at + 1))
        on[self._moving] = after > before
        self.on = on & (self._stay.arrive <= time) & (time < self._stay.depart)
        self._times, self._devices, self._states = no_edges()
        self._cursor = 0
        self._next_edges.seek(time + 1)
        self._end = time + 1
        self._tell(None)

    def follow(self, changed: Callable[[Int64 | None], None]) -> None:
        """Call `changed` with the devices that came or went, some of them more than once; None: any may have."""
        self._followers.append(changed)

    def _tell(self, devices: Int64 | None) -> None:
        for changed in self._followers:
            changed(devices)

    def next_on(self) -> Time:
        """Return when the next device comes on, after the time advanced to; NEVER if none does."""
        while True:
            coming = self._states[self._cursor :]
            first = int(coming.argmax()) if len(coming) else 0
            if len(coming) and coming[first]:
                return int(self._times[self._cursor + first])
            if not self._more():
                return NEVER

    def next_edge(self) -> Time:
        """Return when a device next comes or goes, after the time advanced to; NEVER if none does."""
        while self._cursor >= len(self._times):
            if not self._more():
                return NEVER
        return int(self._times[self._cursor])

    def _more(self) -> bool:
        """Make the edges of the next stretch of time; return whether there can be any."""
        if self._end >= self._last:
            return False
        length = self._stretch()
        self._size = min(2 * self._size, _LARGEST_SLAB)
        begin, self._end = self._end, min(self._end + length, NEVER)
        found, self._end = self._next_edges.until(self._end)
        made = self._during_stays(found, begin) if len(self._visitors) else found
        self._times, self._devices, self._states = (
            np.concatenate([old[self._cursor :], new])  # who asks what comes next has not applied the edges before it
            for old, new in zip((self._times, self._devices, self._states), made, strict=True)
        )
        self._cursor = 0
        return True

    def _stretch(self) -> Time:
        """Return for how long edges are made next, ns."""
        return self._time_of(self._size)

    def _leap(self) -> Time:
        """Return after how long looking every device up costs less than their edges, ns."""
        return self._time_of(_LEAP * len(self._moving))

    def _time_of(self, edges: int) -> Time:
        """Return in what time there are so many edges, on average, ns."""
        return int(min(max(edges / self._rate, 1), NEVER)) if self._rate else NEVER

    def _during_stays(self, found: Edges, begin: Time) -> Edges:
        """Return the edges `found` from `begin`: of devices that are there, and with their comings and goings.

        A device that is on comes when it arrives, and goes when it departs; off comes before on, as ever.
        """
        times, devices, states = found
        arrive, depart = self._stay
        there = ((arrive[devices] <= 0) | (times > arrive[devices])) & (times < depart[devices])
        comes, goes = (
            self._visitors[(column[self._visitors] >= max(begin, 1)) & (column[self._visitors] < self._end)]
            for column in self._stay
        )
        at = arrive[comes]
        comes = comes[ontime.elapsed(self._availability, comes, at + 1) > ontime.elapsed(self._availability, comes, at)]
        departures = depart[goes], goes, np.zeros(len(goes), bool)
        arrivals = arrive[comes], comes, np.ones(len(comes), bool)
        return in_order([departures, (times[there], devices[there], states[there]), arrivals])

    def _state_at_zero(self) -> NDArray[np.bool_]:
        """Which moving devices are on just before time 0 counts: a window that began earlier has no edge."""
        a, devices = self._availability, self._moving
        local = a.shift[devices]
        rows = a.row[devices]
        low, high = a.windows.starts[rows], a.windows.starts[rows + 1]
        k = search(a.windows.on, low, high, local) - 1
        found = k >= low
        return found & (local < a.windows.off[np.where(found, k, 0)]) if len(a.windows.off) else found

    def _last_edge(self) -> Time:
        """Return the time after which nothing changes any more."""
        a, devices = self._availability, self._moving
        visitors = self._visitors
        rows = a.row[devices]
        filled = a.windows.counts[rows] > 0
        devices, rows = devices[filled], rows[filled]
        ends = a.windows.off[a.windows.starts[rows + 1] - 1] - a.shift[devices]
        ends = np.minimum(np.where(a.period[devices] > 0, NEVER, ends), self._stay.depart[devices])
        departs = self._stay.depart[visitors]
        moves = np.concatenate([self._stay.arrive[visitors], departs[departs < NEVER]])
        return min(max(int(ends.max(initial=-1)), int(moves.max(initial=-1))) + 1, NEVER)

    def _edges_per_ns(self) -> float:
        a, rows = self._availability, self._availability.row[self._moving]
        span = np.where(a.period[self._moving] > 0, a.period[self._moving], max(self._last, 1)).astype(float)
        return float((2 * a.windows.counts[rows] / span).sum())


def _always(devices: int) -> Stay:
    return Stay(np.zeros(devices, np.int64), np.full(devices, NEVER, np.int64))

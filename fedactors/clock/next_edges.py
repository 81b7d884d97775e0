"""The next window edge of each of many devices, and the edges until a time, in order.

Each device has a place in its recording, so that edges are not searched for: a stretch of time costs its edges and one
look at the next time of each device. All devices step together, so a stretch ends early where one of them has far more
edges than it may take steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedactors.clock.availability import Availability, Int64
from fedactors.clock.row_search import search
from fedactors.plan import NEVER, Time

Edges = tuple[Int64, Int64, NDArray[np.bool_]]  # times, devices, states after
_STEPS = 64  # of one device in one stretch


class NextEdges:
    """The next edges of `devices`, which have windows; a looping recording goes on with its next turn."""

    def __init__(self, availability: Availability, devices: Int64) -> None:
        self._availability = availability
        self._devices = devices
        self._times = np.zeros(0, np.int64)  # of each device's next edge, (devices,); NEVER after the last one
        self._places = np.zeros(0, np.int64)  # of that edge in its row: 2 k, or 2 k + 1 where window k goes off
        self._origins = np.zeros(0, np.int64)  # when the turn of the recording began
        self._ahead = no_edges()  # of a stretch that ended early
        self.seek(0)

    def seek(self, time: Time) -> None:
        """Go on with the edges at `time` and later."""
        a, devices = self._availability, self._devices
        self._ahead = no_edges()
        rows, period = a.row[devices], a.period[devices]
        low, high = a.windows.starts[rows], a.windows.starts[rows + 1]
        # an off edge may fall exactly on the end of a turn: look one turn back
        turn = np.maximum((time + a.shift[devices]) // np.maximum(period, 1) - 1, 0) * (period > 0)
        self._origins = turn * period - a.shift[devices]
        window = search(a.windows.off, low, high, time - 1 - self._origins)
        while len(later := np.flatnonzero((window == high) & (period > 0))):
            self._origins[later] += period[later]
            wanted = time - 1 - self._origins[later]
            window[later] = search(a.windows.off, low[later], high[later], wanted)
        over = window == high
        window[over] = low[over]
        comes = a.windows.on[window] + self._origins
        is_on = comes < time
        self._places = 2 * (window - low) + is_on
        self._times = np.where(over, NEVER, np.where(is_on, a.windows.off[window] + self._origins, comes))

    def until(self, end: Time) -> tuple[Edges, Time]:
        """Return the edges before `end` that were not returned yet, sorted by time, then off before on; and `end`.

        Where a device has too many of them, an earlier end is returned, and the edges before that one.
        """
        edges = [self._ahead]
        due = np.flatnonzero(self._times < end)
        for _ in range(_STEPS):
            if not len(due):
                break
            edges.append((self._times[due], self._devices[due], self._places[due] % 2 == 0))
            self._step(due)
            due = due[self._times[due] < end]
        end = int(self._times[due].min(initial=end))
        found = in_order(edges)
        stop = int(np.searchsorted(found[0], end))
        self._ahead = _part(found, slice(stop, None))
        return _part(found, slice(stop)), end

    def _step(self, due: Int64) -> None:
        """Let the devices at the places `due` go on to the edge after their next one."""
        a, devices = self._availability, self._devices[due]
        rows = a.row[devices]
        low = a.windows.starts[rows]
        place = self._places[due] + 1
        ended = place == 2 * (a.windows.starts[rows + 1] - low)
        period = a.period[devices]
        place[ended] = 0
        self._origins[due[ended]] += period[ended]
        window = low + (place >> 1)
        time = np.where(place & 1, a.windows.off[window], a.windows.on[window]) + self._origins[due]
        time[ended & (period == 0)] = NEVER
        self._places[due] = place
        self._times[due] = time


def no_edges() -> Edges:
    """Return no edges."""
    nothing = np.zeros(0, np.int64)
    return nothing, nothing, np.zeros(0, np.bool_)


def in_order(edges: Sequence[Edges]) -> Edges:
    """Return all `edges` sorted by time, then off before on."""
    times = np.concatenate([part[0] for part in edges])
    states = np.concatenate([part[2] for part in edges])
    off_first = np.concatenate([np.flatnonzero(~states), np.flatnonzero(states)])
    order = off_first[np.argsort(times[off_first], kind="stable")]
    return times[order], np.concatenate([part[1] for part in edges])[order], states[order]


def _part(edges: Edges, some: slice) -> Edges:
    times, devices, states = edges
    return times[some], devices[some], states[some]

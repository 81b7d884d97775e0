"""Arrivals and departures by absence: a device joins when it is first on, and leaves when it has been off too long."""

from __future__ import annotations

import numpy as np

from fedactors.clock import ontime
from fedactors.clock.availability import Availability, Int64, RecordingColumns
from fedactors.clock.presence import Stay
from fedactors.plan import NEVER, Time


def stay_by_absence(a: Availability, stay: Stay, after: Time) -> Stay:
    """Return when each device belongs to the population if it leaves `after` ns without being on, within its `stay`.

    It arrives with its first on-time in `stay`. It departs `after` ns after the end of the first window, from then on,
    that no other follows within `after` ns; a window that begins at that very instant keeps it. A device that is never
    on neither arrives nor departs. Devices that are always on keep their `stay`.
    """
    arrive, depart = stay.arrive.copy(), stay.depart.copy()
    moving = np.flatnonzero(a.row >= 0)
    arrive[moving] = _next(a, moving, arrive[moving])
    marks = Availability(_last_sights(a, after), a.row, a.shift, a.period)
    last_seen = _next(marks, moving, arrive[moving])
    depart[moving] = np.minimum(depart[moving], np.minimum(last_seen, NEVER - after - 1) + 1 + after)
    return without_those_gone_before(Stay(arrive, depart))


def without_those_gone_before(stay: Stay) -> Stay:
    """Return a `stay` in which devices that would join only after they leave neither arrive nor depart."""
    never = stay.arrive >= stay.depart
    return Stay(np.where(never, NEVER, stay.arrive), np.where(never, NEVER, stay.depart))


def _last_sights(a: Availability, after: Time) -> RecordingColumns:
    """Return, in place of all windows, the last nanosecond of each that none follows within `after` ns."""
    windows, rows = a.windows, a.windows.rows_filled
    period = np.zeros(len(windows.counts), np.int64)  # of each row
    period[a.row[a.row >= 0]] = a.period[a.row >= 0]
    first, last = windows.starts[:-1][rows], windows.starts[1:][rows] - 1
    following = np.roll(windows.on, -1)
    following[last] = np.where(period[rows] > 0, windows.on[first] + period[rows], NEVER)
    long = following - windows.off > after
    starts = np.concatenate(([0], np.cumsum(long)))[windows.starts].astype(np.int64)
    return RecordingColumns(starts, windows.off[long] - 1, windows.off[long])


def _next(a: Availability, devices: Int64, times: Int64) -> Int64:
    """Return the first nanosecond at or after its time in which each device is on; NEVER if there is none."""
    reached = ontime.reach(a, devices, ontime.elapsed(a, devices, times) + 1)
    found: Int64 = np.where(reached < NEVER, reached - 1, NEVER)
    return found

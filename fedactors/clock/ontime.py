"""The methods of `Availability` for many devices at once: whole columns in, whole columns out.

Each function returns what the method of the same name returns for each device, which a test checks.
"""

from __future__ import annotations

import numpy as np

from fedactors.clock.availability import Availability, Int64
from fedactors.plan import NEVER, Time

_LONG = NEVER // 4  # 36 years: sums with longer periods may not fit 64 bits, and are worked out one by one


def elapsed(a: Availability, devices: Int64, times: Int64) -> Int64:
    """Return the on-time of each device before its time, `(devices,)` ns, from a fixed origin."""
    result: Int64 = times.copy()
    moving = np.flatnonzero(a.row[devices] >= 0)
    if len(moving):
        result[moving] = _elapsed_moving(a, devices[moving], times[moving])
    return result


def reach(a: Availability, devices: Int64, work: Int64) -> Int64:
    """Return the earliest time at which each device's `elapsed` is its `work` or more; NEVER where that is not."""
    result: Int64 = work.copy()
    moving = np.flatnonzero(a.row[devices] >= 0)
    if len(moving):
        result[moving] = _reach_moving(a, devices[moving], work[moving])
    return result


def window_end(a: Availability, devices: Int64, time: Time) -> Int64:
    """Return when the window of each device around `time` ends: `time` if there is none, NEVER if it does not end."""
    return np.array([a.window_end(device, time) for device in devices.tolist()], np.int64)


def _elapsed_moving(a: Availability, devices: Int64, times: Int64) -> Int64:
    row, period = a.row[devices], a.period[devices]
    first = a.windows.starts[row]
    local = times + a.shift[devices]
    turns: Int64 = np.where(period > 0, local // np.maximum(period, 1), np.int64(0))
    local -= turns * period
    k = a.on_search.right(row, local) - 1
    inside = np.zeros_like(local)
    begun = np.flatnonzero(k >= first)
    k = k[begun]
    inside[begun] = a.before[k] + np.minimum(local[begun], a.windows.off[k]) - a.windows.on[k]
    return turns * a.total[row] + inside


def _reach_moving(a: Availability, devices: Int64, work: Int64) -> Int64:
    row, period = a.row[devices], a.period[devices]
    first = a.windows.starts[row]
    total = a.total[row]
    loops = (period > 0) & (total > 0)
    turns: Int64 = np.where(loops, (work - 1) // np.maximum(total, 1), np.int64(0))
    rest: Int64 = work - 1 - turns * total
    result = np.full(len(devices), NEVER, np.int64)
    near = turns <= NEVER // np.maximum(period, 1) + 1
    found = np.flatnonzero((rest < total) & (total > 0) & near & (period <= _LONG))
    k = np.maximum(first, a.before_search.right(row, rest) - 1)[found]
    into = a.windows.on[k] + rest[found] + 1 - a.before[k]
    result[found] = np.minimum(turns[found] * period[found] + into - a.shift[devices][found], NEVER)
    for k in np.flatnonzero(period > _LONG).tolist():
        result[k] = a.reach(int(devices[k]), int(work[k]))
    return result

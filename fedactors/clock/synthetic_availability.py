"""Synthetic availability: windows drawn from a law with readable parameters, not from a recording.

Windows last `mean_on` on average, lognormal with `sigma`, or exponential. Between them a device waits an exponential
time whose rate follows its own clock: `night` times higher at night, `weekend` times higher on Saturday and Sunday,
scaled so that its mean over the week is 1 / `mean_off`. Virtual time 0 is Monday, 0:00 UTC. Each device lives in one of
`zones`. The integral of the rate is piecewise linear, so waiting times are drawn exactly, not step by step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedactors.clock.availability import Int64, RecordingColumns
from fedactors.durations import DAY, HOUR
from fedactors.plan import Time
from fedactors.scenario.synthetic_behaviour import SyntheticBehaviour
from fedactors.streams import Purpose, stream

Float64 = NDArray[np.float64]

_WEEK = 7 * DAY
_BEFORE = 2  # days that pass before time 0, so that a run does not begin with every device off
_SECONDS_PER_TURN = 60e-6  # to draw one wait and one window, about
_SECONDS_PER_DRAW = 0.3e-6  # more of these for each device
_LEAST_TURNS = 20.0  # in a stretch that windows are drawn for
_ZONES = 0  # round number of the stream of zones; windows and waits use those behind it


class Stretch(NamedTuple):
    """The virtual time that windows are drawn for, ns."""

    before: Time  # that passes before time 0
    end: Time


def whole(law: SyntheticBehaviour) -> Stretch:
    """Return the stretch that a run has."""
    return Stretch(_BEFORE * DAY, law.days * DAY)


def drawing_seconds(law: SyntheticBehaviour, count: int) -> float:
    """Return about how many seconds it takes to draw the windows of a run."""
    return sum(whole(law)) / (law.mean_on + law.mean_off) * (_SECONDS_PER_TURN + count * _SECONDS_PER_DRAW)


def affordable(law: SyntheticBehaviour, count: int, seconds: float | None) -> Stretch:
    """Return the stretch whose windows are drawn in about `seconds`, for an estimate; the whole one for None."""
    if seconds is None or drawing_seconds(law, count) <= seconds:
        return whole(law)
    turns = max(_LEAST_TURNS, seconds / (_SECONDS_PER_TURN + count * _SECONDS_PER_DRAW))
    reached = min(round(turns * (law.mean_on + law.mean_off)), sum(whole(law)))
    before = min(_BEFORE * DAY, reached // 4)
    return Stretch(before, reached - before)


def windows(
    law: SyntheticBehaviour, count: int, seed: int, entity: int, stretch: Stretch | None = None
) -> RecordingColumns:
    """Return the windows of `count` devices over `law.days` days, a row each; they depend on (seed, entity) only.

    Those of another `stretch` are other draws by the same law.
    """
    before, end = stretch or whole(law)
    zones = np.array(law.zones, np.int64)
    local = zones[stream(seed, Purpose.AVAILABILITY, entity, _ZONES).integers(len(zones), size=count)] * HOUR
    rate = _Rate(law)
    now = np.full(count, -before, np.int64)
    row: list[Int64] = []
    on: list[Int64] = []
    off: list[Int64] = []
    turn = _ZONES
    while (going := np.flatnonzero(now < end)).size:
        turn += 2
        waits, lasts = (stream(seed, Purpose.AVAILABILITY, entity, turn + k) for k in range(2))
        wait = waits.standard_exponential(count)[going]
        start = rate.after(now[going] + local[going], wait) - local[going]
        stop = start + _lengths(law, lasts, count)[going]
        kept = (stop > 0) & (start < end)
        row.append(going[kept])
        on.append(np.maximum(start[kept], 0))
        off.append(np.minimum(stop[kept], end))
        now[going] = stop + 1  # windows never touch
    return _table(np.concatenate(row), np.concatenate(on), np.concatenate(off), count)


class _Rate:
    """The rate at which devices come on, by the hour of a device's own week; its integral and the inverse of that."""

    def __init__(self, law: SyntheticBehaviour) -> None:
        hour = np.arange(7 * 24)
        begin, stop = law.night_from, law.night_until
        clock = hour % 24
        night = (begin <= clock) & (clock < stop) if begin < stop else (clock >= begin) | (clock < stop)
        factor = np.where(night, law.night, 1.0) * np.where(hour >= 5 * 24, law.weekend, 1.0)
        self._rate = factor / factor.mean() / law.mean_off  # 1/ns, in each hour
        self._sums = np.concatenate(([0.0], np.cumsum(self._rate * HOUR)))

    def after(self, time: Int64, amount: Float64) -> Int64:
        """Return when the integral of the rate from `time` on is `amount`, ns; at least 1 ns later."""
        week, inside = time // _WEEK, time % _WEEK
        hour = inside // HOUR
        goal = self._sums[hour] + (inside % HOUR) * self._rate[hour] + amount
        turns = np.floor(goal / self._sums[-1])
        rest = goal - turns * self._sums[-1]
        k = np.minimum(np.searchsorted(self._sums, rest, side="right") - 1, 7 * 24 - 1)
        into = np.rint((rest - self._sums[k]) / self._rate[k]).astype(np.int64)
        found: Int64 = (week + turns.astype(np.int64)) * _WEEK + k * HOUR + into
        return np.maximum(found, time + 1)


def _lengths(law: SyntheticBehaviour, draws: np.random.Generator, count: int) -> Int64:
    """Return how long windows last, `(count,)` ns; at least 1."""
    if law.sigma is None:
        shares = draws.standard_exponential(count)
    else:
        shares = np.exp(law.sigma * draws.standard_normal(count) - law.sigma**2 / 2)
    lengths: Int64 = np.maximum(1, np.rint(np.minimum(shares * law.mean_on, 2.0**60))).astype(np.int64)
    return lengths


def _table(row: Int64, on: Int64, off: Int64, count: int) -> RecordingColumns:
    order = np.argsort(row, kind="stable")  # windows of one device were made in order of time
    starts = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=count)))).astype(np.int64)
    return RecordingColumns(starts, on[order], off[order])

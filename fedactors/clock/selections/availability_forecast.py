"""Forecasts of which devices will be on, from what was seen of each one until now: people's days resemble each other.

Of a stretch of time ahead, the same stretch of each of the last days is looked up, as far as it lies wholly in the past
and behind the device's arrival:

    forecast = ( sum over those days of the share of the stretch in which the device was on  +  overall ) / (days + 1)

`overall` is the share of all time since its arrival in which it was on, one half before any has passed; it counts as
one more day, and alone where no day has been seen yet. (REFL leaves the model open and uses a linear one
that each device fits to its own past; here the server fits one for each device, from its check-ins.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedactors.clock.availability import Int64
from fedactors.clock.selections.history import History
from fedactors.durations import DAY

Float64 = NDArray[np.float64]


class Forecaster:
    """Forecasts from the last `days` days."""

    def __init__(self, history: History, days: int) -> None:
        self._history, self._days = history, days

    def shares(self, clients: Int64, after: Int64, length: Int64) -> Float64:
        """Return what share of its stretch each client will be on, `(clients,)`.

        The stretch of a client begins `after` ns from now and takes `length` ns.
        """
        history, now = self._history, self._history.now
        since = history.since(clients)
        length = np.maximum(length, 1)
        total = self._overall(clients, since)
        known = np.ones(len(clients))
        for day in range(1, self._days + 1):
            begin = now + after - day * DAY
            seen = (begin >= since) & (begin + length <= now)
            if not seen.any():
                continue
            then = clients[seen]
            total[seen] += history.on_time(then, begin[seen], (begin + length)[seen]) / length[seen]
            known += seen
        return total / known

    def _overall(self, clients: Int64, since: Int64) -> Float64:
        """Return the share of all time seen in which each client was on."""
        now = np.full(len(clients), self._history.now)
        seen = now - since
        share = self._history.on_time(clients, since, now) / np.maximum(seen, 1)
        return np.where(seen > 0, share, 0.5)

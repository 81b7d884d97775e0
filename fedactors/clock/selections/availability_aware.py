"""Ask those that are likely to stay until they are done: no paper's rule, but what many servers do with a forecast.

    p_k: share of client k's trip, of `times` ns from now, in which the forecast says it is on
    draw without replacement, odds p_k^power

The forecast is fitted to what the server has seen of each device, and to nothing later (see `availability_forecast`).
With power 0 it is a draw by lot; with a high one the devices that are always on are asked all the time, and the others
are never heard.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from fedactors.clock.availability import Int64
from fedactors.clock.selections.availability_forecast import Forecaster
from fedactors.clock.selections.base import Clients, Selection, Selector, UniformSelector
from fedactors.plan import NEVER

_LEAST = 1e-9  # odds of a client that is never expected


class AvailabilityAware(Selection):
    """Prefer those that are likely to be on until their trip is over."""

    name: Literal["availability"] = "availability"
    power: float = Field(default=2.0, ge=0.0, le=100.0)
    """How much a likely client is preferred: odds are its probability to this power."""
    days: int = Field(default=7, ge=1, le=366)
    """How many days the forecast looks back."""

    def start(self, clients: Clients) -> Selector:
        """Return the selection at work."""
        return AvailabilitySelector(self, clients)


class AvailabilitySelector(UniformSelector):
    """Draws by forecast."""

    def __init__(self, options: AvailabilityAware, clients: Clients) -> None:
        self._power = options.power
        self._forecast = Forecaster(clients.history, options.days)
        self._times = np.minimum(clients.times, min(clients.deadline, NEVER // 4))

    def choose(self, candidates: Int64, count: int, version: int, random: np.random.Generator) -> Int64:
        """Return `count` of `candidates`."""
        if count >= len(candidates):
            return candidates
        now = np.zeros(len(candidates), np.int64)
        odds = np.maximum(self._forecast.shares(candidates, now, self._times[candidates]), _LEAST) ** self._power
        odds = np.maximum(odds, odds.max() * 1e-12)  # as many as are asked must have a chance
        return candidates[random.choice(len(candidates), count, replace=False, p=odds / odds.sum(), shuffle=False)]

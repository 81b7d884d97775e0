"""REFL: Abdelmoniem, Sahu, Canini and Fahmy, REFL: Resource-Efficient Federated Learning, 2023.

Intelligent participant selection: the server keeps an average of how long rounds take, and
asks first those that are least likely to be there in the round after this one.

    mu <- (1 - alpha) D + alpha mu            # D: how long the last round took, alpha = 0.25
    p_k: probability that client k is available in the slot [mu, 2 mu] from now
    sort clients by p_k, ascending ; shuffle those that are equal ; ask the first N

Its adaptive target, N less the stragglers that are still expected, is what `timing: semi-synchronous` does: it asks as
many as are missing to `concurrency`. Its staleness-aware aggregation is `staleness: refl` of the timing.

Deviations: before there was a round, mu is the median of the undisturbed times of trips. D is the time between two
selections, without that in which an edge waits for the cloud. p_k is a forecast of the
server from the past of each device (`availability_forecast`), where the paper's devices forecast for themselves.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from fedactors.clock.availability import Int64
from fedactors.clock.selections.availability_forecast import Forecaster
from fedactors.clock.selections.base import Clients, Selection, Selector
from fedactors.plan import NEVER


class Refl(Selection):
    """Ask those first that will soon be away."""

    name: Literal["refl"] = "refl"
    alpha: float = Field(default=0.25, ge=0.0, lt=1.0)
    """What the average of earlier rounds counts beside the last one."""
    days: int = Field(default=7, ge=1, le=366)
    """How many days the forecast looks back."""
    rest: int = Field(default=0, ge=0, le=1_000_000)
    """Selections during which a client that was asked is passed over, if there are others."""

    def start(self, clients: Clients) -> Selector:
        """Return the selection at work."""
        return ReflSelector(self, clients)


class ReflSelector:
    """Knows how long rounds take, and when each client was asked last."""

    def __init__(self, options: Refl, clients: Clients) -> None:
        self._o = options
        self._history = clients.history
        self._forecast = Forecaster(clients.history, options.days)
        self._mu = float(np.median(clients.times)) if len(clients.times) else 0.0
        self._last = np.full(len(clients.samples), -1 - options.rest)  # number of the selection
        self._number = 0
        self._round = (-1, 0)  # version of the last selection, and the time that rounds took until then

    def choose(self, candidates: Int64, count: int, version: int, random: np.random.Generator) -> Int64:
        """Return the `count` of `candidates` that are least likely to be on in the next round."""
        self._measure(version)
        slot = np.full(len(candidates), min(max(1, round(self._mu)), NEVER // 4), np.int64)
        shuffled = random.permutation(len(candidates))
        likely = self._forecast.shares(candidates, slot, slot)[shuffled]
        resting = self._number - self._last[candidates[shuffled]] <= self._o.rest
        chosen = candidates[shuffled[np.lexsort((likely, resting))[:count]]]  # stable: equal ones stay shuffled
        self._last[chosen] = self._number
        self._number += 1
        return chosen

    def _measure(self, version: int) -> None:
        """Take in how long the last round took: the time between selections for different versions."""
        before, then = self._round
        now = self._history.in_rounds
        if version == before:
            return
        if before >= 0:
            self._mu = (1 - self._o.alpha) * (now - then) / (version - before) + self._o.alpha * self._mu
        self._round = (version, now)

"""Power-of-choice: Cho, Wang and Joshi, Client Selection in Federated Learning, 2020, section 3.

    draw d candidates without replacement, client k with probability p_k = n_k / n
    ask those of them whose local loss is highest

Of the paper's three ways to know the losses this is pi_rpow-d, the one that costs neither messages nor computation: a
client's loss is the mean over its last trip's local steps, and one never asked is taken before all others. Of those
with equal losses the first drawn are asked.

The paper then takes the plain mean, `participation: uniform`; with weights by samples, as they are by default, clients
count about as their samples squared.

Deviation: a client that was asked, but of which no loss is known, because it was never heard, counts as the mean of all
losses known (0 if there are none). In the paper everybody who is asked answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedactors.clock.availability import Int64
from fedactors.clock.selections.base import Clients, Loss, Selection, Selector, WeightedSelector
from fedactors.plan import Plan


class PowerOfChoice(Selection):
    """Of some candidates, ask those with the highest loss."""

    steers: ClassVar[bool] = True
    draws_by_samples: ClassVar[bool] = True

    name: Literal["power-of-choice"] = "power-of-choice"
    candidates: int = Field(ge=1, le=10_000_000)
    """Clients drawn, of which those with the highest loss are asked (d); as many as are asked is a draw by samples."""

    def start(self, clients: Clients) -> Selector:
        """Return the selection at work."""
        return PowerOfChoiceSelector(clients.samples, self.candidates)


class PowerOfChoiceSelector(WeightedSelector):
    """Remembers every client's last loss."""

    def __init__(self, weights: Int64, candidates: int) -> None:
        super().__init__(weights)
        self._most = candidates
        self._loss = np.full(len(weights), np.nan)  # NaN where it is not known
        self._asked = np.zeros(len(weights), bool)

    def choose(self, candidates: Int64, count: int, version: int, random: np.random.Generator) -> Int64:
        """Return the `count` of d drawn whose loss is highest."""
        drawn = super().choose(candidates, max(count, self._most), version, random)
        if len(drawn) == len(candidates):  # which are in the order of their numbers
            drawn = random.permutation(drawn)
        return drawn[np.argsort(-self._expected(drawn), kind="stable")[:count]]

    def learned(self, plan: Plan, losses: Mapping[int, Loss]) -> None:
        """Take in the losses of a round."""
        for client, loss in losses.items():
            self._loss[client] = loss.mean
        self._asked[plan.orders.client] = True

    def _expected(self, clients: Int64) -> NDArray[np.float64]:
        """Return the loss that each client counts as."""
        known = ~np.isnan(self._loss)
        mean = self._loss[known].mean() if known.any() else 0.0
        unknown = np.where(self._asked[clients], mean, np.inf)
        return np.where(known[clients], self._loss[clients], unknown)

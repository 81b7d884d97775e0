"""Power-of-choice: Cho, Wang and Joshi, Client Selection in Federated Learning, 2020, section 3.

    draw d candidates without replacement, client k with probability p_k = n_k / n
    ask those of them whose local loss is highest

Of the paper's three ways to know the losses this is pi_rpow-d, the one that costs neither messages nor computation: a
client's loss is the mean over its last trip's local steps, and one never heard is taken before all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from fedactors.clock.availability import Int64
from fedactors.clock.selections.base import Clients, Loss, Selection, Selector, WeightedSelector
from fedactors.plan import Plan


class PowerOfChoice(Selection):
    """Of some candidates, ask those with the highest loss."""

    steers: ClassVar[bool] = True

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
        self._most, self._loss = candidates, np.full(len(weights), np.inf)

    def choose(self, candidates: Int64, count: int, version: int, random: np.random.Generator) -> Int64:
        """Return the `count` of d drawn whose loss is highest."""
        drawn = super().choose(candidates, max(count, self._most), version, random)
        return drawn[np.argsort(-self._loss[drawn], kind="stable")[:count]]

    def learned(self, plan: Plan, losses: Mapping[int, Loss]) -> None:
        """Take in the losses of a round."""
        for client, loss in losses.items():
            self._loss[client] = loss.mean

"""FedCS: Nishio and Yonetani, Client Selection for Federated Learning with Heterogeneous Resources, 2019, Algorithm 3.

With K' the clients that were polled, T^d_S the time in which the model reaches all of S (that of the slowest download),
t^UD_k the time of k's update, t^UL_k that of its upload, one upload after the other, and Theta the time until the last
one:

    S <- {} ; Theta <- 0
    while K' is not empty:
        x <- argmax_{k in K'}  1 / ( T^d_{S+k} - T^d_S + t^UL_k + max(0, t^UD_k - Theta) ) ;  remove x from K'
        Theta' <- Theta + t^UL_x + max(0, t^UD_x - Theta)
        if T^d_{S+x} + Theta' < T_round:   Theta <- Theta' ; S <- S + x

T_round is the scenario's `deadline`, or the edge's, unless `within` is given; without any all that are polled fit.
Times are those of undisturbed trips. T_cs and T_agg of the paper, for selecting and aggregating, are 0 here.

Deviations: at most as many are asked as the scenario's cohort has; if nobody fits, the first x is asked alone, because
a round needs somebody. The rule counts uploads one after the other, as the paper has it; in the clock every device has
a link of its own, so the trips of those chosen end earlier than the rule says, and no device of them is late by its own
times.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedactors.clock.availability import Int64
from fedactors.clock.selections.base import Clients, Selection, Selector, Stages, UniformSelector
from fedactors.scenario.units import NONE_IS_NULL, Duration


class FedCS(Selection):
    """Ask as many as can be done within a round, the fastest first."""

    name: Literal["fedcs"] = "fedcs"
    polled: int = Field(default=100, ge=1, le=100_000)
    """How many clients, drawn by lot, are asked for their resources (the paper: K C); at least the cohort."""
    within: Annotated[Duration | None, NONE_IS_NULL] = Field(default=None, gt=0)
    """How long the round may take (T_round); by default the deadline."""

    def start(self, clients: Clients) -> Selector:
        """Return the selection at work."""
        nothing = np.zeros(len(clients.times), np.int64)
        stages = clients.stages or Stages(nothing, clients.times, nothing)
        return FedCSSelector(stages, self.polled, self.within or clients.deadline)


class FedCSSelector(UniformSelector):
    """Knows how long the stages of each client take."""

    def __init__(self, stages: Stages, polled: int, within: int) -> None:
        self._down, self._compute, self._up = (column.astype(float) for column in stages)
        self._polled, self._within = polled, within

    def choose(self, candidates: Int64, count: int, version: int, random: np.random.Generator) -> Int64:
        """Return those of the polled that fit into a round, at most `count`."""
        polled = super().choose(candidates, max(count, self._polled), version, random)
        left = np.sort(polled)
        alone: list[int] = []
        chosen: list[int] = []
        sent = done = 0.0  # T^d_S and Theta
        while len(left) and len(chosen) < count:
            place = int(np.argmin(self._cost(left, sent, done)))
            x = int(left[place])
            left = np.delete(left, place)
            alone = alone or [x]
            last = done + self._up[x] + max(0.0, self._compute[x] - done)
            if max(sent, self._down[x]) + last < self._within:
                sent, done = max(sent, self._down[x]), last
                chosen.append(x)
        return np.array(chosen or alone, np.int64)

    def _cost(self, clients: Int64, sent: float, done: float) -> NDArray[np.float64]:
        """Return by how much each client would lengthen the round."""
        longer: NDArray[np.float64] = np.maximum(self._down[clients] - sent, 0.0) + self._up[clients]
        return longer + np.maximum(0.0, self._compute[clients] - done)

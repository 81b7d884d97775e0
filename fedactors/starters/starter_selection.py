"""A selection: which clients the server asks in a round. This one prefers clients that it has not asked for long.

Others to look at are in the folder fedactors/clock/selections. One that uses the losses of training has

    steers: ClassVar[bool] = True

in its class, so that a run waits for the losses of a round before the next one is drawn, and `learned` in its selector:

    def learned(self, plan: Plan, losses: Mapping[int, Loss]) -> None:
        for client, loss in losses.items():
            self._loss[client] = loss.mean
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedactors.clock.selections.base import Clients, Selection, UniformSelector


class StarterSelection(Selection):
    """Ask the clients whose last turn is longest ago, and some at random."""

    # The fields are what a scenario may write:  selection: {name: starter, random_share: 0.5}
    name: Literal["starter"] = "starter"
    random_share: float = Field(default=0.25, ge=0.0, le=1.0)
    """Share of the cohort that is drawn at random."""

    def start(self, clients: Clients) -> UniformSelector:
        """Return the selector of one run; `clients` has the columns samples, and times: ns of an undisturbed trip."""
        return _TurnSelector(len(clients.samples), self.random_share)


class _TurnSelector(UniformSelector):
    """The selection at work: it may keep what it needs from round to round."""

    def __init__(self, clients: int, random_share: float) -> None:
        self._last = np.full(clients, -1)  # round of each client's last turn
        self._random_share = random_share

    def choose(
        self, candidates: NDArray[np.int64], count: int, version: int, random: np.random.Generator
    ) -> NDArray[np.int64]:
        """Return at most `count` of `candidates`, which are ascending; `random` is the stream of this round."""
        count = min(count, len(candidates))
        at_random = int(count * self._random_share)
        by_turn = candidates[np.argsort(self._last[candidates], kind="stable")]
        waiting = by_turn[: count - at_random]
        drawn = random.choice(by_turn[count - at_random :], at_random, replace=False)
        chosen = np.concatenate([waiting, drawn])
        self._last[chosen] = version
        return chosen

"""Importance sampling: clients are drawn with chosen probabilities, and weights make up for them.

Client k is asked with probability pi_k, known before the draw. Weights p_k / pi_k give every client its p_k on average
(Horvitz and Thompson, A Generalization of Sampling Without Replacement From a Finite Universe, 1952; for federated
learning Chen, Horvath and Richtarik, Optimal Client Sampling for Federated Learning, 2022). They are what
`participation: {name: B, weights: unbiased}` gives together with this selection; C scales incomplete work up besides.

    pi_k = min(1, c odds_k),  c such that the pi_k add up to the number S that is asked
    odds_k = n_k^samples times the odds of its group

The draw is systematic (Madow, On the Theory of Systematic Sampling, II, 1949): clients in random order lie one after
the other on a line, each pi_k long; those are asked on which the points u, u + 1, u + 2, ... fall, u uniform in [0, 1).
So exactly S are asked, and each with exactly its pi_k. Those whose odds would give them more than 1 are asked always.

Deviation: Chen et al. draw by the norms of the updates, and each client independently; here probabilities depend on
what is known before training, because weights have to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedactors.clock.availability import Int64
from fedactors.clock.selections.base import Clients, Selection, Selector, UniformSelector
from fedactors.errors import suggestion

Float64 = NDArray[np.float64]


class Importance(Selection):
    """Draw by odds, so that weights can be unbiased."""

    name: Literal["importance"] = "importance"
    samples: float = Field(default=1.0, ge=-4.0, le=4.0)
    """Odds grow with this power of a client's samples; 0: all alike."""
    odds: dict[str, Annotated[float, Field(gt=0.0, le=1e6)]] = Field(default_factory=dict)
    """By what the odds of the devices of a population group are multiplied, by its name: `{kiosks: 3}`."""

    def start(self, clients: Clients) -> Selector:
        """Return the selection at work."""
        return ImportanceSelector(self._odds(clients))

    def chances(self, clients: Clients, candidates: Int64, count: int) -> Float64:
        """Return the probability with which each of `candidates` is among `count` that are asked."""
        return inclusion(self._odds(clients)[candidates], count)

    def problem(self, groups: Sequence[str], among: str, participation: Any) -> str:
        """Say if odds are given to a group that does not exist, or weights cannot be unbiased."""
        if getattr(participation, "weights", "") == "unbiased":
            if among != "members":
                return (
                    "name: importance with participation.weights: unbiased draws among all members, because who is off"
                    f" would have no chance (found among: {among}; accepted: among: members)"
                )
            if participation.for_missing:
                return (
                    f"name: importance weighs by 1 / pi_k, and participation {participation.name} by who is complete"
                    " (accepted: participation B or C)"
                )
        for name in self.odds:
            if name not in groups:
                return f'odds: no population group "{name}"{suggestion(name, groups)}'
        return ""

    def _odds(self, clients: Clients) -> Float64:
        names = [name for name, _ in clients.groups]
        factor = [self.odds.get(name, 1.0) for name in names]
        of_group = np.repeat(factor, [count for _, count in clients.groups]) if names else 1.0
        odds: Float64 = np.maximum(clients.samples, 1).astype(float) ** self.samples * of_group
        return odds


class ImportanceSelector(UniformSelector):
    """Draws systematically."""

    def __init__(self, odds: Float64) -> None:
        self._odds = odds

    def choose(self, candidates: Int64, count: int, version: int, random: np.random.Generator) -> Int64:
        """Return `count` of `candidates`."""
        if count >= len(candidates):
            return candidates
        chances = inclusion(self._odds[candidates], count)
        always = chances >= 1.0
        rest = random.permutation(np.flatnonzero(~always))
        wanted = count - int(always.sum())
        ends = np.cumsum(chances[rest])
        ends *= wanted / ends[-1]
        places = np.searchsorted(ends, random.random() + np.arange(wanted), side="right")
        drawn = rest[np.minimum(places, len(rest) - 1)]  # the last point may be rounded up to the last end
        chosen: Int64 = candidates[np.concatenate([np.flatnonzero(always), drawn])]
        return chosen


def inclusion(odds: Float64, count: int) -> Float64:
    """Return min(1, c odds) with c such that they add up to `count`; 1 for all if there are not more."""
    if count >= len(odds):
        return np.ones(len(odds))
    chances = np.ones(len(odds))
    rest = np.ones(len(odds), bool)
    while rest.any():
        chances[rest] = odds[rest] * ((count - np.count_nonzero(~rest)) / odds[rest].sum())
        more = rest & (chances >= 1.0)
        chances[more] = 1.0
        if not more.any():
            break
        rest &= ~more
    return chances

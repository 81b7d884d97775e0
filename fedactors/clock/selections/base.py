"""Which clients the server asks, of those it could ask: a policy of its own, chosen as `server.selection`.

    uniform        at random, every client with the same probability
    samples        at random, with odds proportional to sample counts (McMahan et al. 2017's weights as odds)
    round-robin    one after the other by number, so that no client is asked twice before all others are asked once

Policies that use the losses of training are in files of their own: power_of_choice, oort. They `steer`: a run under
them waits for the losses of a round before it draws the next one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, NamedTuple, Protocol

import numpy as np

from fedactors.clock.availability import Int64
from fedactors.options import Options
from fedactors.plan import Plan


class Loss(NamedTuple):
    """What is known of a trip's training: over its local steps, each with the mean loss of its batch."""

    mean: float
    square: float  # mean of squares


class Clients(NamedTuple):
    """What a selection may know of the clients before anything runs, in columns `(clients,)`."""

    samples: Int64
    times: Int64  # ns that a trip takes undisturbed


class Selector(Protocol):
    """A selection at work in one run."""

    def choose(self, candidates: Int64, count: int, version: int, random: np.random.Generator) -> Int64:
        """Return at most `count` of `candidates`, which are ascending and not empty; in any order."""
        ...

    def learned(self, plan: Plan, losses: Mapping[int, Loss]) -> None:
        """Receive the losses of the clients heard in `plan`; called only for policies that steer."""
        ...


class Selection(Options):
    """Base of all selections."""

    steers: ClassVar[bool] = False
    """Whether it looks at losses, so that a run has to wait for them."""

    name: str

    def start(self, clients: Clients) -> Selector:
        """Return the selection at work at the beginning of a run."""
        raise TypeError(f"{type(self).__name__} does not define how it selects")


class UniformSelection(Selection):
    """Everybody has the same chance."""

    name: Literal["uniform"] = "uniform"

    def start(self, clients: Clients) -> Selector:
        """Return the selection at work."""
        return UniformSelector()


class SampleSelection(Selection):
    """Chances are proportional to sample counts."""

    name: Literal["samples"] = "samples"

    def start(self, clients: Clients) -> Selector:
        """Return the selection at work."""
        return WeightedSelector(clients.samples)


class RoundRobinSelection(Selection):
    """Clients take turns by number; those that cannot be asked when it is their turn are passed over."""

    name: Literal["round-robin"] = "round-robin"

    def start(self, clients: Clients) -> Selector:
        """Return the selection at work."""
        return RoundRobinSelector()


class UniformSelector:
    """Draws without replacement, every client with the same probability."""

    def choose(self, candidates: Int64, count: int, version: int, random: np.random.Generator) -> Int64:
        """Return `count` of `candidates`."""
        if count >= len(candidates):
            return candidates
        return candidates[random.choice(len(candidates), count, replace=False, shuffle=False)]

    def learned(self, plan: Plan, losses: Mapping[int, Loss]) -> None:
        """Ignore the losses."""


class WeightedSelector(UniformSelector):
    """Draws without replacement, with odds."""

    def __init__(self, weights: Int64) -> None:
        self._weights = weights.astype(float)

    def choose(self, candidates: Int64, count: int, version: int, random: np.random.Generator) -> Int64:
        """Return `count` of `candidates`."""
        if count >= len(candidates):
            return candidates
        odds = self._weights[candidates]
        return candidates[random.choice(len(candidates), count, replace=False, p=odds / odds.sum(), shuffle=False)]


class RoundRobinSelector(UniformSelector):
    """Draws clients by number, from the one behind the last."""

    def __init__(self) -> None:
        self._next = 0

    def choose(self, candidates: Int64, count: int, version: int, random: np.random.Generator) -> Int64:
        """Return the next `count` of `candidates`."""
        start = int(np.searchsorted(candidates, self._next))
        chosen = np.concatenate([candidates[start:], candidates[:start]])[:count]
        self._next = int(chosen[-1]) + 1
        return chosen

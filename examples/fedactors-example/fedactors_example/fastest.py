"""A selection of the fastest clients."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedactors.clock.selections.base import Clients, Selection, UniformSelector


class Fastest(Selection):
    """Select the clients with the shortest undisturbed trips; ties by number. Fast, and unfair."""

    name: Literal["fastest"] = "fastest"

    def start(self, clients: Clients) -> UniformSelector:
        """Return the selector of a run over `clients`."""
        return _FastestSelector(clients.times)


class _FastestSelector(UniformSelector):
    def __init__(self, times: NDArray[np.int64]) -> None:
        self._times = times

    def choose(
        self, candidates: NDArray[np.int64], count: int, version: int, random: np.random.Generator
    ) -> NDArray[np.int64]:
        """Return the fastest `count` of `candidates`."""
        return candidates[np.argsort(self._times[candidates], kind="stable")[:count]]

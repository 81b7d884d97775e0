"""The selection of one edge: it knows the edge's clients alone, and what other edges ask does not come into it."""

from __future__ import annotations

import numpy as np

from fedactors.clock.availability import Int64
from fedactors.clock.selections.base import Selector, choice_of


class EdgeSelector:
    """Asks a `selector` that knows clients by their places among the members of the edge, as candidates are given."""

    def __init__(self, selector: Selector) -> None:
        self._selector = selector
        self._asked = 0  # times

    def choose(self, candidates: Int64, count: int, version: int, random: np.random.Generator) -> Int64:
        """Return `count` of `candidates`."""
        chosen = choice_of(self._selector, candidates, count, self._asked, random)
        self._asked += 1
        return chosen

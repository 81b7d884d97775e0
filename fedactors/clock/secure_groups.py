"""Groups of secure aggregation: who is summed with whom, and which groups have too few survivors to be unmasked.

A round's clients are put into groups by lot, as equal in size as can be, `group` members at most. Whether a group
survives is a matter of timing alone: at least ceil(threshold members) of its updates have to arrive before the round
closes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedactors.plan import OUTCOME_CODES, Orders, Outcome
from fedactors.scenario.costs.secure_options import SecureAggregation
from fedactors.streams import Purpose, stream


class SecureGroups:
    """The groups of a run."""

    def __init__(self, options: SecureAggregation, seed: int) -> None:
        self._options, self._seed = options, seed

    def recovered(self, orders: Orders, version: int) -> Orders:
        """Return the orders of a round, of which those heard are lost whose group has too few survivors."""
        groups = -(-len(orders) // self._options.group)
        order = stream(self._seed, Purpose.SECURE_GROUPS, 0, version).permutation(len(orders))
        heard = orders.is_heard
        outcome = orders.outcome.copy()
        for members in np.array_split(order, groups):
            survivors = members[heard[members]]
            if len(survivors) < self._options.survivors(len(members)):
                outcome[survivors] = OUTCOME_CODES[Outcome.LOST]
        return replace(orders, outcome=outcome)

"""Weights of updates of a cohort that was drawn: over all members, and made up for the probability of being drawn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedactors.algorithms.participation import Members, Scheme
from fedactors.clock.selections.base import Clients
from fedactors.plan import Plan
from fedactors.simulation.dealt import Dealt


def counted_over_all(shares: Sequence[float], plan: Plan, dealt: Dealt, members: Members) -> Sequence[float]:
    """Return the weights of a scheme: `shares`, those of the updates heard, as its option `weights` has them.

    Where the selection draws by odds, unbiased weights are p_k / pi_k, pi_k a client's probability to be asked; where
    it does not, they are N / S p_k.
    """
    server, asked = dealt.scenario.server, len(plan.orders)
    assert isinstance(server.participation, Scheme)
    if server.participation.weights == "unbiased":
        people = dealt.population
        work = dealt.workload_table.all()
        there = (people.arrive <= plan.opened) & (plan.opened < people.depart)
        candidates = np.flatnonzero(there & (work.wanted > 0))
        samples = np.where(work.wanted > 0, work.held, 0)
        clients = Clients(samples, np.zeros(len(samples), np.int64), groups=dealt.scenario.groups)
        chances = server.selection.chances(clients, candidates, asked)
        if chances is not None:
            of_heard = chances[np.searchsorted(candidates, plan.heard().client)]
            weights: list[float] = (np.asarray(shares) / of_heard).tolist()
            return weights
    return server.participation.counted(shares, members, asked)

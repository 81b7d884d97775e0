"""Whom the edges ask: each has a selection of its own, which knows nothing of what is beyond the edge."""

import numpy as np
import pytest

from fedactors.clock.selections.refl import Refl
from fedactors.plan import SECOND
from fedactors.simulation.prepare import prepare
from tests.clock.test_hierarchy import FAST, scenario


def equal_edges(cohort=2, count=10, **more):
    """Return two edges and their equal groups, whose selections draw."""
    edges = [{"name": name, "cohort": cohort, "network": FAST} for name in ("north", "south")]
    groups = [{"name": name, "count": count, "edge": name, **more} for name in ("north", "south")]
    return edges, groups


def times_asked(made):
    return sum(np.bincount(plan.orders.client, minlength=made.devices) for plan in prepare(made).clock())


def test_turns_go_round_at_each_edge():
    """24 cloud rounds of two edges, two rounds each, two clients: 96 asked at an edge, of 10 clients."""
    asked = times_asked(scenario(*equal_edges(), edge_rounds=2, rounds=120, selection="round-robin"))
    assert [sum(edge) for edge in (asked[:10], asked[10:])] == [96, 96]
    assert set(asked.tolist()) == {9, 10}


@pytest.fixture
def started(monkeypatch):
    """Return a list to which every selection of REFL that starts is added."""
    found, start = [], Refl.start

    def noted(self, clients):
        found.append(start(self, clients))
        return found[-1]

    monkeypatch.setattr(Refl, "start", noted)
    return found


@pytest.mark.parametrize("mixing", [None, 0.5])
def test_refl_knows_the_rounds_of_each_edge(started, mixing):
    """Trips of two steps of ten samples take 20 s at north and 140 s at south, and rounds as long; links take no time.

    Whether an edge waits for the other, or goes on by itself, is no part of it. The first mu is the edge's own median.
    """
    edges, groups = equal_edges()
    for group, speed in zip(groups, ("1s", "7s"), strict=True):
        group.update(compute={"per_sample": speed}, network=FAST)
    timing = {"name": "hierarchical", "edge_rounds": 4, "edges": edges, "mixing": mixing}
    local = {"steps": 2, "batch": 10}
    clock = prepare(scenario(groups=groups, rounds=60, selection="refl", timing=timing, local=local)).clock()
    assert [round(one._mu / SECOND) for one in started] == [20, 140]
    plans = list(clock)
    assert {(plan.tier.edge, round((plan.closed - plan.opened) / SECOND)) for plan in plans} >= {(0, 20), (1, 140)}
    assert [round(one._mu / SECOND) for one in started] == [20, 140]


def test_selections_know_the_deadline_of_their_edge():
    """FedCS asks those who are done within 2 s, whether that is the deadline of the server or of the edge alone."""
    found = []
    for edge, server in (({}, {"deadline": "2s"}), ({"deadline": "2s"}, {}), ({"deadline": "2s"}, {"deadline": "1h"})):
        edges = [{"name": "one", "cohort": 38, "network": FAST, **edge}]
        groups = [{"name": "all", "count": 40, "edge": "one", "compute": {"per_sample": "200ms", "spread": 1.5}}]
        local = {"steps": 2, "batch": 10}
        made = prepare(scenario(edges, groups, rounds=8, selection="fedcs", local=local, **server))
        found.append([plan.orders for plan in made.clock()])
    assert found[0] == found[1] == found[2]
    assert all(order.outcome == "complete" for orders in found[0] for order in orders)


def test_tiers_are_those_of_each_edge():
    """North's clients are all faster than south's. Each edge has a fast tier of its own, and asks nobody else."""
    edges, groups = equal_edges(cohort=2, count=2)
    speeds = zip(("fast", "slow", "fast", "slow"), ("1ms", "2ms", "10ms", "20ms"), strict=True)
    groups = [
        {**groups[k // 2], "name": f"{name} {k}", "compute": {"per_sample": speed}}
        for k, (name, speed) in enumerate(speeds)
    ]
    selection = {"name": "tiers", "tiers": 2, "probabilities": [1.0, 0.0]}
    asked = times_asked(scenario(edges, groups, rounds=30, selection=selection, local={"steps": 1, "batch": 1}))
    assert asked.tolist() == [10, 10, 0, 0, 10, 10, 0, 0]


def test_odds_are_those_of_the_groups_of_each_edge():
    """One is asked at each edge: the second group of north has a million times the odds, and so has that of south."""
    edges, _ = equal_edges(cohort=1)
    groups = [{"name": f"{edge} {kind}", "count": 3, "edge": edge} for edge in ("north", "south") for kind in "ab"]
    odds = {"north b": 1e6, "south b": 1e6}
    asked = times_asked(scenario(edges, groups, rounds=30, selection={"name": "importance", "odds": odds}))
    assert asked[[0, 1, 2, 6, 7, 8]].sum() == 0
    assert asked.sum() == 20

"""Drawing among those who are free by place: the same clients as out of a list of all candidates, without the list."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedactors.clock.asynchronous import Rules, asynchronous
from fedactors.clock.presence import Presence
from fedactors.clock.selections import free_clients
from fedactors.clock.selections.base import UniformSelector
from fedactors.clock.selections.free_clients import FreeClients
from fedactors.clock.trip import TripPlanner
from fedactors.clock.world import World
from fedactors.plan import NEVER
from fedactors.simulation.prepare import prepare
from fedactors.workload import workload
from tests.clock.test_asynchronous import populations
from tests.clock.test_hierarchy import FAST, scenario
from tests.clock.test_trip import devices
from tests.clock.world_builder import availability, population
from tests.examples import drawn

BUFFERED = Rules(
    rounds=30, concurrency=20, updates=5, every=None, deadline=None, until=None, among="available",
    max_staleness=None, waits=False, before=0, during=0, after=0,
)  # fmt: skip


class Listed(UniformSelector):
    """The uniform selection, as one of a user who wants the list of the candidates."""

    def choose(self, candidates, count, version, random):
        return super().choose(candidates, count, version, random)


class CountingWorld(World):
    """A world that counts the clients at which its server looked."""

    looked_at = 0

    def ready(self, among, clients=slice(None)):
        found = super().ready(among, clients)
        type(self).looked_at += len(found)
        return found


def played(members, rules, selector, seed=1, make=World):
    people = population(members)
    works = [workload(m.get("samples", 3), 1, epochs=None, steps=3) for m in members]
    world = make(people, TripPlanner(people, 5, 3), works, seed)
    world.selector = selector
    process = world.env.process(asynchronous(world, rules))
    while process.is_alive:
        world.env.step()
    if not process.ok:
        raise process.value
    return list(world.plans), process.value


@pytest.fixture(params=[2, 1_024])
def block(request, monkeypatch):
    monkeypatch.setattr(free_clients, "_BLOCK", request.param)


@pytest.mark.usefixtures("block")
@drawn(100)
@given(
    st.lists(devices(), min_size=1, max_size=9),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 8), st.booleans()), min_size=1, max_size=12),
)
def test_the_free_are_those_present_and_not_held(members, acts):
    presence, held, time = Presence(availability(members)), set(), 0
    free = FreeClients(presence)
    for wait, number, hold in acts:
        time += wait
        free.advance(time)
        client = number % len(members)
        (free.hold if hold else free.release)(client)
        (held.add if hold else held.discard)(client)
        expected = [k for k in np.flatnonzero(presence.on).tolist() if k not in held]
        assert len(free) == len(expected)
        assert free.all().tolist() == expected
        for places in (list(range(len(expected)))[::-1], list(range(len(expected)))[:1]):
            assert free.at(np.array(places, np.int64)).tolist() == [expected[k] for k in places]


@pytest.mark.usefixtures("block")
@drawn(100)
@given(populations(), st.integers(0, 5))
def test_plans_are_those_of_a_drawing_out_of_all_candidates(found, seed):
    members, rules = found
    assert played(members, rules, UniformSelector(), seed) == played(members, rules, Listed(), seed)


@pytest.mark.parametrize("among", ["available", "members"])
def test_plans_of_many_are_those_of_a_drawing_out_of_all_candidates(among):
    """12,000 devices: beyond 10,000 NumPy draws in another way. A third comes and goes, some join late or leave."""
    random = np.random.default_rng(3)
    coming_and_going = {"windows": [(0, 40)], "period": 90}
    late, early = {"arrive": 150}, {"depart": 200}
    members = [
        {"per_sample": int(speed), "samples": 2, "shift": int(shift) if k % 3 == 0 else 0}
        | (coming_and_going if k % 3 == 0 else {})
        | ([late, early][k % 2] if k % 7 == 0 else {})
        for k, (speed, shift) in enumerate(random.integers((10, 0), (90, 90), (12_000, 2)))
    ]
    rules = Rules(**{**vars(BUFFERED), "among": among})
    assert played(members, rules, UniformSelector()) == played(members, rules, Listed())


def test_an_update_costs_no_look_at_everybody():
    """30 aggregations of 5 updates: the uniform server lists nobody, one that wants the candidates lists all."""
    members = [{"per_sample": 10 + k % 50, "depart": NEVER} for k in range(3_000)]
    looks = []
    for selector in (UniformSelector(), Listed()):
        CountingWorld.looked_at = 0
        played(members, BUFFERED, selector, make=CountingWorld)
        looks.append(CountingWorld.looked_at)
    assert looks[0] == 0
    assert looks[1] > 100 * 3_000


def test_a_round_of_an_edge_looks_at_the_clients_of_the_edge(monkeypatch):
    """Four edges of 50 clients, two rounds each before the cloud's: every look is at 50 clients."""
    looks, ready = [], World.ready

    def noted(self, among, clients=slice(None)):
        found = ready(self, among, clients)
        looks.append(len(found))
        return found

    monkeypatch.setattr(World, "ready", noted)
    edges = [{"name": f"edge {k}", "cohort": 3, "network": FAST} for k in range(4)]
    groups = [{"name": f"group {k}", "count": 50, "edge": f"edge {k}"} for k in range(4)]
    plans = list(prepare(scenario(edges, groups, edge_rounds=2, rounds=27)).clock())
    assert looks == [50] * sum(plan.tier.edge >= 0 for plan in plans)

"""Asynchronous aggregations: worked by hand, and what holds whatever the devices do."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedactors.clock.asynchronous import Rules, asynchronous
from fedactors.clock.synchronous import Rounds, synchronous
from fedactors.clock.trip import TripPlanner
from fedactors.clock.world import World
from fedactors.plan import NEVER
from fedactors.workload import workload
from tests.clock.test_trip import devices
from tests.clock.world_builder import population
from tests.examples import drawn

RULES = Rules(
    rounds=4, concurrency=2, updates=1, every=None, deadline=None, until=None, among="available",
    max_staleness=None, waits=False, before=0, during=0, after=0,
)  # fmt: skip


def play(members, policy, wanted=3, seed=1):
    people = population(members)
    works = [workload(m.get("samples", wanted), 1, epochs=None, steps=wanted) for m in members]
    world = World(people, TripPlanner(people, 5, 3), works, seed)
    process, events = world.env.process(policy(world)), 0
    while process.is_alive:
        world.env.step()
        events += 1
        assert events < 50_000, "a run that goes on for ever"  # patience ends after hundreds of trips
    if not process.ok:
        raise process.value
    return list(world.plans), process.value


def run(members, rules=RULES, **more):
    return play(members, lambda world: asynchronous(world, rules), **more)


def trips(plan):
    return [(o.client, o.base, o.outcome.value, o.started, o.finished) for o in plan.orders]


# A trip takes 5 ns down, 3 steps, 3 ns up: 38 ns at 10 ns a step, 98 ns at 30.
QUICK, SLOW = {"per_sample": 10}, {"per_sample": 30}


@pytest.mark.parametrize("waits", [False, True])
def test_devices_that_join_later_are_waited_for(waits):
    """Alone at first, or after everybody else has left, a device begins when it joins."""
    plans, why = run([{**QUICK, "arrive": 100}], replace(RULES, rounds=2, waits=waits))
    assert [(order.started, order.finished) for plan in plans for order in plan.orders] == [(100, 138), (138, 176)]
    assert why == "all rounds done"
    plans, why = run([{**QUICK, "depart": 50}, {**QUICK, "arrive": 200}], replace(RULES, rounds=3, waits=waits))
    orders = [order for plan in plans for order in plan.orders]
    complete = [(order.client, order.started) for order in orders if order.outcome.value == "complete"]
    assert complete == [(0, 0), (1, 200), (1, 238)]
    assert why == "all rounds done"


def test_each_update_counts_as_it_comes_in():
    """The quick client reports at 38, 76 and 114, the slow one, who began with version 0, at 98: two versions behind.

    When the fourth update is there, the slow client is in flight with version 3 and is cancelled.
    """
    plans, why = run([QUICK, SLOW])
    assert [(p.version, p.opened, p.closed) for p in plans] == [(0, 0, 38), (1, 38, 76), (2, 76, 98), (3, 98, 114)]
    assert trips(plans[1]) == [(0, 1, "complete", 38, 76)]
    assert trips(plans[2]) == [(1, 0, "complete", 0, 98)]
    assert trips(plans[3]) == [(0, 2, "complete", 76, 114), (1, 3, "cancelled", 98, 114)]
    assert [p.oldest for p in plans] == [0, 0, 2, 3]
    assert why == "all rounds done"


def test_a_buffer_waits_for_its_updates_and_asks_nobody_twice_for_it():
    """K = 2 of M = 2: the quick client, back at 38, has an update in the buffer and waits for the slow one."""
    plans, _ = run([QUICK, SLOW], replace(RULES, updates=2, rounds=2))
    assert [(p.opened, p.closed) for p in plans] == [(0, 98), (98, 196)]
    assert all(len(p.orders) == 2 for p in plans)


def test_places_are_filled_as_clients_come_back():
    """M = 2 of three: when the quick ones report, at 38, the third is asked beside one of them."""
    plans, _ = run([QUICK, QUICK, SLOW], replace(RULES, updates=2, rounds=3))
    busy = [(o.started, o.finished) for p in plans for o in p.orders]
    for instant in range(plans[-1].closed):
        assert sum(start <= instant < end for start, end in busy) <= 2


def test_a_bound_drops_what_is_too_far_behind():
    """The slow client of the first example is two versions behind at 98; with a bound of 1 its update is set aside."""
    plans, _ = run([QUICK, SLOW], replace(RULES, max_staleness=1))
    assert trips(plans[2])[1] == (1, 0, "stale", 0, 98)
    assert plans[2].closed == 114


def test_a_bound_can_be_waited_for():
    """With a bound of 1 and `wait`, version 1 is aggregated at 98 only, with the slow client's update in it."""
    plans, _ = run([QUICK, SLOW], replace(RULES, max_staleness=1, waits=True, rounds=2))
    assert [p.closed for p in plans] == [38, 98]
    assert trips(plans[1])[:2] == [(0, 1, "complete", 38, 76), (1, 0, "complete", 0, 98)]


def test_a_period_takes_what_has_arrived():
    """Period 50: the slow client's first trip, of 98 ns, counts in the second period, which began without it."""
    plans, _ = run([QUICK, SLOW], replace(RULES, updates=None, every=50, rounds=3))
    assert [(p.opened, p.closed) for p in plans] == [(0, 50), (50, 100), (100, 150)]
    assert trips(plans[0]) == [(0, 0, "complete", 0, 38)]
    assert trips(plans[1]) == [(0, 1, "complete", 50, 88), (1, 0, "complete", 0, 98)]


@pytest.mark.parametrize("concurrency", [2, 3])
def test_clients_are_asked_when_a_period_begins(concurrency):
    """Period 50, trips of 75: with room for two nobody can be asked at 50, nor at 75, in the middle, but at 100.

    With room for three the third is asked at 0 as well, and nobody at 50 either.
    """
    people = [{"per_sample": 67, "samples": 1}] * 6
    rules = replace(RULES, updates=None, every=50, concurrency=concurrency, rounds=6)
    plans, _ = run(people, rules, wanted=1)
    begun = [(order.started, order.finished) for plan in plans for order in plan.orders]
    assert sorted(begun) == sorted([(0, 75), (100, 175), (200, 275)] * concurrency)
    assert [len(plan.orders) for plan in plans] == [0, concurrency] * 3


@pytest.mark.parametrize("others", [[], [{**QUICK, "windows": [(0, 1)]}]])
def test_windows_of_those_at_work_cost_nothing(others):
    """Of three devices at work each has a million windows on its trip; `play` allows for thousands of events.

    A window of 20 ns of each 30: a step takes 9 ms, three of them 27 ms, which is 40.5 ms of virtual time.
    """
    people = [{"per_sample": 9_000_000, "windows": [(0, 20)], "period": 30}] * 3 + others
    plans, why = run(people, replace(RULES, updates=3, concurrency=len(people), rounds=3))
    assert why == "all rounds done"
    heard = [plan.heard() for plan in plans]
    assert [len(orders) for orders in heard] == [3, 3, 3]
    assert heard[0][0].finished == pytest.approx(40_500_000, rel=1e-3)


def test_a_deadline_is_one_of_each_trip():
    """20 ns are too few for one step of the slow client; it is asked again with the next version."""
    plans, _ = run([QUICK, SLOW], replace(RULES, deadline=20, rounds=2))
    assert trips(plans[0]) == [(0, 0, "partial", 0, 18)]
    assert (1, 0, "too_slow", 0, 20) in trips(plans[1])


def test_the_server_pays_for_its_own_work():
    plans, _ = run([QUICK], replace(RULES, concurrency=1, first=3, before=7, during=50, after=2, rounds=2))
    assert [(p.opened, p.closed, p.ready) for p in plans] == [(10, 60, 62), (69, 119, 121)]
    assert [o.started for p in plans for o in p.orders] == [10, 69]


@pytest.mark.parametrize(
    ("members", "rules", "reason", "aggregations"),
    [
        ([QUICK], {"until": 100, "rounds": 99}, "virtual time limit", 3),
        ([QUICK], {"updates": None, "every": NEVER // 2, "rounds": 9}, "virtual time reached its end, 146 years", 2),
        (
            [{**QUICK, "windows": [(0, 20)]}],
            {"among": "members", "deadline": NEVER // 2, "rounds": 9},
            "virtual time reached its end, 146 years",
            2,
        ),
        ([{**QUICK, "windows": [(0, 38)]}], {}, "nobody can be asked any more", 1),
        ([{**QUICK, "windows": [(0, 20)]}], {}, "nobody can be asked any more", 1),
        ([{**QUICK, "deadline_aware": False}], {"deadline": 20}, "101 trips in a row came to nothing", 1),
        ([{**QUICK, "windows": [(0, 20)]}], {"among": "members"}, "nobody who can be asked can ever report", 1),
        ([{**QUICK, "windows": [(0, 20)], "abort": True, "period": 30}], {}, "101 trips in a row came to nothing", 1),
        (
            [QUICK, {**QUICK, "windows": [(0, 60)], "depart": 60}],
            {"updates": 2, "concurrency": 1, "rounds": 3},
            "all rounds done",
            3,
        ),
    ],
)
def test_it_ends_and_says_why(members, rules, reason, aggregations):
    rules = {"concurrency": 1, **rules}
    plans, why = run([{"windows": None, **m} for m in members], replace(RULES, **rules))
    assert why == reason
    assert len(plans) == aggregations


@st.composite
def rulebooks(draw, size):
    some = st.none() | st.integers(20, 80)
    periodic = draw(st.booleans())
    bound = draw(st.none() | st.integers(0, 3))
    updates = None if periodic else draw(st.integers(1, size))
    return Rules(
        rounds=draw(st.integers(1, 6)), concurrency=draw(st.integers(1, size)), updates=updates,
        every=draw(st.integers(1, 60)) if periodic else None, deadline=draw(some),
        until=draw(st.none() | st.integers(1, 300)), among=draw(st.sampled_from(["available", "members"])),
        max_staleness=bound, waits=draw(st.booleans()) and bound is not None and (periodic or updates != 1),
        before=draw(st.integers(0, 3)), during=draw(st.integers(0, 30)), after=draw(st.integers(0, 3)),
        first=draw(st.integers(0, 3)),
    )  # fmt: skip


@st.composite
def populations(draw):
    people = draw(st.lists(devices(), min_size=1, max_size=6))
    for device in people:
        device["abort"] = draw(st.booleans())
        if not device.get("period") and draw(st.booleans()):
            device["depart"] = draw(st.integers(1, 200))  # a device that left is off from then on
            windows = device.get("windows", [(0, 200)])
            device["windows"] = [(on, min(off, device["depart"])) for on, off in windows if on < device["depart"]]
        device["samples"] = draw(st.integers(0, 4))
    return people, draw(rulebooks(len(people)))


@pytest.mark.slow
@drawn(200)
@given(populations(), st.integers(0, 5))
def test_every_run_ends_with_a_reason_and_loses_nobody(found, seed):
    members, rules = found
    plans, why = run(members, rules, seed=seed)
    assert why
    assert [p.version for p in plans] == list(range(len(plans)))
    assert len(plans) <= rules.rounds + (why != "all rounds done")
    begun, orders = 0, [(p, o) for p in plans for o in p.orders]
    for plan in plans:
        assert begun <= plan.opened <= plan.closed <= plan.ready
        begun = plan.ready
        assert [o.client for o in plan.orders] == sorted(o.client for o in plan.orders)
        heard = [o.client for o in plan.heard()]
        assert len(heard) == len(set(heard)), "one update per client and aggregation"
        assert all(o.base >= before.oldest for before in plans[: plan.version] for o in plan.orders)
        assert rules.waits or rules.updates is None or len(heard) <= rules.updates
        for order in plan.orders:
            assert order.started <= order.downloaded <= order.computed <= order.finished <= plan.closed
            assert order.base <= plan.version
            assert order.heard <= (order.steps > 0)
            if order.heard and rules.max_staleness is not None:
                assert plan.version - order.base <= rules.max_staleness
    for client in range(len(members)):
        mine = sorted((o.started, o.finished) for _, o in orders if o.client == client)
        assert all(first[1] <= second[0] for first, second in pairwise(mine))
    instants = {o.started for _, o in orders}
    for instant in instants:
        assert sum(o.started <= instant < o.finished for _, o in orders) <= rules.concurrency
    assert plans == run(members, rules, seed=seed)[0]


@drawn(100)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(0, 9), st.integers(0, 9))
def test_one_client_at_a_time_is_a_synchronous_round_of_one(speeds, after, seed):
    """No second code path: with nobody else in flight every trip starts from the newest version."""
    members = [{"per_sample": speed} for speed in speeds]
    rules = replace(RULES, concurrency=1, after=after, rounds=5)
    rounds = Rounds(
        rounds=5, ask=1, among="available", quorum=None, deadline=None, until=None, before=0, during=0, after=after
    )
    expected, _ = play(members, lambda world: synchronous(world, rounds), seed=seed)
    assert run(members, rules, seed=seed)[0] == expected


def test_a_trip_that_fails_is_a_synchronous_round_and_no_aggregation():
    """The window ends at 20 and the work is lost; the next trip is from 50 to 88."""
    members = [{**QUICK, "abort": True, "windows": [(0, 20), (50, 200)]}]
    rounds = Rounds(2, 1, "available", None, None, None, 0, 0, 0)
    alone, _ = play(members, lambda world: synchronous(world, rounds))
    (plan,), _ = run(members, replace(RULES, concurrency=1, rounds=1))
    assert [[trip[2] for trip in trips(found)] for found in alone] == [["offline"], ["complete"]]
    assert trips(plan) == [(0, 0, "offline", 0, 20), (0, 0, "complete", 50, 88)]


def test_no_trip_is_open_for_ever():
    """A device that is interrupted for good, under no deadline, is known not to report: its place is free at once."""
    lost = {**QUICK, "windows": [(0, 20), (500, 501)], "depart": NEVER}
    plans, _ = run([lost, SLOW], replace(RULES, concurrency=1, rounds=3))
    assert sum(o.heard for p in plans for o in p.orders) == 3

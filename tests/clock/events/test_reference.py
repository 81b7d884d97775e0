"""Every stage of every trip played as an event, against the arithmetic on columns: the same Plans to the nanosecond."""

from dataclasses import replace

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from fedactors.clock.asynchronous import Rules, asynchronous
from fedactors.clock.clock import planner
from fedactors.clock.events.event_world import EventWorld
from fedactors.clock.synchronous import Rounds, synchronous
from fedactors.clock.world import World
from fedactors.plan import NEVER, Outcome
from fedactors.workload import IDLE, workload
from tests.clock.flows import flows
from tests.clock.test_cohort import WORKS
from tests.clock.test_trip import devices
from tests.clock.world_builder import population
from tests.examples import drawn

LONGEST = 5_000  # ns of a run: every edge of a window is an event
MOST = 300  # events of one run in columns; longer ones, in which hundreds of trips fail, are left out


@st.composite
def recorded(draw, most, loops):
    """Return a rate over time, as `tests.clock.flows` has it; none so small that a trip takes thousands of windows."""
    cuts = sorted(draw(st.sets(st.integers(1, 40), max_size=3)))
    pieces = [(at, draw(st.just(0) | st.integers(most // 1_000, most))) for at in (0, *cuts)]
    return pieces, (cuts or [0])[-1] + draw(st.integers(1, 20)), draw(st.integers(0, 9)), loops


@st.composite
def members(draw):
    device = draw(devices())
    device["abort"] = draw(st.booleans())
    device["hands_in"] = draw(st.booleans())
    if draw(st.booleans()):
        device["arrive"] = draw(st.integers(0, 60))
    if draw(st.booleans()):
        device["depart"] = device.get("arrive", 0) + draw(st.integers(1, 150))
    if draw(st.integers(0, 3)) == 0:
        device["share"] = draw(recorded(2 * 10**6, draw(st.booleans())))
    if draw(st.integers(0, 3)) == 0:
        device["fast_up"] = draw(recorded(3 * 10**9, draw(st.booleans())))
    return device


WHOLE = WORKS.filter(lambda work: work.wanted % work.unit == 0)  # as scenarios have it
POPULATIONS = st.lists(st.tuples(members(), WHOLE | st.just(IDLE)), min_size=1, max_size=5)


def plans(chosen, policy, sizes, once, *, eventful):
    """Return the Plans of a run and why it ended; None after too many events."""
    kept = [device for device, _ in chosen]
    works = [work for _, work in chosen]
    people = population(kept)
    if any(device.get("share") or device.get("fast_up") for device in kept):
        people = replace(people, flows=flows(kept))
    made = planner(people, 1, *sizes, once)
    if eventful is None:
        world = World(people, made, works, 1)
    else:
        world = EventWorld(people, made, works, 1, np.array([eventful(k) for k in range(len(kept))]))
    process = world.env.process(policy(world))
    for _ in range(MOST if eventful is None else 200 * MOST):
        if not process.is_alive:
            if not process.ok:
                raise process.value
            return list(world.plans), process.value
        world.step()
    return None


def agree(chosen, policy, sizes, once=0):
    expected = plans(chosen, policy, sizes, once, eventful=None)
    assume(expected is not None and (not expected[0] or expected[0][-1].closed <= LONGEST))
    for eventful in (lambda k: True, lambda k: k % 2 == 0):
        assert plans(chosen, policy, sizes, once, eventful=eventful) == expected


SIZES = st.sampled_from([(2, 2), (5, 3), (2, 1)])  # bytes down and up
LIMITS = st.fixed_dictionaries(
    {
        "rounds": st.integers(1, 5),
        "deadline": st.integers(1, 80) | st.none(),
        "until": st.integers(1, 200) | st.none(),
        "among": st.sampled_from(["available", "members"]),
        "before": st.sampled_from([0, 7, 60]),
        "during": st.sampled_from([0, 15]),
        "after": st.sampled_from([0, 2, 60]),
    }
)


@drawn(80)
@given(POPULATIONS, LIMITS, st.integers(1, 3) | st.none(), st.integers(1, 3) | st.none(), st.booleans(), SIZES)
def test_synchronous_rounds_agree(chosen, limits, ask, quorum, early, sizes):
    rules = Rounds(**limits, ask=ask, quorum=quorum, early=early)
    agree(chosen, lambda world: synchronous(world, rules), sizes, once=4 if early else 0)


@drawn(80)
@given(
    POPULATIONS,
    LIMITS,
    st.integers(1, 3),
    st.integers(1, 2) | st.none(),
    st.integers(1, 60),
    st.integers(0, 2) | st.none(),
    st.booleans(),
    SIZES,
)
def test_asynchronous_aggregations_agree(chosen, limits, concurrency, updates, every, bound, waits, sizes):
    rules = Rules(
        **limits,
        concurrency=concurrency,
        updates=updates,
        every=None if updates else every,
        max_staleness=bound,
        waits=waits and bound is not None,
    )
    agree(chosen, lambda world: asynchronous(world, rules), sizes)


def test_a_trip_by_hand():
    """On for 20 of every 30 ns: 5 ns down, 3 steps of 10 ns, 3 ns up are 38 ns on, over at 48; work stops at 20 and
    goes on at 30, in the middle of the second step."""
    device = {"per_sample": 10, "windows": [(0, 20)], "period": 30}
    work = workload(3, 1, epochs=1, steps=None)
    rules = Rounds(
        rounds=1, ask=None, among="available", quorum=None, deadline=None, until=None, before=0, during=0, after=0
    )
    (plan,), why = plans([(device, work)], lambda world: synchronous(world, rules), (5, 3), 0, eventful=lambda k: True)
    (order,) = plan.orders
    assert (order.downloaded, order.computed, order.finished, order.steps) == (5, 45, 48, 3)
    assert why == "all rounds done"


def test_nothing_counts_after_a_deadline_that_passes_while_the_server_works():
    """On for 1 of every 4 ns: down by 17, its step by 21, then on at 24, when the server is back from its work of 2 ns.

    The deadline was at 23, so that no byte went up.
    """
    work = workload(1, 1, epochs=None, steps=1)
    blinking = {"per_sample": 1, "windows": [(0, 1)], "period": 4, "deadline_aware": False}
    chosen = [
        ({"per_sample": 1, "fast_up": ([(0, 0)], 1, 0, False)}, work),
        (blinking, work),
        ({"per_sample": 1}, work),
    ]
    rules = Rules(
        rounds=2, deadline=23, until=None, among="available", before=0, during=0, after=2,
        concurrency=2, updates=None, every=22, max_staleness=None, waits=False,
    )  # fmt: skip
    columns, events = (
        plans(chosen, lambda world: asynchronous(world, rules), (5, 3), 0, eventful=eventful)
        for eventful in (None, lambda k: True)
    )
    assert events == columns
    assert [order.up for plan in events[0] for order in plan.orders if order.client == 1] == [0, 0]


def test_a_departure_after_the_deadline_is_none_of_the_trip():
    """A period of 1 ns, then the server works until 3: the second trip had until 2, its device departs at 3."""
    work, dead = workload(1, 1, epochs=None, steps=1), {"per_sample": 1, "share": ([(0, 0)], 1, 0, False)}
    rules = Rules(
        rounds=2, deadline=2, until=None, among="available", before=0, during=0, after=2,
        concurrency=1, updates=None, every=1, max_staleness=None, waits=False,
    )  # fmt: skip
    chosen = [(dead | {"deadline_aware": False}, work), (dead | {"depart": 3}, work)]
    columns, events = (
        plans(chosen, lambda world: asynchronous(world, rules), (2, 2), 0, eventful=eventful)
        for eventful in (None, lambda k: True)
    )
    assert events == columns
    assert Outcome.DEPARTED not in [order.outcome for plan in events[0] for order in plan.orders]


ONE_ROUND = {"rounds": 1, "among": "available", "quorum": None, "until": None, "before": 0, "during": 0, "after": 0}
HALF = {"windows": [(0, 1)], "period": 2}  # on for one of every 2 ns


def world_of(chosen):
    """Return a world in which all devices are simulated event by event, with their work."""
    people, works = population([device for device, _ in chosen]), [work for _, work in chosen]
    return EventWorld(people, planner(people, 1, 0, 0, 0), works, 1, np.ones(len(chosen), bool))


def test_windows_are_played_of_devices_with_a_trip_alone():
    """Of a hundred devices one has a trip, of 100 windows; the events of all their windows were 30,000 and more."""
    world = world_of([(HALF | {"per_sample": 100}, workload(1, 1, epochs=1, steps=None))] * 100)
    process = world.env.process(synchronous(world, Rounds(**ONE_ROUND, ask=1, deadline=400)))
    events = 0
    while process.is_alive:
        world.step()
        events += 1
    assert [order.outcome.value for order in world.plans[0].orders] == ["complete"]
    assert events < 2_000


def test_a_trip_is_foreseen_to_its_end_however_many_windows_it_takes():
    """It takes 30,001 of them; after 20,000 the device was taken for one that never reports."""
    world = world_of([(HALF | {"per_sample": 30_001}, workload(1, 1, epochs=1, steps=None))])
    device, request = world._device(0), world.request(0, 0, NEVER)
    assert not world.foresight.never_ends(device, request, world.foresight.target(device, request))
    trip = world.cohort_planner.plan_one(0, 0, 0, NEVER)
    assert world.cohort_planner.settle_one(trip, 60_001).outcome is Outcome.COMPLETE

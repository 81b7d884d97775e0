"""Arrivals and departures to the nanosecond, work that is kept, and who can be asked meanwhile."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedactors.clock.presence import Presence, Stay
from fedactors.clock.synchronous import Rounds, synchronous
from fedactors.clock.trip import TripPlanner
from fedactors.clock.world import World
from fedactors.plan import NEVER, Outcome
from fedactors.workload import workload
from tests.clock.test_trip import devices, on_at
from tests.clock.world_builder import availability, population
from tests.examples import drawn

RULES = Rounds(
    rounds=3, ask=None, among="members", quorum=None, deadline=100, until=None, before=0, during=0, after=0, early=False
)


def run(members, rules=RULES, wanted=5):
    """Play rounds: download 5, `wanted` steps of 10, upload 3, unless a member says otherwise."""
    people = population([{"per_sample": 10, **member} for member in members])
    works = [workload(1, 1, epochs=None, steps=wanted)] * len(members)
    world = World(people, TripPlanner(people, 5, 3), works, 1)
    policy = world.env.process(synchronous(world, rules))
    world.env.run(until=policy)
    return list(world.plans), policy.value


def first(device):
    (plan,), _ = run([device], replace(RULES, rounds=1))
    return plan.orders[0]


@pytest.mark.parametrize(
    ("depart", "lost", "kept"),
    [
        (4, (Outcome.DEPARTED, 0), (Outcome.DEPARTED, 0)),  # downloading: nothing to keep
        (17, (Outcome.DEPARTED, 1), (Outcome.DEPARTED, 0)),  # computing; not one step and its upload fit: none is begun
        (18, (Outcome.DEPARTED, 1), (Outcome.PARTIAL, 1)),  # one step and its upload end at that very instant
        (40, (Outcome.DEPARTED, 3), (Outcome.PARTIAL, 3)),  # computing
        (57, (Outcome.DEPARTED, 5), (Outcome.PARTIAL, 4)),  # uploading, of all steps; one step fewer is in time
        (58, (Outcome.COMPLETE, 5), (Outcome.COMPLETE, 5)),  # at the instant at which the upload ends
        (100, (Outcome.COMPLETE, 5), (Outcome.COMPLETE, 5)),
    ],
)
@pytest.mark.parametrize("deadline_aware", [True, False])
def test_a_departure_in_every_stage_of_a_trip(depart, lost, kept, deadline_aware):
    for hands_in, expected in ((False, lost), (True, kept)):
        order = first({"depart": depart, "hands_in": hands_in, "deadline_aware": deadline_aware})
        assert (order.outcome, order.steps) == expected, hands_in
        if order.outcome is Outcome.DEPARTED:
            assert order.finished == depart
        else:
            assert order.finished <= depart


@pytest.mark.parametrize(
    ("deadline", "depart", "outcome"), [(58, 58, "complete"), (58, 57, "departed"), (57, 57, "departed")]
)
def test_a_departure_at_the_deadline_to_the_nanosecond(deadline, depart, outcome):
    """An upload that ends there is heard first; one that would end a tick later is lost to whatever comes first."""
    (plan,), _ = run([{"depart": depart, "deadline_aware": False}], replace(RULES, rounds=1, deadline=deadline))
    assert plan.orders[0].outcome.value == outcome
    assert plan.departed == (0,)


def test_work_is_kept_without_a_deadline_and_through_interruptions():
    """On-time until it departs at 60: 25 + 15 = 40; download, three steps and upload take 38."""
    windows = [(0, 25), (45, 60)]
    rules = replace(RULES, rounds=1, deadline=None)
    (plan,), _ = run([{"windows": windows, "depart": 60, "hands_in": True}], rules)
    assert (plan.orders[0].outcome, plan.orders[0].steps) == (Outcome.PARTIAL, 3)
    assert first({"windows": windows, "depart": 60, "hands_in": True, "abort": True}).outcome is Outcome.OFFLINE


def test_columns_and_the_reference_agree_on_what_is_kept():
    """The cohort's arithmetic gives devices that hand in their work to the reference, beside those that do not."""
    members = [{"depart": d, "hands_in": k} for d in (17, 40, 58, 300) for k in (False, True)]
    plans, _ = run(members, replace(RULES, rounds=2))
    found = [order.outcome.value for order in plans[0].orders]
    assert found == ["departed", "departed", "departed", "partial", "complete", "complete", "complete", "complete"]
    assert [order.client for order in plans[1].orders] == [6, 7]


def test_rounds_last_until_the_deadline_if_they_may_not_close_early():
    plans, _ = run([{}])
    assert [(p.opened, p.closed) for p in plans] == [(0, 100), (100, 200), (200, 300)]
    plans, _ = run([{}], replace(RULES, early=True))
    assert [(p.opened, p.closed) for p in plans] == [(0, 58), (58, 116), (116, 174)]
    plans, _ = run([{}], replace(RULES, deadline=None, rounds=1))
    assert plans[0].closed == 58


def test_who_arrives_in_the_middle_of_a_round_waits_for_the_next():
    plans, _ = run([{}, {"arrive": 1}, {"arrive": 100}, {"arrive": 101}])
    assert [[order.client for order in plan.orders] for plan in plans] == [[0], [0, 1, 2], [0, 1, 2, 3]]
    assert [plan.arrived for plan in plans] == [(1, 2), (3,), ()]


@pytest.mark.parametrize("among", ["members", "available"])
def test_the_last_member_leaves_and_others_come_later(among):
    """Nobody is there between 120 and 350; the run waits, and ends when nobody can come any more."""
    members = [{"depart": 120}, {"arrive": 350, "depart": 460}]
    plans, why = run(members, replace(RULES, rounds=9, among=among))
    assert [(p.opened, [o.client for o in p.orders]) for p in plans] == [(0, [0]), (100, [0]), (350, [1]), (450, [1])]
    assert [(p.arrived, p.departed) for p in plans] == [((), ()), ((), (0,)), ((1,), ()), ((), (1,))]
    assert why == "nobody can be asked any more"


def test_all_are_away_and_all_return():
    windows = [(0, 58), (350, 500)]
    plans, _ = run([{"windows": windows}, {"windows": windows}], replace(RULES, among="available"))
    assert [(p.opened, len(p.orders), all(o.heard for o in p.orders)) for p in plans] == [
        (0, 2, True),
        (350, 2, True),
        (450, 2, True),
    ]


def test_a_departed_device_that_would_be_on_for_ever_is_not_waited_for():
    members = [{"depart": 50}, {"windows": [(0, 10)], "period": 20, "depart": 90}]
    plans, why = run(members, replace(RULES, rounds=9, among="available"))
    assert len(plans) == 1
    assert why == "nobody can be asked any more"


@st.composite
def guests(draw):
    arrive = draw(st.integers(0, 150))
    return {
        **draw(devices()),
        "arrive": arrive,
        "depart": draw(st.one_of(st.just(NEVER), st.integers(arrive + 1, 300))),
    }


@drawn(100)
@given(
    st.lists(guests(), min_size=1, max_size=5),
    st.lists(st.integers(0, 300), min_size=1, max_size=12),
    st.integers(1, 50),
)
def test_the_bitmap_knows_who_is_there(members, times, slab):
    people = population(members)
    shown = Presence(availability(members), None, Stay(people.arrive, people.depart))
    shown._size = slab

    def there(device, t):
        return device["arrive"] <= t < device["depart"] and on_at(device, t)

    for time in sorted(times):
        shown.advance(time)
        assert np.flatnonzero(shown.on).tolist() == [i for i, device in enumerate(members) if there(device, time)]
        if not shown.on.any():
            later = [t for t in range(time + 1, 900) if any(there(device, t) for device in members)]
            assert shown.next_on() == (later[0] if later else NEVER)

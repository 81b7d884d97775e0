"""Synchronous rounds: when they close, who is in them, and that the books balance."""

from hypothesis import given
from hypothesis import strategies as st

from fedactors.clock.synchronous import Rounds, synchronous
from fedactors.clock.trip import TripPlanner
from fedactors.clock.world import World
from fedactors.plan import NEVER, Outcome
from fedactors.workload import workload
from tests.clock.test_trip import devices
from tests.clock.world_builder import population
from tests.examples import drawn

RULES = Rounds(
    rounds=4, ask=None, among="available", quorum=None, deadline=100, until=None, before=0, during=0, after=0
)


def run(members, rules=RULES, wanted=3, seed=1):
    people = population(members)
    works = [workload(m.get("samples", 1), 1, epochs=None, steps=wanted) for m in members]
    world = World(people, TripPlanner(people, 5, 3), works, seed)
    policy = world.env.process(synchronous(world, rules))
    world.env.run(until=policy)
    return list(world.plans), policy.value


def same_but(rules, **changes):
    return Rounds(**{**{name: getattr(rules, name) for name in rules.__dataclass_fields__}, **changes})


def test_a_round_closes_when_everybody_has_reported():
    plans, why = run([{"per_sample": 10}, {"per_sample": 20}])
    assert [(p.opened, p.closed) for p in plans[:2]] == [(0, 68), (68, 136)]
    assert why == "all rounds done"


def test_a_round_closes_at_the_deadline_when_somebody_is_silent():
    plans, _ = run([{"per_sample": 10}, {"per_sample": 60, "deadline_aware": False}])
    assert [(p.opened, p.closed) for p in plans[:2]] == [(0, 100), (100, 200)]
    assert [order.outcome for order in plans[0].orders] == [Outcome.COMPLETE, Outcome.LATE]


def test_a_quorum_closes_the_round_and_equal_instants_all_count():
    members = [{"per_sample": speed} for speed in (10, 20, 20, 30)]
    plans, _ = run(members, same_but(RULES, quorum=2))
    assert plans[0].closed == 68
    assert [order.outcome.value for order in plans[0].orders] == [
        "complete",
        "complete",
        "complete",
        "cancelled",
    ]


def test_the_server_pays_for_its_own_work():
    plans, _ = run([{"per_sample": 10}], same_but(RULES, before=7, during=50, after=2))
    assert [(p.opened, p.closed, p.ready) for p in plans[:2]] == [(7, 57, 59), (66, 116, 118)]


def test_an_empty_round_moves_on_and_a_lost_population_ends_the_run():
    plans, why = run([{"windows": [(0, 10), (250, 400)], "per_sample": 100}])
    assert [(p.opened, p.closed) for p in plans] == [(0, 100), (250, 350), (350, 450)]
    assert [order.heard for plan in plans for order in plan.orders] == [False, False, False]
    assert why == "nobody can be asked any more"


def test_virtual_time_ends_a_run():
    plans, why = run([{"per_sample": 10}], same_but(RULES, until=60, rounds=100))
    assert [p.opened for p in plans] == [0, 38]
    assert why == "virtual time limit"


def test_members_are_asked_even_when_they_are_off():
    plans, _ = run([{"per_sample": 10}, {"windows": [(500, 600)]}], same_but(RULES, among="members", rounds=1))
    assert [order.outcome for order in plans[0].orders] == [Outcome.COMPLETE, Outcome.OFFLINE]


def test_time_does_not_stand_still_when_nobody_can_report():
    """On for 30 ticks and never again: not waited for; asked once more when something changes, and then no more."""
    for among in ("available", "members"):
        rules = same_but(RULES, among=among, deadline=None, rounds=10**6)
        plans, why = run([{"windows": [(0, 30)], "deadline_aware": False, "per_sample": 10}], rules)
        assert [plan.opened for plan in plans] == ([0] if among == "available" else [0, 30])
        assert why.startswith("nobody ")
        order = plans[0].orders[0]
        assert (order.outcome, order.finished, order.down) == (Outcome.OFFLINE, 0, 0)


def test_a_silent_trip_beside_others_shows_what_it_moved():
    members = [{"per_sample": 10}, {"windows": [(0, 20)], "per_sample": 10}]
    plans, _ = run(members, same_but(RULES, deadline=None, rounds=1))
    order = plans[0].orders[1]
    assert (order.outcome, order.steps, order.down, order.finished) == (Outcome.OFFLINE, 1, 5, plans[0].closed)


def test_devices_without_work_are_never_waited_for():
    """An idle device is on while those with work are off: time must still reach the others."""
    plans, why = run([{"samples": 0}, {"windows": [(500, 600)], "per_sample": 10}], same_but(RULES, rounds=2))
    assert [(plan.opened, [o.client for o in plan.orders]) for plan in plans] == [(500, [1]), (538, [1])]
    assert why == "all rounds done"
    assert run([{"samples": 0}])[1] == "nobody can be asked any more"
    assert run([{"samples": 0}], same_but(RULES, among="members"))[1] == "nobody can be asked any more"


def test_an_end_of_time_before_anybody_comes_is_told_as_such():
    plans, why = run([{"windows": [(500, 600)]}], same_but(RULES, until=100))
    assert (plans, why) == ([], "virtual time limit")


def test_a_deadline_beyond_all_time_is_none():
    assert run([{"per_sample": 10}], same_but(RULES, deadline=NEVER)) == run(
        [{"per_sample": 10}], same_but(RULES, deadline=None)
    )


def test_virtual_time_has_an_end():
    """Rounds of 73 years: the second has its deadline where time ends. Later ones lost theirs, and time ran back."""
    half = NEVER // 2
    plans, why = run([{"per_sample": 10}], same_but(RULES, rounds=9, deadline=half, early=False))
    assert [(plan.opened, plan.closed) for plan in plans] == [(0, half), (half, NEVER - 1)]
    assert why == "virtual time reached its end, 146 years"


def test_closed_rounds_leave_no_events_behind():
    members = [{"per_sample": speed} for speed in range(10, 90)]
    people = population(members)
    works = [workload(1, 1, epochs=None, steps=3)] * len(people)
    world = World(people, TripPlanner(people, 5, 3), works, 1)
    policy = world.env.process(synchronous(world, same_but(RULES, quorum=1, rounds=50, deadline=10**6)))
    world.env.run(until=policy)
    assert len(world.env._queue) <= 2 * 50  # a deadline and one end of each round


def test_arrivals_and_departures_are_told_once():
    members = [{"per_sample": 10}, {"per_sample": 10, "windows": [(50, 90)], "arrive": 50, "depart": 90}]
    plans, _ = run(members, same_but(RULES, deadline=None))
    assert [plan.arrived for plan in plans] == [(), (1,), (), ()]
    assert [plan.departed for plan in plans] == [(), (), (1,), ()]


@drawn(150)
@given(st.lists(devices(), min_size=1, max_size=6), st.integers(1, 60), st.sampled_from([None, 1, 2]))
def test_a_device_that_is_never_on_changes_nothing_else(members, deadline, quorum):
    rules = same_but(RULES, deadline=deadline, quorum=quorum, ask=2)
    assert run(members, rules) == run([*members, {"windows": []}], rules)


@drawn(150)
@given(st.lists(devices(), min_size=1, max_size=6), st.integers(1, 60), st.integers(1, 100))
def test_shifting_all_traces_shifts_every_time(members, deadline, shift):
    """A recording that starts later is the same run later; devices that loop or never rest are left out."""
    still = [{**m, "windows": m.get("windows") or [(0, 60)], "period": 0, "shift": 0} for m in members]
    moved = [{**m, "windows": [(on + shift, off + shift) for on, off in m["windows"]]} for m in still]
    # ask only when somebody is on, so that both runs begin with the first window
    before, why = run([*still], same_but(RULES, deadline=deadline))
    after, again = run([*moved], same_but(RULES, deadline=deadline))
    first = before[0].opened if before else 0
    assert why == again
    assert [order.outcome for plan in before for order in plan.orders] == [
        o.outcome for plan in after for o in plan.orders
    ]
    assert [plan.closed + shift for plan in before] == [plan.closed for plan in after]
    assert not before or after[0].opened == first + shift


@drawn(150)
@given(
    st.lists(devices(), min_size=1, max_size=8),
    st.integers(1, 60),
    st.sampled_from([None, 1, 3]),
    st.integers(1, 8),
)
def test_everybody_asked_ends_in_one_outcome_and_no_time_runs_backwards(members, deadline, quorum, ask):
    plans, why = run(members, same_but(RULES, deadline=deadline, quorum=quorum, ask=ask))
    assert why in ("all rounds done", "nobody can be asked any more")
    for plan in plans:
        assert [o.client for o in plan.orders] == sorted({o.client for o in plan.orders})
        assert sum(plan.count(outcome) for outcome in Outcome) == len(plan.orders) <= ask
        assert plan.opened <= plan.closed <= plan.opened + deadline
        for order in plan.orders:
            assert plan.opened == order.started <= order.downloaded <= order.computed <= order.finished <= plan.closed
            assert 0 <= order.steps <= order.wanted
            if order.heard:
                device = members[order.client]
                least = 8 + 2 * device["latency"] + order.steps * device["per_sample"]
                assert order.finished >= order.started + least
    assert NEVER not in [plan.closed for plan in plans]

"""Synchronous rounds: when they close, who is in them, and that the books balance."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fedactors.clock.synchronous import Rounds, synchronous
from fedactors.clock.trip import Trips
from fedactors.clock.world import World
from fedactors.plan import NEVER, Outcome
from fedactors.workload import workload
from tests.clock.test_trip import devices
from tests.clock.world_builder import population

RULES = Rounds(
    rounds=4, ask=None, among="available", quorum=None, deadline=100, until=None, before=0, during=0, after=0
)


def run(members, rules=RULES, wanted=3, seed=1):
    people = population(members)
    works = [workload(1, 1, epochs=None, steps=wanted)] * len(people)
    world = World(people, Trips(people, 5, 3), works, seed)
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
    plans, _ = run([{"per_sample": 10}, {"per_sample": 60, "aware": False}])
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
    plans, why = run([{"windows": [(0, 5)]}], same_but(RULES, among="members", deadline=None, rounds=3))
    assert len(plans) <= 3
    assert why


def test_arrivals_and_departures_are_told_once():
    members = [{"per_sample": 10}, {"per_sample": 10, "windows": [(50, 90)], "arrive": 50, "depart": 90}]
    plans, _ = run(members, same_but(RULES, deadline=None))
    assert [plan.arrived for plan in plans] == [(), (1,), (), ()]
    assert [plan.departed for plan in plans] == [(), (), (1,), ()]


@settings(max_examples=150, deadline=None)
@given(st.lists(devices(), min_size=1, max_size=6), st.integers(1, 60), st.sampled_from([None, 1, 2]))
def test_a_device_that_is_never_on_changes_nothing_else(members, deadline, quorum):
    rules = same_but(RULES, deadline=deadline, quorum=quorum, ask=2)
    assert run(members, rules) == run([*members, {"windows": []}], rules)


@settings(max_examples=150, deadline=None)
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


@settings(max_examples=150, deadline=None)
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

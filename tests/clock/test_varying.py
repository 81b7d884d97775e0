"""Trips over links and processors that vary: against a plodder that looks at every nanosecond, and worked by hand."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedactors.clock.cohort import CohortPlanner
from fedactors.clock.trip import TripPlanner
from fedactors.clock.varying import VaryingTripPlanner
from fedactors.plan import HEARD, NEVER, Outcome
from fedactors.workload import workload
from tests.clock.flows import flow, flows
from tests.clock.test_cohort import members
from tests.clock.test_trip import FAR, devices, on_at
from tests.clock.world_builder import population
from tests.examples import drawn

GIGA = 10**9


def value_at(recorded, t, constant):
    if recorded is None:
        return constant
    pieces, end, shift, loops = recorded
    local = (t + shift) % end if loops else t + shift
    return [value for at, value in pieces if at <= local][-1]


def plod(device, start, step_work, down, up):
    """Return the end of the download, of each step and of the upload, tick by tick; shorter where it never ends."""
    share, link_down, link_up = (device.get(key) for key in ("share", "fast_down", "fast_up"))
    latency = (device["latency"], lambda t: 1)
    stages = [[latency, (down * GIGA, lambda t: value_at(link_down, t, GIGA))]]
    stages += [[(work * 10**6, lambda t: value_at(share, t, 10**6))] for work in step_work]
    stages += [[latency, (up * GIGA, lambda t: value_at(link_up, t, GIGA))]]
    # steps follow one another without a gap: processor time left over from a tick counts for the next step
    ends, t, carry = [], start, 0
    for number, stage in enumerate(stages):
        for need, rate in stage:
            done = carry if 1 < number < len(stages) - 1 else 0
            while done < need:
                if t >= FAR:
                    return ends
                done += rate(t) * on_at(device, t)
                t += 1
            carry = done - need
        ends.append(t)
    return ends


@st.composite
def recordings(draw, most):
    cuts = sorted(draw(st.sets(st.integers(1, 40), max_size=4)))
    pieces = [(at, draw(st.integers(0, most) | st.sampled_from([0, most // 2, most]))) for at in [0, *cuts]]
    return pieces, max([0, *cuts]) + draw(st.integers(1, 10)), draw(st.integers(0, 30)), draw(st.booleans())


@st.composite
def varying(draw):
    device = draw(devices())
    for key, most in (("share", 10**6), ("fast_down", 3 * GIGA), ("fast_up", 3 * GIGA)):
        if draw(st.booleans()):
            device[key] = draw(recordings(most))
    return device


@drawn(500)
@given(varying(), st.integers(0, 50), st.integers(1, 120), st.integers(1, 7), st.integers(1, 4), st.integers(1, 6))
def test_a_trip_agrees_with_the_plodder(device, start, patience, samples, batch, wanted):
    down = up = 3
    trips = VaryingTripPlanner(population([device]), flows([device]), down, up)
    work = workload(samples, batch, epochs=None, steps=wanted)
    deadline = start + patience
    order = trips.settle(trips.plan(0, 0, start, deadline, work), deadline)
    step_work = [(work.samples(k + 1) - work.samples(k)) * device["per_sample"] for k in range(wanted)]

    def arrives(steps):
        ends = plod(device, start, step_work[:steps], down, up)
        return ends[-1] if len(ends) == steps + 2 else FAR * 2

    if device["deadline_aware"]:
        best = max((k for k in range(1, wanted + 1) if arrives(k) <= deadline), default=0)
    else:
        best = wanted if arrives(wanted) <= deadline else 0
    assert order.heard == (best > 0)
    if best:
        ends = plod(device, start, step_work[:best], down, up)
        assert (order.steps, order.downloaded, order.computed, order.finished) == (best, ends[0], ends[-2], ends[-1])
        assert order.outcome is (Outcome.COMPLETE if best == wanted else Outcome.PARTIAL)
        assert (order.down, order.up) == (down, up)
    else:
        assert order.finished == deadline
        assert order.outcome in (Outcome.OFFLINE, Outcome.TOO_SLOW if device["deadline_aware"] else Outcome.LATE)


@drawn(300)
@given(
    members(), st.integers(0, 50), st.integers(1, 80) | st.none(), st.integers(1, 6), st.integers(0, 90), st.booleans()
)
def test_constant_flows_are_the_plain_trip(device, start, patience, wanted, closes, early):
    people, work = population([device]), workload(5, 2, epochs=None, steps=wanted)
    deadline = NEVER if patience is None else start + patience
    orders = []
    for trips in (TripPlanner(people, 2, 3), VaryingTripPlanner(people, flows([device]), 2, 3)):
        trip = trips.plan(0, 0, start, deadline, work)
        orders.append(trips.settle(trip, min(start + closes, deadline), early=early))
    assert orders[0] == orders[1]


def one(device, deadline, wanted=4, start=0):
    device = {"per_sample": 10, "latency": 0, **device}
    trips = VaryingTripPlanner(population([device]), flows([device]), 6, 4)
    trip = trips.plan(0, 0, start, deadline, workload(1, 1, epochs=None, steps=wanted))
    return trips.settle(trip, 1000 if deadline == NEVER else deadline)


def test_half_a_processor_takes_twice_as_long():
    """Download 6, four steps of 10 at one half: 80, upload 4."""
    half = ([(0, 500_000)], 1, 0, True)
    order = one({"share": half}, 90)
    assert (order.outcome, order.computed, order.finished) == (Outcome.COMPLETE, 86, 90)
    assert one({"share": half}, 89).steps == 3


def test_a_link_that_fails_in_the_middle_and_comes_back():
    """2 bytes/ns until 2, nothing until 50: 4 of 6 bytes, the rest at 51; steps until 91, upload at 2 bytes/ns: 93."""
    link = ([(0, 2 * GIGA), (2, 0), (50, 2 * GIGA)], 1000, 0, True)
    order = one({"fast_down": link, "fast_up": link}, 93)
    assert (order.downloaded, order.computed, order.finished) == (51, 91, 93)
    lost = one({"fast_down": link, "fast_up": link}, 40)
    assert (lost.outcome, lost.down, lost.up) == (Outcome.TOO_SLOW, 4, 0)


def test_windows_and_share_multiply():
    """On [0, 20) and [30, …); full until 16, half after: 10 by 16 (download 6), 2 by 20, 28 more at one half."""
    order = one({"windows": [(0, 20), (30, 1000)], "share": ([(0, 10**6), (16, 500_000)], 1000, 0, True)}, 200)
    assert (order.computed, order.finished) == (30 + 2 * 28, 30 + 56 + 4)


def test_a_processor_that_is_never_free_is_told_at_once():
    never = ([(0, 0)], 5, 0, True)
    assert one({"share": never, "windows": [(0, 3)], "period": 5}, NEVER).outcome is Outcome.OFFLINE
    assert one({"share": never}, 100).outcome is Outcome.TOO_SLOW


BLINKING = {"windows": [(0, 1)], "period": 2}  # on for one of every 2 ns


def test_a_stage_may_take_any_number_of_windows():
    """30,001 ns of a processor that is there for one of every 2 ns: from 10 (download 6 by 11) on; by 20,000 windows
    it was taken for one that is never done."""
    order = one(BLINKING | {"per_sample": 30_001, "share": ([(0, 10**6)], 1, 0, True)}, 10**6, wanted=1)
    assert order.computed == 11 + 2 * 30_001


def test_a_link_may_be_dead_for_any_number_of_windows():
    """For 50,000 of them; then 6 bytes at one in 2 ns: from 100,000 to 100,011."""
    order = one(BLINKING | {"fast_down": ([(0, 0), (100_000, GIGA)], 100_001, 0, False)}, 10**6, wanted=1)
    assert order.downloaded == 100_011


def test_a_link_that_is_dead_whenever_its_device_is_on_is_found_out():
    away = ([(0, 0), (1, GIGA)], 2, 0, True)
    assert one(BLINKING | {"fast_down": away}, NEVER).outcome is Outcome.OFFLINE


def test_the_last_value_holds_where_a_recording_ends():
    held, looped = ([(0, 10**6), (10, 0)], 12, 0, False), ([(0, 10**6), (10, 0)], 12, 0, True)
    assert flow([{"share": held}], "share", None).reach(0, 0, 11 * 10**6) == NEVER
    assert flow([{"share": looped}], "share", None).reach(0, 0, 11 * 10**6) == 13


def test_sums_do_not_leave_the_integers():
    """A year at a billion bytes a second, to the nanosecond."""
    year = 365 * 86_400 * GIGA
    fast = flow([{"fast": ([(0, GIGA)], 7, 3, True)}], "fast", None)
    assert fast.given(0, 0, year) == year * GIGA
    assert fast.reach(0, 5, year * GIGA) == year + 5


def test_a_cohort_mixes_plain_and_varying_devices():
    half = ([(0, 500_000)], 1, 0, True)
    people = population([{"per_sample": 10}, {"per_sample": 10}])
    moving = flows([{"per_sample": 10}, {"per_sample": 10, "share": half}])
    mixed = type(people)(**{**people.__dict__, "flows": moving})
    work = workload(1, 1, epochs=None, steps=4)
    cohorts = CohortPlanner(mixed, VaryingTripPlanner(mixed, moving, 6, 4), [work, work])
    orders = cohorts.settle(cohorts.plan(np.array([0, 1]), 0, 0, 200), 200)
    assert [(order.finished, order.outcome in HEARD) for order in orders] == [(50, True), (90, True)]

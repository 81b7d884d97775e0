"""Laws of time: more of it never means less work, and it does not matter how it is cut up."""

from hypothesis import given
from hypothesis import strategies as st

from fedactors.clock.trip import TripPlanner
from fedactors.plan import NEVER
from fedactors.workload import workload
from tests.clock.test_trip import devices
from tests.clock.world_builder import availability, population
from tests.examples import drawn

times, works = st.integers(0, 80), st.integers(1, 60)


def steps_by(device, start, patience, work):
    trips = TripPlanner(population([device]), 2, 2)
    trip = trips.plan(0, 0, start, start + patience, work)
    order = trips.settle(trip, start + patience)
    return order.steps if order.heard else 0


@drawn(300)
@given(devices(), times, st.integers(1, 100), st.integers(0, 60), st.integers(1, 7), st.integers(1, 4), st.booleans())
def test_steps_done_are_monotone_in_the_cut_off(device, start, patience, more, samples, batch, whole_passes):
    work = workload(samples, batch, epochs=2, steps=None, whole_passes=whole_passes)
    assert steps_by(device, start, patience, work) <= steps_by(device, start, patience + more, work)


@drawn(300)
@given(devices(), times, works, works)
def test_work_is_additive(device, start, first, second):
    """Doing one piece of work after the other ends when doing both as one ends."""
    a = availability([device])
    both = a.reach(0, a.elapsed(0, start) + first + second)
    half = a.reach(0, a.elapsed(0, start) + first)
    if half < NEVER:
        assert a.reach(0, a.elapsed(0, half) + second) == both
    else:
        assert both == NEVER


@drawn(300)
@given(devices(), times, times, times)
def test_on_time_is_additive_and_never_more_than_time(device, start, one, two):
    a = availability([device])
    middle, end = start + one, start + one + two
    parts = a.elapsed(0, middle) - a.elapsed(0, start), a.elapsed(0, end) - a.elapsed(0, middle)
    assert sum(parts) == a.elapsed(0, end) - a.elapsed(0, start)
    assert 0 <= parts[0] <= one
    assert 0 <= parts[1] <= two


@given(st.integers(1, 40), st.integers(1, 12), st.integers(1, 5), st.booleans())
def test_steps_and_samples_are_each_others_inverse(samples, batch, epochs, drop_last):
    work = workload(samples, batch, epochs=epochs, steps=None, drop_last=drop_last)
    for steps in range(work.wanted + 1):
        assert work.steps_within(work.samples(steps)) == steps
        if steps:
            assert work.steps_within(work.samples(steps) - 1) == steps - 1

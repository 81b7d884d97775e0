"""Trips of a whole cohort on columns, against the reference that plans them one by one."""

from hypothesis import given
from hypothesis import strategies as st

from fedactors.clock.cohort import CohortPlanner
from fedactors.clock.trip import TripPlanner
from fedactors.plan import NEVER, OUTCOMES
from fedactors.workload import IDLE, workload
from tests.clock.test_trip import devices
from tests.clock.world_builder import population
from tests.examples import drawn

WORKS = st.builds(
    lambda samples, batch, steps, whole: workload(samples, batch, epochs=None, steps=steps, whole_passes=whole),
    st.integers(1, 7),
    st.integers(1, 4),
    st.integers(1, 9),
    st.booleans(),
)


@st.composite
def members(draw):
    device = draw(devices())
    device["abort"] = draw(st.booleans())
    if draw(st.booleans()):
        device["depart"] = draw(st.integers(1, 120))
    return device


@drawn(250)
@given(
    st.lists(st.tuples(members(), WORKS | st.just(IDLE)), min_size=1, max_size=6),
    st.integers(0, 50),
    st.integers(1, 80) | st.none(),
    st.integers(0, 90),
    st.booleans(),
    st.sampled_from([(2, 2), (0, 0), (5, 3), (2, 1, 4)]),
)
def test_columns_agree_with_the_reference(chosen, start, patience, closes, early, sizes):
    people = population([device for device, _ in chosen])
    works = [work for _, work in chosen]
    reference = TripPlanner(people, *sizes)
    cohorts = CohortPlanner(people, reference, works)
    deadline = NEVER if patience is None else start + patience
    cohort = cohorts.plan(cohorts.everybody, 3, start, deadline)
    trips = [reference.plan(k, 3, start, deadline, work) for k, work in enumerate(works)]
    assert [OUTCOMES[code] for code in cohort.outcome] == [trip.outcome for trip in trips]
    assert cohort.ends.tolist() == [trip.ends for trip in trips]
    closed = min(start + closes, deadline)
    expected = tuple(reference.settle(trip, closed, early=early) for trip in trips)
    assert cohorts.settle(cohort, closed, early=early) == expected


def test_figures_beyond_64_bits_are_left_to_the_reference():
    people = population([{"per_sample": 2**55}, {"per_sample": 3}])
    works = [workload(100, 10, epochs=1, steps=None)] * 2
    reference = TripPlanner(people, 5, 3)
    cohorts = CohortPlanner(people, reference, works)
    cohort = cohorts.plan(cohorts.everybody, 0, 0, 10**6)
    orders = cohorts.settle(cohort, 10**6)
    assert orders == tuple(reference.settle(reference.plan(k, 0, 0, 10**6, works[k]), 10**6) for k in range(2))

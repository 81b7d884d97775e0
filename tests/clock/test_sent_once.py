"""What is sent once per device comes on top of its downloads until one of them is complete."""

from fedactors.clock.cohort import CohortPlanner
from fedactors.clock.trip import TripPlanner
from fedactors.workload import workload
from tests.clock.world_builder import population

WORK = workload(2, 1, epochs=1, steps=None)


def bytes_down(cohorts, start, deadline):
    cohort = cohorts.plan(cohorts.everybody, 0, start, deadline)
    return [order.down for order in cohorts.settle(cohort, deadline)]


def test_by_hand():
    """Both devices take 1 ns per byte and per sample; a trip is 2 bytes (+ 4 once), 2 samples, 1 byte.

    The first is on for 3 ns only in the first round: 3 of the 6 bytes cross, so it is sent them again in the second
    round, when it is on for good; in the third it is sent 2. The other is sent 6, 2 and 2.
    """
    people = population([{"windows": [(0, 3), (20, 10**6)]}, {}])
    cohorts = CohortPlanner(people, TripPlanner(people, 2, 1, once=4), [WORK] * 2)
    assert bytes_down(cohorts, 0, 10) == [3, 6]
    assert bytes_down(cohorts, 20, 30) == [6, 2]
    assert bytes_down(cohorts, 30, 40) == [2, 2]


def test_the_first_trip_takes_longer():
    people = population([{}])
    cohorts = CohortPlanner(people, TripPlanner(people, 2, 1, once=4), [WORK])
    times = []
    for start in (0, 100):
        cohort = cohorts.plan(cohorts.everybody, 0, start, 1000)
        times.append(int(cohort.ends[0]) - start)
        cohorts.settle(cohort, 1000)
    assert times == [6 + 2 + 1, 2 + 2 + 1]

"""The laws have the moments that the paper prints, and a sampled device does exactly what was drawn."""

import numpy as np
import pytest

from fedactors.clock.laws import TABLE_2, law
from fedactors.clock.sampled_trips import Draws, SampledTripPlanner
from fedactors.errors import ScenarioError
from fedactors.plan import SECOND, Outcome
from fedactors.workload import workload
from tests.clock.flows import flows
from tests.clock.world_builder import population

# P(s = 0 .. 5), worked out independently and rounded to four digits
FIVE = {
    "T30": (0, 0.0007, 0.0344, 0.3115, 0.5059, 0.1474),
    "T50": (0, 0.0001, 0.0347, 0.5798, 0.3759, 0.0095),
    "T90": (0, 0.0272, 0.2948, 0.5209, 0.1501, 0.0070),
    "Thi": (0.05, 0.0001, 0.0072, 0.1015, 0.3999, 0.4413),
    "Tlo": (0.08, 0.0032, 0.2456, 0.6193, 0.0518, 0.0001),
}


@pytest.mark.parametrize("trace", TABLE_2)
@pytest.mark.parametrize("levels", [5, 10, 37])
def test_moments_are_those_of_table_2(trace, levels):
    p, share = np.array(law(trace, levels)), np.arange(levels + 1) / levels
    mean = p @ share
    assert abs(p.sum() - 1) < 1e-9
    assert abs(mean - TABLE_2[trace].mean) < 1e-9
    assert abs(np.sqrt(p @ share**2 - mean**2) - TABLE_2[trace].sd) < 1e-6
    assert p[0] == TABLE_2[trace].inactive


@pytest.mark.parametrize("trace", FIVE)
def test_laws_of_five_epochs(trace):
    np.testing.assert_allclose(law(trace, 5), FIVE[trace], atol=6e-5)


def test_moments_that_two_levels_cannot_have():
    with pytest.raises(ScenarioError, match="T50 has mean"):
        law("T50", 2)


def test_a_sampled_device_does_exactly_what_was_drawn():
    """100 samples in batches of 10, 5 passes: one drawn part is 10 steps."""
    people = population([{"per_sample": 1, "latency": SECOND}])
    draws = Draws(3, [("Tlo", 5)])
    trips = SampledTripPlanner(people, flows([{"latency": SECOND}]), draws, (10**9, 10**9))
    work = workload(100, 10, epochs=5, steps=None)
    seen = set()
    for version in range(200):
        start = version * 60 * SECOND
        trip = trips.plan(0, version, start, start + 50 * SECOND, work)
        order = trips.settle(trip, start + 50 * SECOND)
        done, levels = draws.draw(0, version)
        seen.add(done)
        assert (levels, order.steps) == (5, 10 * done)
        assert order.outcome is (Outcome.OFFLINE if not done else Outcome.COMPLETE if done == 5 else Outcome.PARTIAL)
        assert order.finished <= start + 50 * SECOND
    assert seen >= {0, 2, 3}

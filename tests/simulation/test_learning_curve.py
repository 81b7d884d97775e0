"""Measures of learning curves, worked by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedactors.simulation.record.learning_curve import final, rise_time, rolling, rounds_to, stability

CURVES = st.lists(st.floats(0, 1), min_size=1, max_size=60)


def test_by_hand():
    """Window 3: means .1, .2, .3, .5, .7, .8; final .8; 90 % of it (.72) is reached in round 6, .5 in round 4.

    The last three values .7, .8, .9 have the standard deviation sqrt(.02/3).
    """
    rounds, accuracy = range(1, 7), [0.1, 0.3, 0.5, 0.7, 0.9, 0.8]
    np.testing.assert_allclose(rolling(rounds, accuracy, 3), [0.1, 0.2, 0.3, 0.5, 0.7, 0.8])
    assert final(rounds, accuracy, 3) == pytest.approx(0.8)
    assert rise_time(rounds, accuracy, window=3) == 6
    assert rounds_to(0.5, rounds, accuracy, 3) == 4
    assert rounds_to(0.5, rounds, accuracy, None) == 3
    assert rounds_to(0.95, rounds, accuracy) is None
    assert stability(rounds, [0.1, 0.3, 0.5, 0.7, 0.8, 0.9], 3) == pytest.approx((0.02 / 3) ** 0.5)


def test_windows_span_rounds_not_evaluations():
    np.testing.assert_allclose(rolling([5, 10, 15, 20], [0.0, 1.0, 2.0, 3.0], 10), [0.0, 0.5, 1.5, 2.5])


@given(CURVES)
def test_the_rise_is_never_after_the_end(accuracy):
    rounds = range(1, len(accuracy) + 1)
    assert 1 <= rise_time(rounds, accuracy) <= len(accuracy)


@given(st.floats(0.01, 1), st.integers(1, 60))
def test_a_constant_accuracy_rises_at_once(value, count):
    assert rise_time(range(1, count + 1), [value] * count) == 1


@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 30))
def test_a_level_that_is_reached_for_good_is_reached_when_the_window_holds_it_alone(low, level, window):
    """Ten rounds at `low`, and 60 at `level`: the mean is `level` itself, to the last bit, from round 9 + window on."""
    accuracy = [min(low, level)] * 10 + [level] * 60
    assert rounds_to(level, range(1, 71), accuracy, window) is not None
    assert rolling(range(1, 71), accuracy, window)[10 + window - 1 :].tolist() == [level] * (61 - window)


@pytest.mark.parametrize("percent", range(15, 100, 5))
def test_a_flat_curve_reaches_its_level_in_the_first_whole_window(percent):
    level = percent / 100
    assert rounds_to(level, range(1, 101), [0.1] * 10 + [level] * 90) == 30


@given(CURVES, st.integers(1, 30))
def test_rolling_means_are_means(accuracy, window):
    found = rolling(range(1, len(accuracy) + 1), accuracy, window)
    expected = [np.mean(accuracy[max(0, t - window) : t]) for t in range(1, len(accuracy) + 1)]
    np.testing.assert_allclose(found, expected, atol=1e-12)

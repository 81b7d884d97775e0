"""Intervals against scipy's, and what is left out of pairs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fedactors.study.statistics import interval, paired

VALUES = st.lists(st.floats(-1e3, 1e3).map(lambda x: round(x, 3)), min_size=2, max_size=9)


@given(VALUES, st.sampled_from([0.8, 0.95, 0.99]))
def test_a_mean_and_its_interval_are_scipys(values, confidence):
    found = interval(values, confidence)
    assert found.mean == pytest.approx(sum(values) / len(values))
    if len(set(values)) > 1:
        low, high = stats.t.interval(confidence, len(values) - 1, loc=found.mean, scale=stats.sem(values))
        assert (found.low, found.high) == pytest.approx((low, high))
    else:
        assert found.half == 0


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=3, max_size=9))
def test_a_difference_in_pairs_is_that_of_the_paired_t_test(pairs):
    left, right = ([pair[side] for pair in pairs] for side in (0, 1))
    found = paired(left, right)
    apart = [a - b for a, b in pairs]
    if max(apart) - min(apart) > 1e-6:
        expected = stats.ttest_rel(left, right).confidence_interval(0.95)
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)
        assert found.apart == (expected.low > 0 or expected.high < 0)


def test_pairs_that_lack_one_are_left_out():
    """Differences 2 and 4: mean 3, s = sqrt 2, t_{1, .975} = 12.706: half 12.706."""
    found = paired([3.0, None, 9.0, 7.0], [1.0, 5.0, None, 3.0])
    assert (found.n, found.mean, found.half) == (2, 3.0, pytest.approx(12.706, abs=1e-3))
    assert not found.apart


def test_one_value_has_no_interval_and_none_has_nothing():
    assert interval([0.5]) == (1, 0.5, None)
    assert interval([0.5]).low is None
    assert interval([]) is None
    assert paired([None], [1.0]) is None

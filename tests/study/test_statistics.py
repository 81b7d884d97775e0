"""Intervals against scipy's, and what is left out of pairs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fedactors.study.statistics import interval, paired, proportion_interval, share_interval

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
    assert interval([0.5]) == (1, 0.5, None, None, None)
    assert interval([0.5]).low is None
    assert interval([]) is None
    assert paired([None], [1.0]) is None


SHARES = st.lists(st.floats(0, 1).map(lambda x: round(x, 3)), min_size=2, max_size=9)


def test_an_interval_of_shares_is_that_of_logits():
    """Shares .9 and .98: m = .94, s = .0566, h = 12.706 * .04 = .5082; logit .94 = 2.7515, h / (m (1 - m)) = 9.011.

    The ends are expit(-6.260) = .00191 and expit(11.763) = .9999922; on the scale of shares the upper end were 1.45.
    """
    found = share_interval([0.9, 0.98])
    assert found.mean == pytest.approx(0.94)
    assert found.low == pytest.approx(0.00191, rel=0.01)
    assert 1 - found.high == pytest.approx(7.8e-6, rel=0.02)
    assert interval([0.9, 0.98]).high > 1.4


@given(SHARES, st.sampled_from([0.8, 0.95, 0.99]))
def test_an_interval_of_shares_lies_within_0_and_1_and_mirrors(values, confidence):
    found = share_interval(values, confidence)
    assert 0 <= found.low <= found.mean + 1e-12
    assert found.mean - 1e-12 <= found.high <= 1
    mirrored = share_interval([1 - value for value in values], confidence)
    assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx((found.low, found.high), abs=1e-9)


@given(st.floats(0.3, 0.7), st.lists(st.floats(-1, 1), min_size=4, max_size=9))
def test_narrow_intervals_of_shares_are_students(middle, apart):
    values = [middle + 1e-4 * one for one in apart]
    plain, found = interval(values), share_interval(values)
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high), abs=1e-6)


def test_what_is_no_share_has_students_interval():
    assert share_interval([0.5, 1.5, 1.0]) == interval([0.5, 1.5, 1.0])
    assert share_interval([1.0, 1.0]) == (2, 1.0, 0, 1.0, 1.0)


@pytest.mark.parametrize(("count", "of"), [(0, 1), (1, 1), (4, 10), (10, 10)])
def test_the_interval_of_a_probability_is_scipys(count, of):
    exact = stats.binomtest(count, of).proportion_ci(0.9, "exact")
    assert proportion_interval(count, of, 0.9) == pytest.approx((exact.low, exact.high))

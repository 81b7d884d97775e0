"""The rule for departures: Corollary 4.0.3, the bounds behind it, and what a larger constant can change (I-R11)."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fedactors.algorithms.members.departure import (
    Constants,
    Course,
    constants,
    exclude,
    excludes,
    fitted,
    include,
    least_include,
)

positive = st.floats(1e-3, 1e3)
cases = st.builds(
    lambda steps, done, left, d, v, vt, gamma: Constants(steps, done, done + left, d, v, vt, gamma),
    st.floats(1, 50), st.integers(0, 200), st.integers(1, 400), st.floats(0, 1e3), positive, positive,
    st.floats(1, 1e3),
)  # fmt: skip


def test_by_hand():
    """E = 2, tau_0 = 10, T = 30, gamma = 5: f0(10) = 50/25, f0(30) = (20 D + 50)/65, f1(30) = 60/45."""
    c = Constants(2, 10, 30, 1.0, 50.0, 60.0, 5.0)
    assert include(10, c) == 2.0
    assert include(30, c) == pytest.approx(70 / 65)
    assert exclude(30, c) == pytest.approx(60 / 45)
    assert (least_include(c), excludes(c)) == (pytest.approx(70 / 65), False)
    assert excludes(c._replace(d=2.0))  # 90 / 65 is more than 60 / 45
    assert excludes(c._replace(d=(60 / 45 * 65 - 50) / 20 + 1e-12))  # a tie excludes


@given(cases)
def test_f0_is_monotone_and_its_minimum_is_at_an_end(c):
    values = np.array([include(tau, c) for tau in np.linspace(c.done, c.rounds, 50)])
    slope = c.d * (c.gamma + c.local_steps * c.done) - c.local_steps * c.v
    tolerance = 1e-9 * np.abs(values).max()
    assert np.all(np.diff(values) * np.sign(slope) >= -tolerance)
    assert least_include(c) == pytest.approx(values.min(), rel=1e-9)


@given(cases, st.floats(1, 10))
def test_a_larger_transient_can_only_include_and_a_larger_bias_only_exclude(c, more):
    if not excludes(c):
        assert not excludes(c._replace(vt=c.vt * more))
    if excludes(c):
        assert excludes(c._replace(d=c.d * more))


@given(cases, st.floats(0, 10), st.floats(0, 10), st.floats(0.01, 0.9))
def test_a_larger_gap_of_the_device_can_only_include_at_a_given_bias(c, gap, more, share):
    course = Course(c.v, c.gamma, 0.0)
    few, many = (
        constants(course, c.local_steps, c.done, c.rounds, share, g, rough=True)._replace(d=c.d)
        for g in (gap, gap + more)
    )
    assert many.vt >= few.vt
    assert excludes(few) or not excludes(many)


@given(cases)
def test_a_bias_excludes_in_the_end(c):
    """D > 0 and T to infinity: f0 tends to D / E, f1 to 0, and f0(tau_0) is fixed."""
    assume(c.d > 1e-6)
    assert excludes(c._replace(rounds=c.done + 10**12))


@given(cases)
def test_without_bias_and_transient_of_its_own_it_excludes(c):
    """D = 0, Gamma_l = 0 and V~ = gamma e, the present error: f1 falls faster than f0 from the same value."""
    present = c.v / (c.done * c.local_steps + c.gamma)
    same = c._replace(d=0.0, vt=c.gamma * present * (1 - 1e-12))  # where both are equal, rounding must not decide
    assert exclude(c.done, same) == pytest.approx(include(c.done, same))
    assert excludes(same)


def test_the_decision_turns_to_exclude_as_the_deadline_moves_out():
    """RR4: with constants fitted to a course, more rounds left can only turn include into exclude."""
    losses = [(tau, 0.4 + 9.0 / (5 * tau + 8)) for tau in range(1, 31)]
    course = fitted(losses, 5)
    decisions = [
        excludes(constants(course, 5, 30, 30 + left, 1 / 30, 0.3, rough=True)) for left in (1, 5, 15, 30, 60, 120)
    ]
    assert decisions == sorted(decisions)
    assert (decisions[0], decisions[-1]) == (False, True)


def test_a_course_is_found_again():
    losses = [(tau, 0.4 + 9.0 / (5 * tau + 10)) for tau in range(1, 40)]
    found = fitted(losses, 5)
    assert (found.v, found.gamma, found.floor) == pytest.approx((9.0, 10.0, 0.4), rel=0.02)
    assert fitted([], 5) == (0.0, 1.0, 0.0)
    assert fitted([(1, 2.0), (2, 3.0)], 5) == (0.0, 1.0, 3.0)
    assert fitted([(1, 1.0), (2, 2.0), (3, 3.0)], 5).v == 0.0  # a loss that rises has no course


def strongly_convex(seed, dim=4, members=5):
    """Return (shares, Hessians, minimisers) of random quadratics, and mu and L of them all."""
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(members, dim, dim))
    hessians = roots @ roots.transpose(0, 2, 1) / dim + 0.3 * np.eye(dim)
    values = np.linalg.eigvalsh(hessians)
    sizes = rng.uniform(1, 10, members)
    return sizes / sizes.sum(), hessians, rng.normal(size=(members, dim)) * 3, values.min(), values.max()


def least(shares, hessians, targets):
    return np.linalg.solve(
        np.einsum("k,kij->ij", shares, hessians), np.einsum("k,kij,kj->i", shares, hessians, targets)
    )


@pytest.mark.parametrize("seed", range(50))
def test_optima_move_by_at_most_half_of_what_the_paper_says(seed):
    """(4) for an arrival, (5) for a departure, on quadratics: sqrt(2 L) / mu, not 2 sqrt(2 L) / mu.

    Both say the same of the minimisers with and without the device; the last line is seen from the other side.
    """
    shares, hessians, targets, mu, smooth = strongly_convex(seed)
    whole = least(shares, hessians, targets)
    rest = least(shares[:-1] / shares[:-1].sum(), hessians[:-1], targets[:-1])

    def gap(w):
        return (w - targets[-1]) @ hessians[-1] @ (w - targets[-1]) / 2

    moved = np.linalg.norm(whole - rest)
    assert moved <= np.sqrt(2 * smooth) / mu * shares[-1] * np.sqrt(gap(rest)) + 1e-12
    assert moved <= np.sqrt(2 * smooth) / mu * shares[-1] / (1 - shares[-1]) * np.sqrt(gap(whole)) + 1e-12


@pytest.mark.parametrize("seed", range(20))
def test_an_extra_update_helps_exactly_when_it_is_short_enough(seed):
    """It takes w nearer to w~ iff q = <grad F_l(w), w - w~> > 0 and delta < 2 q / |grad F_l(w)|^2."""
    shares, hessians, targets, *_ = strongly_convex(seed)
    aim = least(shares, hessians, targets)
    w = np.random.default_rng(seed + 1000).normal(size=4) * 3
    slope = hessians[-1] @ (w - targets[-1])
    q, longest = slope @ (w - aim), 2 * (slope @ (w - aim)) / (slope @ slope)
    for delta in (0.01 * abs(longest), 0.99 * longest, 1.01 * longest, abs(longest) + 1):
        nearer = np.linalg.norm(w - delta * slope - aim) < np.linalg.norm(w - aim)
        assert nearer == (q > 0 and delta < longest) or delta <= 0

"""Weights of updates, worked by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedactors.algorithms.participation import (
    ExampleWeights,
    Members,
    SampleWeights,
    SchemeA,
    SchemeB,
    SchemeC,
    UniformWeights,
    Update,
)
from fedactors.optim.schedule import ConstantRate, StaircaseRate

HEARD = [Update(samples=30, examples=50, steps=5, wanted=5), Update(samples=10, examples=30, steps=3, wanted=5)]
MEMBERS = Members(clients=4, samples=100)


@pytest.mark.parametrize(
    ("policy", "weights"),
    [
        (SampleWeights(), [0.75, 0.25]),
        (UniformWeights(), [0.5, 0.5]),
        (ExampleWeights(), [0.625, 0.375]),
        (SchemeA(), [4 * 0.3 / 1, 0.0]),  # N p^k / K with one complete device
        (SchemeB(), [0.3, 0.1]),
        (SchemeC(), [0.3, 5 / 3 * 0.1]),
    ],
    ids=lambda value: value.name if hasattr(value, "name") else "",
)
def test_by_hand(policy, weights):
    assert policy.weigh(HEARD, MEMBERS) == pytest.approx(weights)
    assert policy.weigh([], MEMBERS) == []


def test_scheme_a_discards_a_round_that_nobody_completes():
    assert SchemeA().weigh([HEARD[1]], MEMBERS) == [0.0]


updates = st.lists(
    st.tuples(st.integers(1, 50), st.integers(1, 9)).map(lambda t: Update(t[0], t[0], t[1], 9)), min_size=1, max_size=8
)


@given(updates)
def test_b_is_never_more_than_its_share_and_c_at_most_e_times_that(heard):
    members = Members(len(heard), sum(update.samples for update in heard))
    for b, c in zip(SchemeB().weigh(heard, members), SchemeC().weigh(heard, members), strict=True):
        assert 0 < b <= 1
        assert b <= c <= 9 * b + 1e-12


@given(updates)
def test_all_complete_makes_the_schemes_equal_to_samples(heard):
    done = [update._replace(steps=9) for update in heard]
    members = Members(len(done), sum(update.samples for update in done))
    results = [policy.weigh(done, members) for policy in (SchemeA(), SchemeB(), SchemeC())]
    assert results[0] == results[1] == results[2] == SampleWeights().weigh(done, members)


def test_schedules():
    assert [ConstantRate(lr=0.3).rate(tau) for tau in (1, 7)] == [0.3, 0.3]
    assert [StaircaseRate(lr=0.3).rate(tau) for tau in (1, 2, 4)] == [0.3, 0.15, 0.075]

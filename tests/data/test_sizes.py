import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from fedactors.data.partitions.sizes import LogNormal, Pareto, Samples, drawn, even

seeds, crowds = st.integers(0, 2**32), st.integers(1, 300)


@given(st.integers(0, 10_000), crowds)
def test_even_sizes_are_complete_and_the_first_ones_get_one_more(total, clients):
    sizes = even(total, clients)
    assert sizes.sum() == total
    assert sizes.max() - sizes.min() <= 1
    assert (np.diff(sizes) <= 0).all()


@given(crowds, seeds, st.integers(1, 50), st.integers(50, 500))
def test_pareto_keeps_floor_and_cap(clients, seed, floor, cap):
    law = Pareto(floor=floor, cap=cap)
    sizes = drawn(law, clients, seed)
    assert sizes.dtype == np.int64
    assert sizes.shape == (clients,)
    assert floor <= sizes.min()
    assert sizes.max() <= cap
    assert np.array_equal(sizes, law.sizes(clients, seed))


@given(crowds, seeds)
def test_pareto_shares_out_its_total(clients, seed):
    """Every client is rounded once and raised to at least 1, so the sum is off by one per client at most."""
    sizes = Pareto(total=10_000, floor=1).sizes(clients, seed)
    assert abs(int(sizes.sum()) - 10_000) <= clients


def test_pareto_of_index_one_half_gives_one_client_a_large_share():
    """For index 1/2 the largest share is about a half on average; equal sizes would give 0.01."""
    law = Pareto(total=100_000, floor=1)
    largest = [law.sizes(100, seed).max() / 100_000 for seed in range(50)]
    assert 0.4 < np.mean(largest) < 0.7


@pytest.mark.parametrize("index", [0.001, 0.5, 3.0, 1e6])
def test_pareto_survives_extreme_tails(index):
    sizes = Pareto(index=index, total=1000, floor=1).sizes(10, 0)
    assert sizes.min() >= 1
    assert abs(sizes.sum() - 1000) <= 10


def test_pareto_total_grows_with_the_clients_unless_given():
    assert abs(Pareto(floor=1).sizes(50, 0).sum() - 200 * 50) <= 50


def test_lognormal_is_the_generator_of_synthetic():
    """The median of floor(exp(Normal(4, 2))) + 50 is about 104, none is below 50."""
    sizes = LogNormal().sizes(20_000, 1)
    assert sizes.min() >= 50
    assert 100 <= np.median(sizes) <= 108
    assert LogNormal(cap=60).sizes(1000, 1).max() == 60


def test_a_number_is_the_size_of_all():
    assert drawn(7, 3, 0).tolist() == [7, 7, 7]


def test_a_client_keeps_its_place_in_a_law_when_others_join():
    few, many = (LogNormal().sizes(n, 5) for n in (10, 20))
    assert np.array_equal(few, many[:10])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0, "greater than 0"),
        (2.5, "valid integer"),
        (True, "valid integer"),
        ({"name": "paretto"}, r"accepted: a number, or a law"),
        ({"floor": 3}, r"accepted: a number, or a law"),
        ({"name": "pareto", "floor": 30, "cap": 3}, "cap 3 is below floor 30"),
        ({"name": "pareto", "index": 0.0}, "greater than 0"),
        ({"name": "lognormal", "mean": 4}, "mean"),
    ],
)
def test_mistakes_are_told_once(value, message):
    with pytest.raises(ValidationError, match=message) as caught:
        TypeAdapter(Samples).validate_python(value, strict=True)
    assert caught.value.error_count() == 1

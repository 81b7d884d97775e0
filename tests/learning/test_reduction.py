"""Sums whose order the Plan fixes: the same bits however many hosts add them, and few bytes on the way."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedactors.fleet.chunk_placement import ranges
from fedactors.fleet.workers import ClientHost
from fedactors.learning.reduction import BRANCHES, added, branches, size
from fedactors.learning.training_task import ChunkResult


def parts(count):
    random = np.random.default_rng(count)
    vectors = random.standard_normal((count, 7)).astype(np.float32) * 10.0 ** random.integers(-6, 6, (count, 1))
    return [
        ChunkResult(3 * number, {"delta": vector.astype(np.float32)}, float(vector[0]), 0.1, branch=branch)
        for number, (vector, branch) in enumerate(zip(vectors, branches(count), strict=True))
    ]


def test_up_to_so_many_chunks_are_added_one_after_the_other():
    found = added(reversed(parts(BRANCHES)))
    total = np.zeros(7, np.float32)
    for part in parts(BRANCHES):
        total = total + part.sums["delta"]
    assert np.array_equal(found.sums["delta"], total)


def test_branches_are_even_and_in_order():
    found = branches(1000)
    assert found == sorted(found)
    assert len(set(found)) == BRANCHES
    sizes = np.bincount(found)
    assert sizes.max() - sizes.min() <= 1
    assert branches(3) == [0, 1, 2]
    assert branches(0) == []


@given(st.integers(1, 300), st.integers(1, 9), st.integers(0, 2))
def test_any_number_of_hosts_gives_the_same_bits_and_moves_a_vector_each(count, hosts, tries):
    learned = parts(count)
    places = ranges([1] * count, branches(count), hosts, tries)
    handed = []
    for host in dict.fromkeys(places):
        mine = [part for part, place in zip(learned, places, strict=True) if place == host]
        handed = ClientHost.fold(None, *([handed] if handed else []), mine)
    (total,) = handed
    expected = added(learned)
    assert np.array_equal(total.sums["delta"], expected.sums["delta"])
    assert total.loss == expected.loss
    assert total.moved + size(handed) == len(set(places)) * 7 * 4

"""Sums whose order the Plan fixes: the same bits however many hosts add them, and few of them at a time."""

from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedactors.fleet.chunk_placement import ranges
from fedactors.fleet.workers import ClientHost
from fedactors.learning.reduction import added, append_or_add, size
from fedactors.learning.training_task import ChunkResult, MemoryLimit

BYTES = 7 * 4  # of a sum


def parts(count):
    random = np.random.default_rng(count)
    vectors = random.standard_normal((count, 7)).astype(np.float32) * 10.0 ** random.integers(-6, 6, (count, 1))
    return [
        ChunkResult(place, {"delta": vector.astype(np.float32)}, float(vector[0]), among=count)
        for place, vector in enumerate(vectors)
    ]


def test_seven_chunks_are_added_two_by_two():
    a, b, c, d, e, f, g = (part.sums["delta"] for part in parts(7))
    by_hand = ((a + b) + (c + d)) + ((e + f) + g)
    in_turn = a + b + c + d + e + f + g
    found = added(reversed(parts(7)))
    assert np.array_equal(found.sums["delta"], by_hand)
    assert not np.array_equal(by_hand, in_turn), "these numbers cannot tell the two orders apart"
    assert found.chunks == 7


def test_rows_of_single_updates_stay_in_the_order_of_their_chunks():
    rows = [one._replace(sums={"delta": one.sums["delta"][None]}) for one in parts(11)]
    found = added(rows[5:] + rows[:5]).sums["delta"]
    assert np.array_equal(found, np.concatenate([one.sums["delta"] for one in rows]))


def test_what_is_last_meets_what_is_before_it_at_any_host():
    learned = parts(7)
    (tail,) = ClientHost.fold(None, 1, learned[4:])
    e, f, g = (part.sums["delta"] for part in learned[4:])
    assert np.array_equal(tail.sums["delta"], (e + f) + g)
    with pytest.raises(ValueError, match=r"lacks some: it has \[0, 2, 4\]"):
        added([*learned[:3], tail])


LIMITS = st.none() | st.builds(MemoryLimit, st.integers(1, 9), st.booleans())


@given(st.lists(LIMITS, min_size=2, max_size=9))
def test_bits_are_the_same_only_if_those_of_every_host_are(limits):
    """The smallest number of clients at once, whichever host has it, and the worst of promises."""
    learned = [part._replace(memory_limit=limit) for part, limit in zip(parts(len(limits)), limits, strict=True)]
    lacking = [limit for limit in limits if limit]
    found = added(learned).memory_limit
    if not lacking:
        assert found is None
    else:
        assert found == (min(most for most, _ in lacking), all(same for _, same in lacking))


@given(st.integers(1, 300), st.data())
def test_a_host_holds_few_sums(count, data):
    first = data.draw(st.integers(0, count - 1))
    held = []
    for part in parts(count)[first:]:
        append_or_add(held, part)
        assert len(held) <= max(1, 2 * log2(count))


@given(st.integers(1, 300), st.integers(1, 9), st.integers(0, 2), st.randoms(use_true_random=False))
def test_any_number_of_hosts_gives_the_same_bits(count, hosts, tries, random):
    learned = parts(count)
    places = ranges([1] * count, hosts, tries)
    sums = []
    for host in dict.fromkeys(places):
        sums.append([])
        for part, place in zip(learned, places, strict=True):
            if place == host:
                append_or_add(sums[-1], part)
    moved = 0
    while len(sums) > 1:
        at = random.randrange(len(sums) - 1)
        moved += size(sums[at + 1])
        sums[at : at + 2] = [ClientHost.fold(None, 1, sums[at], sums[at + 1])]
    expected = added(learned)
    found = added(sums[0])
    assert np.array_equal(found.sums["delta"], expected.sums["delta"])
    assert found.loss == expected.loss
    assert found.moved == moved


def test_halves_and_quarters_move_one_sum_each():
    learned = parts(64)
    quarters = [ClientHost.fold(None, 1, learned[first : first + 16]) for first in range(0, 64, 16)]
    left, right = (ClientHost.fold(None, 1, quarters[at], quarters[at + 1]) for at in (0, 2))
    (total,) = ClientHost.fold(None, 1, left, right)
    assert total.moved == 3 * BYTES

"""The order of samples: Philox's own vectors, a reference of one stream at a time, and the law of the shuffles."""

from itertools import permutations, product

import numpy as np
import pytest

from fedactors.data.batches import sequence, sequences, table
from fedactors.data.philox import philox
from fedactors.streams import Purpose
from fedactors.workload import workload

KNOWN = (  # (counter, key, words) of the authors' test vectors, Random123, kat_vectors
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
)


def words(text):
    return [int(word, 16) for word in text.split()]


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN)
def test_known_answers(counter, key, expected):
    low, high = words(key)
    found = philox(np.array([words(counter)] * 2, np.uint64).T, low | high << 32)
    assert found.T.tolist() == [words(expected)] * 2


def philox_of_one(counter, key):
    """Philox4x32-10 as the paper writes it, in Python's integers."""
    a, b, c, d = counter
    low, high = key
    for _ in range(10):
        one, other = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = other >> 32 ^ b ^ low, other & 0xFFFFFFFF, one >> 32 ^ d ^ high, one & 0xFFFFFFFF
        low, high = low + 0x9E3779B9 & 0xFFFFFFFF, high + 0xBB67AE85 & 0xFFFFFFFF
    return a, b, c, d


def reference(seed, client, trip, held, work, steps):
    """One pass after the other, one sample after the other."""
    order, blocks = [], -(-len(held) // 2)
    for number in range(-(-steps // work.pass_steps)):
        draws = []
        for block in range(blocks):
            counter = (number * blocks + block, int(Purpose.BATCH), client, trip)
            a, b, c, d = philox_of_one(counter, (seed & 0xFFFFFFFF, seed >> 32))
            draws += [(a << 32 | b) >> 16, (c << 32 | d) >> 16]
        places = sorted(range(len(held)), key=draws.__getitem__)
        order += [held[place] for place in places][: work.pass_samples]
    return order[: work.samples(steps)]


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("samples", [1, 2, 23, 500])
def test_each_pass_is_in_the_order_of_its_draws(samples, drop_last):
    work = workload(samples, 5, epochs=3, steps=None, drop_last=drop_last)
    held = np.arange(samples, dtype=np.int64) ** 2
    for steps in (0, 1, work.wanted):
        assert sequence(2**40 + 3, 9, 2, held, work, steps).tolist() == reference(2**40 + 3, 9, 2, held, work, steps)


def test_the_order_of_a_client_does_not_depend_on_who_is_shuffled_beside_it():
    sizes = [1, 7, 30, 0, 12, 500, 2]
    works = [workload(size, 4, epochs=2, steps=None, drop_last=size == 30) for size in sizes]
    held = [np.arange(size, dtype=np.int64) + 1000 * number for number, size in enumerate(sizes)]
    steps = [work.wanted - (number % 2 and work.wanted > 1) for number, work in enumerate(works)]
    clients, trips = [5, 8, 9, 11, 40, 41, 77], [3, 3, 0, 3, 3, 2, 3]
    together = sequences(7, clients, trips, held, works, steps)
    alone = [sequence(7, *one) for one in zip(clients, trips, held, works, steps, strict=True)]
    assert [order.tolist() for order in together] == [order.tolist() for order in alone]


def chi_square(counts):
    expected = counts.sum() / counts.size
    return float(((counts - expected) ** 2 / expected).sum())


def shuffles(clients, trips, samples, passes):
    """Return the orders of every trip of every client, `(clients, trips, passes, samples)`."""
    work, pairs = workload(samples, samples, epochs=passes, steps=None), list(product(range(clients), range(trips)))
    number, held = len(pairs), np.arange(samples)
    found = sequences(1, *zip(*pairs, strict=True), [held] * number, [work] * number, [passes] * number)
    return np.stack(found).reshape(clients, trips, passes, samples)


def test_every_permutation_is_as_likely_as_any_other():
    """24 permutations in 24,000 passes: chi-square with 23 degrees of freedom is below 49.7 in 999 of 1000 cases."""
    number = {one: place for place, one in enumerate(permutations(range(4)))}
    found = shuffles(100, 120, 4, 2).reshape(-1, 4)
    counts = np.bincount([number[tuple(one)] for one in found.tolist()], minlength=24)
    assert chi_square(counts) < 49.7


@pytest.mark.parametrize("neighbour", ["client", "trip", "pass"])
def test_what_comes_first_says_nothing_of_the_next_client_trip_or_pass(neighbour):
    """25 pairs: chi-square with 24 degrees of freedom is below 51.2 in 999 of 1000 cases."""
    first = shuffles(120, 100, 5, 2)[..., 0]
    axis = {"client": 0, "trip": 1, "pass": 2}[neighbour]
    ones = np.take(first, np.arange(0, first.shape[axis], 2), axis)
    others = np.take(first, np.arange(1, first.shape[axis], 2), axis)
    counts = np.bincount((ones * 5 + others).ravel(), minlength=25)
    assert chi_square(counts) < 51.2


def test_a_table_holds_the_batches_of_each_trip():
    """Three samples in batches of two, one sample, none: written out by hand."""
    works = [
        workload(3, 2, epochs=2, steps=None),
        workload(1, 2, epochs=1, steps=None),
        workload(4, 2, epochs=1, steps=None),
    ]
    orders = [np.array([5, 6, 7, 7, 5, 6]), np.array([9]), np.array([1, 2])]
    samples, weights = table(orders, works, [4, 1, 1])
    assert samples[:, 0].tolist() == [[5, 6], [7, 7], [7, 5], [6, 6]]
    assert weights[:, 0].tolist() == [[0.5, 0.5], [1, 0], [0.5, 0.5], [1, 0]]
    assert (samples[:, 1].tolist(), weights[:, 1].tolist()) == (
        [[9, 9], [0, 0], [0, 0], [0, 0]],
        [[1, 0], [0, 0], [0, 0], [0, 0]],
    )
    assert (samples[0, 2].tolist(), weights[0, 2].tolist()) == ([1, 2], [0.5, 0.5])
    assert not samples[1:, 2].any()


def test_more_passes_than_are_sorted_at_once(monkeypatch):
    work, held = workload(5, 2, epochs=3, steps=None), np.arange(5)
    columns = (range(40), [2] * 40, [held] * 40, [work] * 40, [work.wanted] * 40)
    whole = sequences(7, *columns)
    monkeypatch.setattr("fedactors.data.batches._ROWS", 10)
    assert all(map(np.array_equal, sequences(7, *columns), whole))

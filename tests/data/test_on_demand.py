"""Samples that are made when their client is asked for: the same bits as those of data that are made beforehand."""

import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedactors.data.on_demand import OnDemandSplit, row_bytes
from fedactors.data.sets.synthetic_data import SyntheticData


class Counting:
    """Client k has `sizes[k]` samples, all of value k; counts how often samples were made."""

    input_shape = (2,)

    def __init__(self, sizes):
        self.sizes = np.array(sizes)
        self.made = 0

    def samples(self, client):
        self.made += 1
        return np.full((self.sizes[client], 2), client, np.float32), np.full(self.sizes[client], client)


def test_synthetic_clients_have_the_bits_of_the_whole_data_set():
    option = SyntheticData(samples=23)
    data, source = option.load(4, 6), option.on_demand(4, 6)
    split = OnDemandSplit(source, 2)
    for client in (5, 0, 3, 5):
        held, mine = split.of(client), slice(data.clients[client], data.clients[client + 1])
        assert np.array_equal(split.x[held], data.x[mine])
        assert np.array_equal(split.y[held], data.y[mine])


def test_the_test_set_on_demand_is_that_of_the_whole_data_set():
    option = SyntheticData(samples=23, test_clients=4)
    data, tests = option.load(4, 6), option.on_demand(4, 6).tests()
    assert len(data.test_y) == option.info(4, 6).test_size == 4 * 3
    assert np.array_equal(data.test_x, tests.test_x)
    assert np.array_equal(data.test_y, tests.test_y)
    assert np.array_equal(data.test_clients, tests.test_clients)
    assert len(tests.y) == 0
    assert np.array_equal(data.test_y, SyntheticData(samples=23).load(4, 6).test_y[: 4 * 3])


@given(
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=12),
    together=st.integers(1, 4),
    room=st.integers(1, 60),
    draws=st.data(),
)
def test_samples_of_clients_asked_for_together_are_never_overwritten(sizes, together, room, draws):
    split = OnDemandSplit(Counting(sizes), together, room * row_bytes((2,)))
    asked = draws.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=60))
    recent = dict[int, np.ndarray]()
    for client in asked:
        recent.pop(client, None)
        recent[client] = split.of(client)
        while len(recent) > together:
            del recent[next(iter(recent))]
        for one, held in recent.items():
            assert len(held) == sizes[one]
            assert (split.x[held] == one).all()
            assert (split.y[held] == one).all()


@given(sizes=st.lists(st.integers(0, 9), min_size=1, max_size=12), draws=st.data())
def test_where_all_fits_samples_are_made_once(sizes, draws):
    source = Counting(sizes)
    split = OnDemandSplit(source, 1)
    asked = draws.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=60))
    for client in asked:
        split.of(client)
    assert source.made == len(set(asked))


def test_a_ring_takes_no_more_than_its_room():
    split = OnDemandSplit(Counting([10] * 1000), together=3, room=500 * row_bytes((2,)))
    assert len(split.y) == 500


def test_samples_do_not_travel():
    split = OnDemandSplit(SyntheticData(samples=1000).on_demand(0, 50), 2)
    kept = split.of(7)
    packed = pickle.dumps(split)
    assert len(packed) < 10_000
    again = pickle.loads(packed)
    assert np.array_equal(again.x[again.of(7)], split.x[kept])

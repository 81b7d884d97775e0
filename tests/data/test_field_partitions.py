"""Partitions as the field names them: quantity skew, and the shards of McMahan et al."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fedactors.data.base import Data, Info
from fedactors.data.partitions.dirichlet import DirichletPartition
from fedactors.data.partitions.partition import ClassPartition
from fedactors.data.partitions.quantity import QuantityPartition
from fedactors.data.partitions.shards import ShardPartition
from fedactors.data.partitions.sizes import dirichlet_sizes
from fedactors.data.sets.digits import Digits
from fedactors.errors import ScenarioError
from tests.examples import drawn

seeds = st.integers(0, 2**32)
labelled = st.lists(st.integers(0, 5), min_size=30, max_size=200).map(np.array)
partitions = st.one_of(
    st.builds(QuantityPartition, alpha=st.sampled_from([0.01, 0.5, 100.0])),
    st.builds(DirichletPartition, alpha=st.sampled_from([0.01, 0.5, 100.0]), of=st.just("quantities")),
    st.builds(ShardPartition, shards=st.integers(1, 3)),
)


def info_of(labels, kind="class"):
    counts = tuple(np.bincount(labels, minlength=6).tolist())
    return Info("toy", len(labels), 0, (1,), 6, counts, kind=kind)


@drawn(40)
@given(partitions, labelled, st.integers(1, 10), seeds)
def test_all_samples_are_dealt_once_in_the_sizes_announced(partition, labels, clients, seed):
    sizes = partition.sizes(info_of(labels), clients, seed)
    split = partition.split(labels, 6, sizes, seed)
    assert np.array_equal(np.diff(split.offsets), sizes)
    assert np.array_equal(np.sort(split.indices), np.arange(len(labels)))
    assert (sizes.dtype, split.offsets.dtype, split.indices.dtype) == (np.int64,) * 3
    again = partition.split(labels, 6, partition.sizes(info_of(labels), clients, seed), seed)
    assert np.array_equal(again.indices, split.indices)


def test_two_shards_of_300_digits_are_mcmahans():
    labels = np.repeat(np.arange(10), 6000)
    partition = ShardPartition()
    sizes = partition.sizes(Info("mnist", 60_000, 0, (1,), 10), 100, 7)
    assert sizes.tolist() == [600] * 100
    split = partition.split(labels, 10, sizes, 7)
    held = [np.unique(labels[split.of(client)]) for client in range(100)]
    assert max(map(len, held)) == 2
    assert sum(len(each) == 2 for each in held) > 80


@pytest.mark.parametrize("kind", [QuantityPartition, DirichletPartition])
def test_no_concentration_is_too_large_to_give_all_samples_away(kind):
    """Of 1e308 the shares were no numbers, and most samples were lost."""
    with pytest.raises(ValidationError, match="less than or equal to 1000000"):
        kind(alpha=1e308)
    assert sorted(dirichlet_sizes(1e15, 1437, 20, 0).tolist()) == [71] * 3 + [72] * 17


def test_quantities_of_values_are_held_out_too():
    y = np.arange(8, dtype=np.float32)
    data = Data(np.zeros((8, 1), np.float32), y, np.zeros((8, 1), np.float32), y, 1, kind="value")
    partition = DirichletPartition(alpha=1.0, of="quantities", test_samples=2)
    assert np.diff(partition.holdout(data, 3, 0).offsets).tolist() == [2, 2, 2]


def test_the_smaller_alpha_the_more_unequal_are_quantities():
    labels = np.zeros(10_000, dtype=np.int64)
    spread = [QuantityPartition(alpha=alpha).sizes(info_of(labels), 50, 3).std() for alpha in (100.0, 1.0, 0.1)]
    assert spread[0] < 40 < spread[1] < spread[2]
    assert QuantityPartition(alpha=0.1, least=20).sizes(info_of(labels), 50, 3).min() == 20


def test_both_names_of_quantity_skew_mean_the_same():
    labels = np.arange(100) % 6
    one, other = QuantityPartition(alpha=0.5), DirichletPartition(alpha=0.5, of="quantities")
    assert np.array_equal(one.sizes(info_of(labels), 8, 1), other.sizes(info_of(labels), 8, 1))


def test_test_samples_are_held_out_in_the_same_way():
    y, test_y = np.arange(120) % 6, np.arange(60) % 6
    data = Data(np.zeros((120, 1), np.float32), y, np.zeros((60, 1), np.float32), test_y, 6)
    for partition in (ShardPartition(), QuantityPartition(alpha=0.5), DirichletPartition(alpha=0.5, of="quantities")):
        held = partition.holdout(data, 5, 0)
        assert np.array_equal(np.sort(held.indices), np.arange(60))
    train = ShardPartition().split(y, 6, ShardPartition().sizes(info_of(y), 5, 0), 0)
    held = ShardPartition().holdout(data, 5, 0)
    for client in range(5):
        assert set(test_y[held.of(client)]) <= set(y[train.of(client)])


@pytest.mark.parametrize(
    "partition",
    [
        ShardPartition(),
        ShardPartition(shards=1),
        QuantityPartition(alpha=0.5, least=2),
        DirichletPartition(alpha=0.1),
        DirichletPartition(alpha=0.5, samples=3),
        DirichletPartition(alpha=0.5, samples=40, replace=True),
        DirichletPartition(alpha=5.0, by="label", least=1),
        DirichletPartition(alpha=0.5, of="quantities"),
    ],
)
@pytest.mark.parametrize("clients", [40, 400])
def test_all_test_samples_are_held_out_once_with_labels_that_a_client_learns(partition, clients):
    """Of 400 clients some hold out nothing, as there are 360 test samples."""
    data = Digits().load(0, clients)
    counts = tuple(np.bincount(data.y, minlength=10).tolist())
    sizes = partition.sizes(Info("digits", len(data.y), len(data.test_y), (64,), 10, counts), clients, 0)
    train, held = partition.split(data.y, 10, sizes, 0), partition.holdout(data, clients, 0)
    assert np.array_equal(np.sort(held.indices), np.arange(360))
    if not isinstance(partition, QuantityPartition) and partition != DirichletPartition(alpha=0.5, of="quantities"):
        for client in range(clients):
            assert set(data.test_y[held.of(client)]) <= set(data.y[train.of(client)])


def test_test_samples_of_labels_that_nobody_has_are_nobodys():
    """Six clients of one label each, 20 samples of it: four labels of ten lie at no client."""
    data, partition = Digits().load(0, 6), ClassPartition(classes=1, samples=20)
    held = partition.holdout(data, 6, 0)
    hosted = partition.hosted(10, 6, 0)[:, 0]
    assert np.array_equal(np.sort(held.indices), np.flatnonzero(np.isin(data.test_y, hosted)))
    for client in range(6):
        assert set(data.test_y[held.of(client)]) == {hosted[client]}


@pytest.mark.parametrize(
    ("partition", "kind", "clients", "message"),
    [
        (ShardPartition(), "class", 16, "32 shards, "),
        (ShardPartition(), "value", 2, '"shards" tells samples apart by their label'),
        (ClassPartition(classes=1), "multi-label", 2, "labels of the kind multi-label"),
        (DirichletPartition(alpha=1.0), "value", 2, "accepted: iid, quantity or natural"),
        (QuantityPartition(alpha=1.0, least=20), "value", 2, "accepted: at most 15"),
    ],
)
def test_one_message_for_what_cannot_be(partition, kind, clients, message):
    with pytest.raises(ScenarioError, match=message):
        partition.sizes(info_of(np.zeros(30, dtype=np.int64), kind), clients, 0)


def test_quantities_are_given_away_once():
    with pytest.raises(ValueError, match="neither samples nor reallocate"):
        DirichletPartition(alpha=1.0, of="quantities", samples=5)

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fedactors.data.base import Info
from fedactors.data.partitions.assignment import assign
from fedactors.data.partitions.dirichlet import DirichletPartition
from fedactors.data.partitions.natural import NaturalPartition
from fedactors.data.partitions.partition import ClassPartition, IidPartition
from fedactors.data.partitions.sizes import Pareto
from fedactors.data.sets.digits import Digits
from fedactors.data.sets.synthetic_data import SyntheticData
from fedactors.errors import DataError, ScenarioError
from tests.examples import drawn

CLASSES = 6
seeds = st.integers(0, 2**32)
crowds = st.integers(1, 25)
label_lists = st.lists(st.integers(0, CLASSES - 1), min_size=1, max_size=200).map(np.array)
partitions = st.one_of(
    st.just(IidPartition()),
    st.builds(ClassPartition, classes=st.integers(1, CLASSES), balanced=st.booleans()),
    st.builds(DirichletPartition, alpha=st.sampled_from([0.001, 0.1, 1.0, 100.0])),
)


def info_of(labels, classes=CLASSES):
    counts = tuple(np.bincount(labels, minlength=classes).tolist())
    return Info("toy", len(labels), 0, (1,), classes, counts)


def both(partition, labels, clients, seed):
    """Return sizes and split; skip the example if the partition refuses it, which other tests look at."""
    try:
        sizes = partition.sizes(info_of(labels), clients, seed)
    except ScenarioError:
        assume(False)
    return sizes, partition.split(labels, CLASSES, sizes, seed)


@given(partitions, label_lists, crowds, seeds)
def test_without_samples_all_data_are_dealt_once_in_the_sizes_announced(partition, labels, clients, seed):
    sizes, split = both(partition, labels, clients, seed)
    assert np.array_equal(np.diff(split.offsets), sizes)
    assert np.array_equal(np.sort(split.indices), np.arange(len(labels)))
    assert (sizes.dtype, split.offsets.dtype, split.indices.dtype) == (np.int64,) * 3


@given(partitions, label_lists, crowds, seeds, st.integers(1, 9))
def test_samples_asked_for_are_given_and_disjoint(partition, labels, clients, seed, samples):
    asked = partition.model_copy(update={"samples": samples})
    sizes, split = both(asked, labels, clients, seed)
    assert sizes.tolist() == [samples] * clients
    assert np.array_equal(np.diff(split.offsets), sizes)
    assert len(np.unique(split.indices)) == len(split.indices)


@given(partitions, label_lists, crowds, seeds)
def test_a_law_is_kept_exactly(partition, labels, clients, seed):
    law = Pareto(total=len(labels), floor=1)
    asked = partition.model_copy(update={"samples": law})
    sizes, split = both(asked, labels, clients, seed)
    assert np.array_equal(sizes, law.sizes(clients, seed))
    assert np.array_equal(np.diff(split.offsets), sizes)
    assert len(np.unique(split.indices)) == len(split.indices)


@given(partitions, label_lists, crowds, seeds, st.integers(1, 60))
def test_with_replacement_sizes_hold_whatever_there_is(partition, labels, clients, seed, samples):
    labels = np.concatenate([labels, np.arange(CLASSES)])  # a label without a sample cannot be drawn again
    asked = partition.model_copy(update={"samples": samples, "replace": True})
    sizes, split = both(asked, labels, clients, seed)
    assert np.array_equal(np.diff(split.offsets), sizes)
    assert sizes.tolist() == [samples] * clients
    assert split.indices.max(initial=0) < len(labels)


@given(partitions, label_lists, crowds, seeds)
def test_a_partition_is_a_function_of_the_seed(partition, labels, clients, seed):
    first, second = (both(partition, labels, clients, seed) for _ in range(2))
    assert np.array_equal(first[0], second[0])
    assert np.array_equal(first[1].offsets, second[1].offsets)
    assert np.array_equal(first[1].indices, second[1].indices)


@given(st.integers(1, CLASSES), crowds, seeds, st.booleans())
def test_each_client_hosts_distinct_labels(per_client, clients, seed, balanced):
    hosted = ClassPartition(classes=per_client, balanced=balanced).hosted(CLASSES, clients, seed)
    assert hosted.shape == (clients, per_client)
    assert all(len(set(row)) == per_client for row in hosted.tolist())
    if balanced:
        hosts = np.bincount(hosted.ravel(), minlength=CLASSES)
        assert hosts.max() - hosts.min() <= 1


@given(st.integers(1, CLASSES), st.integers(1, 5), seeds)
def test_classes_hold_as_many_samples_of_each_of_their_labels(per_client, share, seed):
    clients, samples = 12, per_client * share + per_client - 1
    labels = np.repeat(np.arange(CLASSES), 12 * (share + 1))
    partition = ClassPartition(classes=per_client, samples=samples)
    split = partition.split(labels, CLASSES, partition.sizes(info_of(labels), clients, seed), seed)
    for client in range(clients):
        held = np.bincount(labels[split.of(client)], minlength=CLASSES)
        assert sorted(held[held > 0]) == [share] + [share + 1] * (per_client - 1)


def test_balanced_classes_of_the_text_book():
    """10 clients, 10 labels of 20 samples, 2 labels each: every label has 2 hosts, who take 10 of it each."""
    labels = np.tile(np.arange(10), 20)
    partition = ClassPartition(classes=2)
    sizes = partition.sizes(info_of(labels, 10), 10, 3)
    split = partition.split(labels, 10, sizes, 3)
    assert sizes.tolist() == [20] * 10
    for client in range(10):
        held = np.bincount(labels[split.of(client)], minlength=10)
        assert sorted(held) == [0] * 8 + [10, 10]


def test_clients_of_all_classes_are_alike():
    labels = np.tile(np.arange(10), 30)
    partition = ClassPartition(classes=10, samples=30)
    split = partition.split(labels, 10, partition.sizes(info_of(labels, 10), 10, 0), 0)
    assert all((np.bincount(labels[split.of(k)], minlength=10) == 3).all() for k in range(10))


def test_digits_go_out_by_class_in_the_sizes_known_beforehand():
    info, data = Digits().info(0, 100), Digits().load(0, 100)
    partition = ClassPartition(classes=2)
    sizes = partition.sizes(info, 100, 7)
    split = partition.split(data.y, data.classes, sizes, 7)
    assert sizes.sum() == info.train_size
    assert all(len(np.unique(data.y[split.of(k)])) == 2 for k in range(100))


@pytest.mark.parametrize(("alpha", "low", "high"), [(1000.0, 0, 0.3), (0.01, 0.8, 1)])
def test_small_alpha_means_few_labels(alpha, low, high):
    """The share of a client's most frequent label, of 10: about 0.1 for a large alpha, 1 for a small one."""
    labels = np.tile(np.arange(10), 1000)
    split = DirichletPartition(alpha=alpha, samples=50).split(labels, 10, np.full(100, 50), 0)
    most = [np.bincount(labels[split.of(k)]).max() / 50 for k in range(100)]
    assert low < np.mean(most) < high


def test_iid_clients_see_labels_as_frequent_as_they_are():
    labels = np.repeat([0, 1], [9000, 1000])
    split = IidPartition().split(labels, 2, np.full(2, 5000), 0)
    assert labels[split.of(0)].mean() == pytest.approx(0.1, abs=0.02)


def test_natural_clients_hold_what_the_data_say():
    option, partition = SyntheticData(samples=20), NaturalPartition()
    info, data = option.info(0, 4), option.load(0, 4)
    sizes = partition.sizes(info, 4, 0)
    split = partition.split(data.y, data.classes, sizes, 0)
    assert np.array_equal(split.offsets, data.clients)
    assert split.of(2).tolist() == list(range(36, 54))


def test_a_pool_is_used_up_before_a_sample_is_given_again():
    labels = np.array([0, 1, 0, 1, 1])
    hosted, shares = np.array([[0], [1], [1]]), np.array([[5], [2], [1]])
    split = assign(labels, hosted, shares, 0, replace=True)
    assert set(split.of(0)) == {0, 2}
    assert set(split.indices[5:]) == {1, 3, 4}


@pytest.mark.parametrize(
    ("partition", "clients", "message"),
    [
        (IidPartition(samples=9), 12, r'partition.samples: 108 wanted by 12 clients, "toy" has 100; accepted: fewer'),
        (DirichletPartition(alpha=1.0, samples=9), 12, r'108 wanted by 12 clients, "toy" has 100'),
        (ClassPartition(classes=1, samples=10), 10, r"label 2: 30 samples wanted, 10 available; accepted: fewer"),
        (ClassPartition(classes=5), 10, r"partition.classes: found 5, accepted: at most 4, all there are"),
        (ClassPartition(classes=1), 3, r"label \d lies at no client, \d+ samples are lost; accepted: more clients"),
        (NaturalPartition(), 3, r'"toy" does not come by client; accepted: iid, classes or dirichlet'),
    ],
)
def test_what_cannot_be_is_told_before_any_label_is_seen(partition, clients, message):
    labels = np.repeat([0, 1, 2, 3], [40, 40, 10, 10])
    with pytest.raises(ScenarioError, match=message):
        partition.sizes(info_of(labels, 4), clients, 0)


def test_classes_of_unknown_counts_need_a_number_of_samples():
    info = SyntheticData(samples=100).info(0, 5)
    assert ClassPartition(classes=2, samples=8).sizes(info, 5, 0).tolist() == [8] * 5
    with pytest.raises(ScenarioError, match=r'"synthetic" does not say how many samples each label has'):
        ClassPartition(classes=2).sizes(info, 5, 0)


def test_labels_that_run_out_at_the_split_are_named():
    labels = np.zeros(50, dtype=np.int64)
    with pytest.raises(ScenarioError, match=r"label 1: 10 samples wanted, 0 available"):
        ClassPartition(classes=2, samples=20).split(labels, 2, np.array([20]), 0)


def test_natural_data_of_another_size_are_refused():
    with pytest.raises(DataError, match=r"7 samples found, accepted: 6 as announced"):
        NaturalPartition().split(np.zeros(7, dtype=np.int64), 1, np.array([2, 4]), 0)
    info = SyntheticData(samples=100).info(0, 5)
    with pytest.raises(ScenarioError, match=r'"synthetic" comes from 5 clients, found 6'):
        NaturalPartition().sizes(info, 6, 0)


def test_labels_other_than_announced_are_refused():
    announced, found = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 0, 0, 1, 1])
    partition = ClassPartition(classes=1)
    sizes = partition.sizes(info_of(announced, 2), 2, 0)
    with pytest.raises(DataError, match=r"labels found \[4, 2\] times"):
        partition.split(found, 2, sizes, 0)


@drawn(5)
@given(st.sampled_from([IidPartition(), ClassPartition(classes=2, samples=3, replace=True)]), seeds)
def test_sizes_of_many_clients_need_no_loop(partition, seed):
    sizes = partition.sizes(Info("toy", 5_000_000, 0, (1,), 10, (500_000,) * 10), 100_000, seed)
    assert sizes.shape == (100_000,)

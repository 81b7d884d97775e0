from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fedactors import registry
from fedactors.data.base import Data, Info, LabelledSamples
from fedactors.data.partitions.assignment import Split
from fedactors.data.partitions.dirichlet import DirichletPartition
from fedactors.data.partitions.label_split import LabelSplit
from fedactors.data.partitions.partition import ClassPartition, IidPartition
from fedactors.data.partitions.pooled import Pooled
from fedactors.data.server.server_data import CentralServerData, ClientServerData, IidServerData
from fedactors.data.sets.digits import Digits
from fedactors.errors import ScenarioError
from fedactors.learning.training_task import TrainingData, share

CLASSES = 5
seeds = st.integers(0, 2**32)
label_lists = st.lists(st.integers(0, CLASSES - 1), min_size=20, max_size=200).map(np.array)
partitions = st.sampled_from(
    [IidPartition(), IidPartition(samples=3), DirichletPartition(alpha=0.3), IidPartition(samples=9, replace=True)]
)


def numbered(labels):
    """Return data whose sample i is the number i, so that one sees which samples were drawn."""
    x = np.arange(len(labels), dtype=np.float32)[:, None]
    return Data(x, labels, x[:0], labels[:0], classes=CLASSES)


def world(labels, partition, clients, seed):
    """Return data and split; skip the example if the partition refuses it, which is tested elsewhere."""
    info = Info("toy", len(labels), 0, (1,), CLASSES)
    try:
        return numbered(labels), partition.split(labels, CLASSES, partition.sizes(info, clients, seed), seed)
    except ScenarioError:
        assume(False)


def rows(drawn):
    return drawn[0][:, 0].astype(np.int64)


def test_weights_go_with_their_samples():
    """Sample i weighs i: at the server, in the part of a central learner, in a pool, and beside a client's own."""
    data = numbered(np.arange(20) % CLASSES)
    data = replace(data, weights=np.arange(20, dtype=np.float32))
    split = IidPartition().split(data.y, CLASSES, IidPartition().sizes(Info("toy", 20, 0, (1,), CLASSES), 2, 0), 0)
    parted = LabelSplit(central=(1, 3)).apply(data)
    pool = Pooled().apply(parted)
    held = TrainingData(data.x, data.y, split, weights=data.weights)
    shared = share(held, LabelledSamples(data.x[3:6], data.y[3:6], data.weights[3:6]))
    weighed = [
        IidServerData(samples=7).draw(data, split, 0),
        ClientServerData(clients=2, samples=3).draw(data, split, 0),
        CentralServerData().draw(parted, split, 0),
        CentralServerData(samples=3).draw(parted, split, 0),
        held.of(1),
        *(LabelledSamples(part.x, part.y, part.weights) for part in (parted, pool, shared)),
    ]
    for samples in weighed:
        assert len(samples.y) > 2
        assert samples.x[:, 0].tolist() == samples.weights.tolist()
    unweighed = replace(held, weights=None)
    assert share(unweighed, LabelledSamples(data.x[:2], data.y[:2])).weights is None
    beside = share(unweighed, LabelledSamples(data.x[3:5], data.y[3:5], data.weights[3:5]))
    assert beside.weights.tolist() == [1.0] * 20 + [3.0, 4.0]
    assert len({b"".join(some.signature()) for some in (held, unweighed, replace(held, weights=data.weights + 1))}) == 3


@given(label_lists, partitions, st.integers(1, 12), seeds, st.integers(1, 40), st.booleans())
def test_iid_data_are_stratified_distinct_and_from_where_they_should_be(
    labels, partition, clients, seed, samples, copies
):
    data, split = world(labels, partition, clients, seed)
    pool = set(split.indices.tolist())
    pool = pool if copies else set(range(len(labels))) - pool
    option = IidServerData(samples=samples, copies=copies)
    available = np.bincount(labels[sorted(pool)], minlength=CLASSES)
    wanted = [samples // CLASSES + (label < samples % CLASSES) for label in range(CLASSES)]
    if (wanted > available).any():
        with pytest.raises(ScenarioError, match=r"server_data.samples: label \d: \d+ wanted, \d+ held by"):
            option.draw(data, split, seed)
        return
    drawn = option.draw(data, split, seed)
    assert np.bincount(drawn[1], minlength=CLASSES).tolist() == wanted
    assert len(set(rows(drawn))) == samples == option.size(Info("toy", len(labels), 0, (1,), CLASSES))
    assert set(rows(drawn)) <= pool
    assert np.array_equal(labels[rows(drawn)], drawn[1])
    assert (drawn[0].dtype, drawn[1].dtype) == (np.float32, np.int64)


@given(label_lists, st.integers(1, 12), seeds, st.integers(1, 6), st.integers(1, 9))
def test_clients_give_as_many_of_their_own_samples(labels, clients, seed, givers, samples):
    data, split = world(labels, DirichletPartition(alpha=0.5), clients, seed)
    option = ClientServerData(clients=givers, samples=samples)
    able = (np.diff(split.offsets) >= samples).sum()
    if able < givers:
        with pytest.raises(ScenarioError, match=rf"server_data.clients: found {givers}, accepted: at most {able}, "):
            option.draw(data, split, seed)
        return
    drawn, chosen = option.draw(data, split, seed), option.chosen(split, seed)
    assert len(set(chosen)) == givers
    assert len(set(rows(drawn))) == givers * samples
    for number, client in enumerate(chosen):
        mine = rows(drawn)[number * samples : (number + 1) * samples]
        assert set(mine) <= set(split.of(client))
    assert np.array_equal(labels[rows(drawn)], drawn[1])


@given(st.sampled_from([IidServerData(samples=10), ClientServerData(clients=2, samples=5)]), seeds, st.booleans())
def test_a_draw_is_a_function_of_the_seed(option, seed, same):
    labels = np.tile(np.arange(CLASSES), 200)
    data, split = world(labels, IidPartition(), 10, 0)
    first, second = (rows(option.draw(data, split, s)) for s in (seed, seed if same else seed + 1))
    assert np.array_equal(first, second) == same


@given(seeds, st.integers(1, 20), st.integers(1, 20))
def test_a_larger_server_contains_the_smaller_one(seed, few, more):
    labels = np.tile(np.arange(CLASSES), 20)
    data, split = world(labels, IidPartition(), 10, seed)
    small, large = (set(rows(IidServerData(samples=n).draw(data, split, seed))) for n in (few, few + more))
    assert small < large


def test_a_draw_does_not_depend_on_who_holds_the_pool():
    labels = np.repeat(np.arange(CLASSES), 20)
    data, split = world(labels, ClassPartition(classes=1, samples=8), 10, 3)
    backwards = Split(split.offsets, split.indices[::-1])
    option = IidServerData(samples=25)
    assert np.array_equal(rows(option.draw(data, split, 1)), rows(option.draw(data, backwards, 1)))


def test_the_journal_papers_counts():
    """225 samples of 45 labels are 5 of each; 10 clients with 50 samples make 500, 9 make 450."""
    emnist = Info("emnist", 108_000, 0, (1, 28, 28), 45, (2400,) * 45)
    assert IidServerData(samples=225).size(emnist) == 225
    assert ClientServerData(clients=10, samples=50).size(emnist) == 500
    assert ClientServerData(clients=9, samples=50).size(emnist) == 450


def test_what_cannot_be_is_told_before_any_label_is_seen():
    info = Digits().info(0, 1)
    with pytest.raises(ScenarioError, match=r"label 0: 145 wanted, 142 held by clients; accepted: fewer samp"):
        IidServerData(samples=1441).size(info)
    with pytest.raises(ScenarioError, match=r'1,440 samples wanted, "digits" has 1,437; accepted: fewer'):
        ClientServerData(clients=10, samples=144).size(info)


def test_a_server_without_copies_needs_samples_that_nobody_holds():
    labels = np.tile(np.arange(CLASSES), 20)
    data, split = world(labels, IidPartition(), 10, 0)
    with pytest.raises(ScenarioError, match=r"label 0: 2 wanted, 0 held by no client; .* or copies: true"):
        IidServerData(samples=10, copies=False).draw(data, split, 0)


@pytest.mark.parametrize("name", registry.names("server_data"))
def test_every_kind_says_its_name_and_can_be_asked(name):
    option = registry.lookup("server_data", name)
    assert option.model_fields["name"].default == name
    assert all(callable(getattr(option, method)) for method in ("size", "check", "draw"))

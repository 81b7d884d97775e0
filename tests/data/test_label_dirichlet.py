"""Labels split over clients by a Dirichlet law, against NIID-Bench's own procedure on real labels, and its laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from sklearn.datasets import load_digits

from fedactors.data.base import Data, Info
from fedactors.data.partitions.assignment import Split, assign_alike
from fedactors.data.partitions.dirichlet import DirichletPartition
from fedactors.data.partitions.label_dirichlet import cut
from fedactors.errors import DataError, ScenarioError
from fedactors.simulation.checks.check import check
from fedactors.streams import Purpose, stream
from tests.data.user.scenes import scene
from tests.examples import drawn

LABELS = load_digits().target.astype(np.int64)


def info_of(labels, classes=10, **more):
    counts = tuple(np.bincount(labels, minlength=classes).tolist())
    return Info("toy", len(labels), 0, (1,), classes, counts, **more)


def split_of(labels, clients, seed, classes=10, **options):
    partition = DirichletPartition(by="label", **options)
    sizes = partition.sizes(info_of(labels, classes), clients, seed)
    return sizes, partition.split(labels, classes, sizes, seed)


def table(labels, split, clients):
    return np.array([np.bincount(labels[split.of(client)], minlength=10) for client in range(clients)])


def niid_bench(y_train, n_parties, beta, draws, min_require_size=10):
    """Return the samples of each party, as partition "noniid-labeldir" of the authors' utils.py deals them."""
    n_total, min_size = y_train.shape[0], 0
    classes = np.unique(y_train)
    while min_size < min_require_size:
        batches = [[] for _ in range(n_parties)]
        for k in classes:
            idx_k = np.where(y_train == k)[0]
            draws.shuffle(idx_k)
            p = draws.dirichlet(np.repeat(beta, n_parties))
            p = np.array([q * (len(idx_j) < n_total / n_parties) for q, idx_j in zip(p, batches, strict=True)])
            if p.sum() == 0:
                break  # there it divides by 0
            p = p / p.sum()
            bounds = (np.cumsum(p) * len(idx_k)).astype(int)[:-1]
            batches = [idx_j + idx.tolist() for idx_j, idx in zip(batches, np.split(idx_k, bounds), strict=True)]
        min_size = min(len(idx_j) for idx_j in batches)
    return batches


class Unshuffled:
    """The generator of a run: its Dirichlet draws alone decide how many samples a party gets."""

    def __init__(self, seed):
        self.dirichlet = stream(seed, Purpose.PARTITION).dirichlet

    def shuffle(self, rows):
        """Leave the rows."""


@pytest.mark.parametrize(("clients", "alpha"), [(10, 0.1), (10, 0.5), (30, 0.5), (20, 100.0)])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_same_draws_give_the_counts_of_niid_bench(clients, alpha, seed):
    _, split = split_of(LABELS, clients, seed, alpha=alpha)
    theirs = niid_bench(LABELS, clients, alpha, Unshuffled(seed))
    wanted = np.array([np.bincount(LABELS[rows], minlength=10) for rows in theirs])
    assert np.array_equal(table(LABELS, split, clients), wanted)


def test_sizes_and_labels_are_as_unequal_as_theirs():
    """Means over 60 draws of the largest client, of its labels and of the largest share of a label; within 5 errors."""

    def figures(counts):
        sizes = counts.sum(1)
        return sizes.max(), sizes.std(), (counts > 0).sum(1).mean(), (counts.max(1) / sizes).mean()

    draws = np.random.default_rng(7)
    ours, theirs = [], []
    for seed in range(60):
        ours.append(figures(table(LABELS, split_of(LABELS, 10, seed, alpha=0.3)[1], 10)))
        rows = niid_bench(LABELS, 10, 0.3, draws)
        theirs.append(figures(np.array([np.bincount(LABELS[row], minlength=10) for row in rows])))
    error = np.sqrt(np.var(ours, axis=0) / 60 + np.var(theirs, axis=0) / 60)
    assert (np.abs(np.mean(ours, axis=0) - np.mean(theirs, axis=0)) < 5 * error).all()
    assert np.mean(ours, axis=0)[1] > 30, "sizes differ"


@drawn(40)
@given(
    st.lists(st.integers(0, 5), min_size=40, max_size=200).map(np.array),
    st.sampled_from([0.1, 0.5, 100.0]),
    st.integers(1, 6),
    st.integers(1, 3),
    st.integers(0, 2**32),
)
def test_every_sample_is_dealt_once_and_each_client_has_enough(labels, alpha, clients, least, seed):
    sizes, split = split_of(labels, clients, seed, 6, alpha=alpha, least=least)
    assert np.array_equal(np.diff(split.offsets), sizes)
    assert np.array_equal(np.sort(split.indices), np.arange(len(labels)))
    assert sizes.min() >= least
    again = split_of(labels, clients, seed, 6, alpha=alpha, least=least)
    assert np.array_equal(again[1].indices, split.indices)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9), st.integers(0, 1000))
def test_a_cut_gives_all_away(shares, count):
    total = sum(shares)
    found = cut(np.array(shares) / total if total > 1e-200 else np.full(len(shares), 1 / len(shares)), count)
    assert found.sum() == count
    assert found.min() >= 0


def test_samples_are_those_of_the_label_in_random_order():
    _, split = split_of(LABELS, 10, 3, alpha=0.5)
    _, other = split_of(LABELS, 10, 4, alpha=0.5)
    first = split.of(0)
    assert not np.array_equal(np.sort(first), np.sort(other.of(0)))
    label = int(LABELS[first[0]])
    of_one = first[LABELS[first] == label]
    assert not np.array_equal(of_one, np.flatnonzero(np.equal(LABELS, label))[: len(of_one)])


def test_what_cannot_be_reached_is_said():
    said = r"in 1,000 draws the smallest of 60 clients had at most 0 samples \(accepted: alpha above 0\.01, or fewer"
    with pytest.raises(ScenarioError, match=said):
        split_of(LABELS, 60, 0, alpha=0.01)
    with pytest.raises(
        ScenarioError, match=r"task\.partition\.least: 2,000 samples .* have 1,797 \(accepted: at most 8\)"
    ):
        split_of(LABELS, 200, 0, alpha=0.5)


def test_a_least_that_is_named_is_accepted():
    with pytest.raises(ScenarioError, match=r"accepted: least: [1-9]\d*, alpha above 0\.3, or fewer"):
        split_of(LABELS, 10, 0, alpha=0.3, least=179)


def test_labels_that_are_not_those_announced_are_refused():
    """Nine of the 182 samples of label 1 turn out to be of label 0, which was announced 178 times."""
    partition = DirichletPartition(by="label", alpha=0.5)
    sizes = partition.sizes(info_of(LABELS), 10, 0)
    other = LABELS.copy()
    other[np.flatnonzero(np.equal(other, 1))[:9]] = 0
    with pytest.raises(DataError, match=r"task\.partition: labels found \[187, 173, .*accepted: as announced"):
        partition.split(other, 10, sizes, 0)


def test_test_samples_are_held_out_in_the_same_proportions_of_each_label():
    labels, test = LABELS[:1400], LABELS[1400:]
    x = np.zeros((len(LABELS), 1), np.float32)
    data = Data(x[:1400], labels, x[1400:], test, 10)
    partition = DirichletPartition(by="label", alpha=0.5)
    sizes = partition.sizes(info_of(labels), 8, 5)
    train = table(labels, partition.split(labels, 10, sizes, 5), 8)
    held = partition.holdout(data, 8, 5)
    assert np.array_equal(np.sort(held.indices), np.arange(len(test)))
    wanted = train / train.sum(0) * np.bincount(test)
    assert (np.abs(table(test, held, 8) - wanted) < 1.01).all()
    split, trained, test = Split(np.array([0, 3, 4]), np.arange(4)), np.repeat([1], 4), np.repeat([0, 1], [4, 8])
    by_hand = assign_alike(split, trained, test, 2, 5)  # three of label 1 to one; label 0, which is nobody's, to both
    assert np.array_equal(table(test, by_hand, 2)[:, :2], [[2, 6], [2, 2]])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"by": "label", "of": "quantities"}, "found of too"),
        ({"by": "label", "samples": 10}, "found samples too"),
        ({"by": "label", "replace": True, "reallocate": True}, "found replace, reallocate too"),
        ({"least": 10}, "least goes with by: label"),
    ],
)
def test_options_that_mean_nothing_together_are_refused(options, said):
    with pytest.raises(ValidationError, match=said):
        DirichletPartition(alpha=0.1, **options)


def test_labels_that_are_not_counted_are_refused():
    partition = DirichletPartition(alpha=0.1, by="label")
    with pytest.raises(ScenarioError, match='"toy" does not say how many samples of each label it has'):
        partition.sizes(Info("toy", 100, 0, (1,), 10), 4, 0)
    with pytest.raises(ScenarioError, match="labels of the kind value"):
        partition.sizes(info_of(LABELS, kind="value"), 4, 0)


def test_a_scenario_takes_it(tmp_path):
    partition = {"name": "dirichlet", "alpha": 0.1, "by": "label", "least": 5}
    found = check(scene(tmp_path, {"dataset": "digits", "model": "logistic", "partition": partition}))
    assert found["samples"]["smallest"] >= 5
    assert found["samples"]["largest"] > found["samples"]["smallest"] + 1

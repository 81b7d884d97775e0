"""Data that are reassigned in every round: disjoint, deterministic, and known to every host without being sent."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedactors
from fedactors import Scenario
from fedactors.data.partitions.dirichlet import DirichletPartition
from fedactors.data.partitions.partition import ClassPartition, IidPartition
from fedactors.data.partitions.reassignment import ReassignedSplit
from fedactors.errors import ScenarioError
from fedactors.simulation.prepare import prepare
from fedactors.simulation.runner import load
from tests.algorithms.test_runs import BASE

LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 60))
SIZES = np.full(30, 40)
PARTITIONS = [
    IidPartition(samples=40, reallocate=True),
    ClassPartition(classes=1, samples=40, reallocate=True),
    DirichletPartition(alpha=0.3, samples=40, reallocate=True),
]


def dealt(partition, seed=1):
    return ReassignedSplit(partition, LABELS, 10, SIZES, seed)


@pytest.mark.parametrize("partition", PARTITIONS, ids=lambda p: p.name)
@given(st.integers(0, 10**6), st.sets(st.integers(0, 29), min_size=1, max_size=10))
def test_active_clients_share_all_data_out_without_overlap(partition, version, active):
    held = dealt(partition).among(version, tuple(sorted(active)))
    samples = [held.of(client) for client in sorted(active)]
    assert [len(part) for part in samples] == [40] * len(active)
    assert len(set(np.concatenate(samples).tolist())) == 40 * len(active)
    if partition.name == "classes":
        labels = [set(LABELS[part].tolist()) for part in samples]
        assert all(len(found) == 1 for found in labels)
        assert len(set.union(*labels)) == len(active)  # ten labels, ten clients at most: nobody shares one
    with pytest.raises(KeyError):
        held.of(next(client for client in range(30) if client not in active))


@pytest.mark.parametrize("partition", PARTITIONS, ids=lambda p: p.name)
def test_a_deal_depends_on_seed_round_and_active_clients_alone(partition):
    """A host that joins late, or is asked for rounds in any order, knows the same holdings."""
    early, late = dealt(partition), pickle.loads(pickle.dumps(dealt(partition)))
    rounds = [(version, tuple(range(version, version + 8))) for version in range(4)]
    known = {key: [early.among(*key).of(client).tolist() for client in key[1]] for key in rounds}
    for key in reversed(rounds):
        assert [late.among(*key).of(client).tolist() for client in key[1]] == known[key]
    same = rounds[0][1]
    assert not np.array_equal(early.among(5, same).of(0), early.among(6, same).of(0))
    assert not np.array_equal(early.among(5, same).of(0), dealt(partition, seed=2).among(5, same).of(0))


def scenario(partition, **server):
    base = {**BASE["server"], "data": None, **server}
    task = {**BASE["task"], "partition": partition}
    return Scenario.model_validate({**BASE, "task": task, "server": base})


AUTO = {"name": "fast-reboot", "departures": "auto"}
FINE_TUNED = {"every": 1, "on": "test", "fine_tune": {"steps": 1, "lr": 0.1}}
ONE_CLASS = {"name": "classes", "classes": 1, "samples": 100}


def test_a_run_with_new_data_in_every_round(tmp_path):
    """The clock sees no difference; training does, from the first round on; the same again, bit for bit."""
    anew = {**ONE_CLASS, "reallocate": True}
    runs = [
        fedactors.run(scenario(partition), tmp_path / str(number), fleet="local")
        for number, partition in enumerate((ONE_CLASS, anew, anew))
    ]
    digests = [found.summary["digests"] for found in runs]
    assert digests[0]["plans"] == digests[1]["plans"]
    assert digests[0]["model"] != digests[1]["model"]
    assert digests[1] == digests[2]


def test_more_samples_than_all_clients_could_have_at_once():
    """Ten clients of 250 of the 1,437 images of digits: too many at once, not for the five of a round."""
    with pytest.raises(ScenarioError, match="2,500 wanted by 10 clients"):
        prepare(scenario({"name": "iid", "samples": 250}))
    prepared = prepare(scenario({"name": "iid", "samples": 250, "reallocate": True}))
    assert prepared.sizes.tolist() == [250] * 10
    samples = load(prepared).samples
    held = samples.split.among(0, (1, 3, 5, 7, 9))
    assert len(np.unique(np.concatenate([held.of(client) for client in (1, 3, 5, 7, 9)]))) == 1250


@pytest.mark.parametrize(
    ("partition", "server", "message"),
    [
        ({"name": "iid", "samples": 300}, {}, r"1,500 wanted by 5 clients, .* has 1,437"),
        ({"name": "iid", "samples": 100}, {"data": {"name": "iid", "samples": 10}}, "server.data are taken"),
        ({"name": "iid", "samples": 100}, {"membership": AUTO}, "departures: auto looks at data that stay"),
        ({"name": "iid", "samples": 100}, {"evaluation": FINE_TUNED}, "evaluation.fine_tune looks at data that stay"),
        ({"name": "classes", "classes": 1}, {}, "reallocate needs the number"),
        ({"name": "classes", "classes": 1, "samples": 200}, {}, r"200 samples of a label .* there are 1[34]\d"),
        (
            {"name": "classes", "classes": 1, "samples": 100, "balanced": False},
            {},
            r"500 samples of a label may be wanted",
        ),
    ],
)
def test_what_cannot_be_dealt_is_refused_before_the_run(partition, server, message):
    with pytest.raises(ScenarioError, match=message):
        prepare(scenario({**partition, "reallocate": True}, **server))


def test_nothing_belongs_to_a_client_beyond_a_round():
    with pytest.raises(TypeError, match="reassigned"):
        dealt(PARTITIONS[0]).of(0)

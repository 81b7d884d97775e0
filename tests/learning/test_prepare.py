"""What a host does for its next chunks before the models are there: it saves time and changes no bit."""

from dataclasses import replace

import pytest

from fedactors.algorithms.fedavg import FedAvg
from fedactors.algorithms.fednova import FedNova
from fedactors.algorithms.fedprox import FedProx
from fedactors.engines import conv_batches, dense_batched
from fedactors.fleet.workers import ClientHost
from fedactors.models.network import initial
from tests.engines.test_engines import chunk, samples, task
from tests.learning.test_chunks import MODELS, PARTS

ALL_EQUAL = [one._replace(steps=(6, 6)) for one in PARTS]
LONGEST_FIRST = [chunk((9, 8, 0), (0, 2, 3), (0.3, 0.7, 1.0))]
WORK = {"equal": ALL_EQUAL, "longest first": LONGEST_FIRST, "mixed": PARTS, "nobody moves": [chunk((0,), (1,), (1.0,))]}
SENT = 2


def told(model, algorithm):
    return replace(task(model), algorithm=algorithm, returns_client_losses=True)


def bits(learned):
    """Return all that hosts told, to be compared."""
    return [(one._replace(sums={}), {k: v.tobytes() for k, v in one.sums.items()}) for one in learned]


def rows_at_once(host):
    """Return how many rows are trained first: of all chunks, or of one where this processor keeps chunks apart."""
    return sum(len(one.clients) for one in host._trainer.groups(ALL_EQUAL)[0])


def sent(model):
    return [{"x": initial(model, seed)} for seed in range(SENT)]


@pytest.mark.parametrize("algorithm", [FedAvg(), FedNova(), FedProx(mu=0.1)], ids=["fedavg", "fednova", "fedprox"])
@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("name", MODELS)
def test_prepared_chunks_give_the_same_bits(name, work, algorithm):
    model, chunks = MODELS[name], [one._replace(place=number) for number, one in enumerate(WORK[work])]
    host = ClientHost(told(model, algorithm), samples(model))
    expected = host.learn(chunks, *sent(model))
    host.prepare(chunks)
    assert host._trainer._ahead is not None
    assert bits(host.learn(chunks, *sent(model))) == bits(expected)
    assert host._trainer._ahead is None, "it was used, and its memory given back"


def test_batches_are_ready():
    for name in ("logistic", "mlp", "wide", "images"):
        host = ClientHost(told(MODELS[name], FedAvg()), samples(MODELS[name]))
        host.prepare(ALL_EQUAL)
        ready = host._trainer._ahead.prepared
        assert (
            [len(batches) for batches in ready] == [6] * rows_at_once(host) if name == "images" else ready is not None
        )


def test_what_was_prepared_for_other_chunks_is_not_used():
    model = MODELS["mlp"]
    host = ClientHost(told(model, FedAvg()), samples(model))
    expected = host.learn(PARTS, *sent(model))
    for other in (ALL_EQUAL, LONGEST_FIRST, [one._replace(version=7) for one in PARTS], []):
        host.prepare(other)
        assert bits(host.learn(PARTS, *sent(model))) == bits(expected)


def test_only_the_first_batches_of_long_trips_are_ready(monkeypatch):
    model = MODELS["logistic"]
    host = ClientHost(told(model, FedAvg()), samples(model))
    expected = host.learn(ALL_EQUAL, *sent(model))
    monkeypatch.setattr(dense_batched, "_GATHERED", 2000)
    host.prepare(ALL_EQUAL)
    assert len(host._trainer._ahead.prepared.steps) < 6
    assert bits(host.learn(ALL_EQUAL, *sent(model))) == bits(expected)


def test_of_images_so_many_batches_are_ready_as_there_is_time_for(monkeypatch):
    model = MODELS["images"]
    host = ClientHost(told(model, FedAvg()), samples(model))
    expected = host.learn(ALL_EQUAL, *sent(model))
    monkeypatch.setattr(conv_batches, "_AHEAD", 4 * 5 * (3 * 14 * 14 + 5 * 7 * 7) + 1)
    host.prepare(ALL_EQUAL)
    assert [len(batches) for batches in host._trainer._ahead.prepared] == [5] + [0] * (rows_at_once(host) - 1)
    assert bits(host.learn(ALL_EQUAL, *sent(model))) == bits(expected)


def test_a_host_that_lacks_memory_prepares_less(monkeypatch):
    model = MODELS["mlp"]
    host = ClientHost(told(model, FedAvg()), samples(model))
    expected = host.learn(ALL_EQUAL, *sent(model))
    host.limit(2)
    host.prepare(ALL_EQUAL)
    assert host._trainer._ahead.prepared is None
    limited = host.learn(ALL_EQUAL, *sent(model))
    assert bits([one._replace(memory_limit=None) for one in limited]) == bits(expected)

    def lacking(*_):
        raise MemoryError

    host = ClientHost(told(model, FedAvg()), samples(model))
    monkeypatch.setattr(dense_batched.DenseBatchedEngine, "prepare", lacking)
    host.prepare(ALL_EQUAL)
    assert bits(host.learn(ALL_EQUAL, *sent(model))) == bits(expected)

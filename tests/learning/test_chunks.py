"""Chunks that a host trains together have the bits that they have one by one."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedactors.algorithms.fedavg import FedAvg
from fedactors.algorithms.fednova import FedNova
from fedactors.algorithms.fedprox import FedProx
from fedactors.data.partitions.assignment import contiguous
from fedactors.engines import conv_sequential, shared_layer
from fedactors.engines.conv_sequential import ConvSequentialEngine
from fedactors.engines.dense_batched import DenseBatchedEngine
from fedactors.engines.dense_gram import DenseGramEngine
from fedactors.engines.grams import Grams
from fedactors.fleet.workers import ClientHost
from fedactors.learning.chunks import groups, joined
from fedactors.learning.trainer import Trainer
from fedactors.learning.training_task import TrainingData, TrainingTask
from fedactors.models.layers import Dense, Dropout, Flatten, Pool, Relu, conv, dense, stack
from fedactors.models.network import initial
from fedactors.models.paper_models import Logistic, Mlp
from fedactors.workload import workload
from tests.engines.test_engines import MODELS as SMALL
from tests.engines.test_engines import Pulled, chunk, engine_of, samples, task

IMAGES = conv(5, 3, "same"), Relu(), Pool(2), Dropout(0.2), Flatten(), dense(343), Relu(), dense(3)
MODELS = {**SMALL, "wide": Mlp(hidden=[200]).build((1, 28, 28), 3), "images": stack("images", (3, 14, 14), *IMAGES)}
PARTS = [
    chunk((6, 9), (0, 2), (0.3, 0.7)),
    chunk((9, 8), (1, 3), (0.2, 0.4)),
    chunk((9, 0), (2, 4), (0.1, 2.0), model_indices=(1, 0)),
]


SUMMED = {"wide": DenseGramEngine, "images": ConvSequentialEngine}  # engines that add updates up


def invariant(model):
    """Whether a row has the same bits on this processor whichever rows are trained with it; not so on all of them."""
    return Trainer(task(model), samples(model))._is_batch_invariant(PARTS)


def apart(monkeypatch):
    monkeypatch.setattr(Trainer, "groups", lambda self, chunks: [[one] for one in chunks])


@pytest.mark.parametrize("algorithm", [FedAvg(), FedNova()], ids=["fedavg", "fednova"])
@pytest.mark.parametrize("name", MODELS)
def test_a_host_gives_the_same_bits_together_and_one_by_one(name, algorithm, monkeypatch):
    model = MODELS[name]
    told = replace(task(model), algorithm=algorithm, returns_client_losses=True)
    chunks = [one._replace(place=number) for number, one in enumerate(PARTS)]
    sent = [{"x": initial(model, seed)} for seed in (1, 2)]
    assert len(ClientHost(told, samples(model))._trainer.groups(chunks)) == (1 if invariant(model) else len(chunks))
    together = ClientHost(told, samples(model)).learn(chunks, *sent)
    apart(monkeypatch)
    alone = ClientHost(told, samples(model)).learn(chunks, *sent)
    for one, other in zip(together, alone, strict=True):
        assert one._replace(sums={}) == other._replace(sums={})
        assert all(np.array_equal(one.sums[name], other.sums[name]) for name in other.sums)


SHAPES = {
    "logistic": Logistic(init="uniform").build((60,), 10),
    "odd": Logistic(init="uniform").build((561,), 6),
    "narrow": Mlp(hidden=[50]).build((42,), 3),
    "deep": Mlp(hidden=[13, 7], dropout=0.2).build((42,), 10),
    "wide": Mlp(hidden=[200]).build((1, 28, 28), 10),
    "uneven": Mlp(hidden=[101]).build((1, 28, 28), 62),
    "images": MODELS["images"],
}


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 7, 10, 32])
@pytest.mark.parametrize("name", SHAPES)
def test_neither_sizes_nor_batches_nor_places_make_a_difference_to_the_bits(name, batch, monkeypatch):
    """Clients with less than a batch, trips of all lengths, matrices that begin anywhere in memory."""
    model, draws = SHAPES[name], np.random.default_rng(batch)
    sizes = draws.integers(1, 4 * batch + 2, 30)
    works = tuple(workload(int(n), batch, epochs=1, steps=None) for n in sizes)
    x = draws.normal(size=(sizes.sum(), *model.input_shape)).astype(np.float32)
    data = TrainingData(x, draws.integers(0, model.output_shape[0], len(x)), contiguous(sizes))
    the_task, chunks = TrainingTask(model, FedAvg(), 3, works), []
    for number in range(10):
        clients = tuple(range(3 * number, 3 * number + 3))
        steps = tuple(int(draws.integers(0, works[c].wanted + 1)) if number % 2 else works[c].wanted for c in clients)
        chunks.append(chunk(steps, clients, (0.4, 1.7, 0.1))._replace(place=number))
    host, sent = ClientHost(the_task, data), {"x": initial(model, 1)}
    together = host.learn(chunks, sent)
    apart(monkeypatch)
    for one, other in zip(together, host.learn(chunks, sent), strict=True):
        assert one.loss == other.loss
        assert np.array_equal(one.sums["delta"], other.sums["delta"])


@pytest.mark.parametrize("count", [1, 2, 3, 15, 16, 40, 100])
@pytest.mark.parametrize("name", SUMMED)
def test_a_chunk_that_is_cut_for_lack_of_memory_has_the_bits_of_the_whole(name, count):
    model, draws = SHAPES[name], np.random.default_rng(count)
    sizes = np.array([count] * 5 + [max(1, count // 2)])
    x = draws.normal(size=(sizes.sum(), *model.input_shape)).astype(np.float32)
    data = TrainingData(x, draws.integers(0, model.output_shape[0], len(x)), contiguous(sizes))
    works = tuple(workload(int(n), 10, epochs=1, steps=None) for n in sizes)
    the_task, sent = TrainingTask(model, FedAvg(), 3, works), {"x": initial(model, 1)}
    asked = chunk([work.wanted for work in works], tuple(range(6)), (0.1, 0.3, 0.2, 0.2, 0.1, 0.1))
    whole, cut = Trainer(the_task, data).learn(asked, [sent]), Trainer(the_task, data)
    for most in (5, 3, 2):
        cut.limit(most)
        found = cut.learn(asked, [sent])
        assert found.memory_limit.at_once == most
        if found.memory_limit.same_bits:
            assert found.loss == whole.loss
            assert np.array_equal(found.sums["delta"], whole.sums["delta"])
        else:
            first = next(layer for layer in model.layers if isinstance(layer, Dense))
            assert not shared_layer.batch_invariant(first), "parts were trained for which other bits must be expected"
            np.testing.assert_allclose(found.sums["delta"], whole.sums["delta"], rtol=1e-3, atol=1e-6)


def test_where_places_matter_chunks_stay_apart(monkeypatch):
    host = ClientHost(task(MODELS["mlp"]), samples(MODELS["mlp"]))
    assert len(host._trainer.groups(PARTS)) == 1
    monkeypatch.setattr(DenseBatchedEngine, "batch_invariant", lambda *_: False)
    host = ClientHost(task(MODELS["mlp"]), samples(MODELS["mlp"]))
    assert len(host._trainer.groups(PARTS)) == 3


def test_chunks_of_whole_trips_are_trained_together_where_only_other_lengths_matter(monkeypatch):
    """Rows of ten batches of ten are aligned in memory, those of nine are not; some processors round them otherwise."""
    model, draws = MODELS["wide"], np.random.default_rng(1)
    x = draws.normal(size=(600, *model.input_shape)).astype(np.float32)
    data = TrainingData(x, draws.integers(0, 3, 600), contiguous(np.array([100] * 6)))
    the_task = TrainingTask(model, FedAvg(), 3, (workload(100, 10, epochs=1, steps=None),) * 6)
    sent = {"x": initial(model, 1)}
    whole = [chunk((10, 10, 4), clients, (0.1, 0.2, 0.3))._replace(among=2) for clients in ((0, 1, 2), (3, 4, 5))]
    whole[1] = whole[1]._replace(place=1)
    other = [one._replace(steps=(9, 9, 4)) for one in whole]
    tried = DenseGramEngine.batch_invariant

    def of_whole_trips(engine, work, dataset, of_client, steps=None):
        return steps == 10 and tried(engine, work, dataset, of_client, steps)

    monkeypatch.setattr(DenseGramEngine, "batch_invariant", of_whole_trips)
    host = ClientHost(the_task, data)
    assert len(host._trainer.groups(other)) == 2
    if not tried(DenseGramEngine(), the_task.local_work, host._trainer._dataset, the_task.workloads[0], 10):
        pytest.skip("this processor rounds by place for whole trips, too")
    assert len(host._trainer.groups(whole)) == 1
    (together,) = host.learn(whole, sent)
    apart(monkeypatch)
    (alone,) = ClientHost(the_task, data).learn(whole, sent)
    assert together.loss == alone.loss
    assert np.array_equal(together.sums["delta"], alone.sums["delta"])


def test_an_engine_whose_bits_depend_on_places_is_found_out():
    model = MODELS["mlp"]
    like, local, work = Trainer(task(model), samples(model))._dataset, task(model).local_work, task(model).workloads[0]
    assert DenseBatchedEngine().batch_invariant(local, like, work)

    class Biased(DenseBatchedEngine):
        def train(self, dataset, rows):
            found = super().train(dataset, rows)
            found.deltas[3:4] *= 1.0000002
            return found

    class Unequal(DenseBatchedEngine):
        def train(self, dataset, rows):
            return super().train(dataset, rows)._replace(losses=torch.arange(20.0)[:, None])

    assert not Biased().batch_invariant(local, like, work)
    assert not Unequal().batch_invariant(local, like, work)


@pytest.mark.parametrize("name", SUMMED)
def test_a_second_try_for_want_of_memory_adds_nothing_twice(name):
    model, calls = MODELS[name], []
    work, sent = chunk((6, 3, 9, 1, 5, 2, 7, 4), (0, 1, 2, 3, 4, 0, 2, 4)), [{"x": initial(model, 1)}]
    whole = Trainer(task(model), samples(model)).learn(work, sent)

    class Short(SUMMED[name]):
        def batch_invariant(self, *given):
            return SUMMED[name]().batch_invariant(*given)

        def train(self, dataset, rows):
            calls.append(len(rows.clients))
            if len(calls) == 2:
                raise MemoryError
            return super().train(dataset, rows)

    trainer = Trainer(task(model), samples(model), engine=Short())
    trainer.limit(4)
    assert np.array_equal(trainer.learn(work, sent).sums["delta"], whole.sums["delta"])
    assert calls == [4, 4, 2, 2, 2, 2]


def test_chunks_are_trained_together_where_they_agree_and_fit():
    one, other, third = PARTS
    works = task(MODELS["mlp"]).workloads
    assert groups(PARTS, 6, works) == [PARTS]
    assert groups(PARTS, 4, works) == [[one, other], [third]]
    assert groups(PARTS, 0, works) == [[one], [other], [third]]
    for changed in (other._replace(lr=0.3), other._replace(steps=(8, 8)), other._replace(clients=(3, 3))):
        assert groups([one, changed, third], 9, works) == [[one], [changed], [third]]
    assert groups([], 9, works) == []
    single = chunk((9,), (1,))
    assert groups([one, single, other, third], 9, works) == [[one], [single], [other, third]]
    assert joined(PARTS).clients == (0, 2, 1, 3, 2, 4)
    assert joined(PARTS).cost == sum(part.cost for part in PARTS)


def test_clients_of_convolutional_models_share_a_layer_where_their_trips_are_short(monkeypatch):
    model = MODELS["images"]
    rows = Trainer(task(model), samples(model))._rows(PARTS, joined(PARTS), torch.zeros(1))
    sharing = conv_sequential._sharing(model, rows)
    assert dict(zip(rows.clients, sharing, strict=True)) == {0: True, 1: True, 2: False, 3: True, 4: True}
    assert list(conv_sequential._groups(model, rows, sharing)) == [[0], [1], [2, 3], [4]]
    assert not any(conv_sequential._sharing(model, replace(rows, prox=0.1)))
    monkeypatch.setattr(conv_sequential, "_KEPT", 5 * conv_sequential._outputs(model))
    assert all(len(group) == 1 for group in conv_sequential._groups(model, rows, sharing)), "no more than fit beside it"


@pytest.mark.parametrize("name", SUMMED)
def test_updates_are_added_up_without_being_written_out(name, monkeypatch):
    model = MODELS[name]
    assert engine_of(task(model)) is SUMMED[name]
    work, sent = chunk((6, 3, 9, 1, 5), weights=(0.3, 0.7, 0.2, 0.1, 2.0)), [{"x": initial(model, 1)}]
    trainer = Trainer(task(model), samples(model))
    found = trainer.learn(work, sent)
    monkeypatch.setattr(trainer, "_adds_up", False)
    written = trainer.learn(work, sent)
    np.testing.assert_allclose(found.sums["delta"], written.sums["delta"], rtol=1e-4, atol=1e-6)
    assert found.loss == written.loss
    monkeypatch.setattr(trainer, "_adds_up", True)
    trainer.limit(2)
    assert np.array_equal(trainer.learn(work, sent).sums["delta"], found.sums["delta"]), "parts add in the same order"


@pytest.mark.parametrize("algorithm", [FedProx(mu=0.1), Pulled()], ids=["fedprox", "pulled"])
def test_updates_of_clients_who_feel_more_than_their_gradient_are_added_up(algorithm, monkeypatch):
    model = MODELS["images"]
    work, sent = chunk((6, 3, 9, 1, 5), weights=(0.3, 0.7, 0.2, 0.1, 2.0)), [{"x": initial(model, 1)}]
    trainer = Trainer(replace(task(model), algorithm=algorithm), samples(model))
    found = trainer.learn(work, sent)
    monkeypatch.setattr(trainer, "_adds_up", False)
    assert np.array_equal(trainer.learn(work, sent).sums["delta"], found.sums["delta"])


@pytest.mark.parametrize("name", SUMMED)
def test_a_bad_update_is_found_though_it_was_added_up(name):
    model, data = MODELS[name], samples(MODELS[name])
    data.x[data.split.of(2)] = np.inf
    host = ClientHost(task(model), data)
    learned = host.learn([chunk((2, 2), (0, 1)), chunk((3, 1), (2, 4))], {"x": initial(model, 1)})
    assert [client for one in learned for client, _ in one.bad] == [2]


def test_inner_products_are_those_of_the_samples_in_any_order_and_may_repeat():
    draws = np.random.default_rng(0)
    x = torch.from_numpy(draws.normal(size=(9, 4)).astype(np.float32))
    held = np.array([7, 2, 2, 5])

    class Everybody:
        def of(self, client):
            return held

    order = np.array([5, 7, 7, 2])
    out = torch.zeros(4, 4)
    Grams(x, Everybody()).write(0, order, out)
    torch.testing.assert_close(out, 1 + x[order] @ x[order].T)


def test_the_span_is_the_same_with_inner_products_kept_and_worked_out(monkeypatch):
    model = MODELS["wide"]
    data, sent = samples(model), [{"x": initial(model, 1)}]
    kept = Trainer(task(model), data)
    assert kept._dataset.cache is not None
    monkeypatch.setattr("fedactors.engines.grams.ROOM", 1000)
    anew = Trainer(task(model), data)
    assert anew._dataset.cache is None
    work = chunk(tuple(w.wanted for w in task(model).workloads))
    one, other = kept.learn(work, sent), anew.learn(work, sent)
    np.testing.assert_allclose(one.sums["delta"], other.sums["delta"], rtol=1e-4, atol=1e-6)

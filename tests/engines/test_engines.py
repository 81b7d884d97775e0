"""Engines against the sequential one and against torch.optim; which one is chosen; and what a chunk promises."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import nn

from fedactors.algorithms.fed_ams import FedAMS
from fedactors.algorithms.fedavg import FedAvg
from fedactors.data.batches import bounds, sequence
from fedactors.data.partitions.assignment import contiguous
from fedactors.engines.dense_batched import DenseBatchedEngine
from fedactors.engines.dense_gram import DenseGramEngine
from fedactors.engines.engine_choice import choose
from fedactors.engines.local_work import LocalWork
from fedactors.engines.sequential import SequentialEngine
from fedactors.engines.vmap import VmapEngine
from fedactors.learning.trainer import Trainer
from fedactors.learning.training_task import Chunk, TrainingData, TrainingTask
from fedactors.models.network import initial
from fedactors.models.paper_models import FslCifar, Logistic, Mlp
from fedactors.workload import workload

SIZES = np.array([23, 7, 40, 1, 16])
MODELS = {
    "logistic": Logistic(init="uniform").build((12,), 3),
    "mlp": Mlp(hidden=[8]).build((12,), 3),
    "dropout": Mlp(hidden=[16], dropout=0.4).build((12,), 3),
    "deep": Mlp(hidden=[16, 9, 7], dropout=0.2).build((3, 2, 2), 3),
}


def task(model, batch=5, drop_last=False):
    works = tuple(workload(int(n), batch, epochs=2, steps=None, drop_last=drop_last) for n in SIZES)
    return TrainingTask(model, FedAvg(), 3, works)


def samples(model, seed=0):
    draws = np.random.default_rng(seed)
    x = draws.normal(size=(SIZES.sum(), *model.input_shape)).astype(np.float32)
    return TrainingData(x, draws.integers(0, model.output_shape[0], len(x)), contiguous(SIZES))


def chunk(steps, clients=None, weights=None, lr=0.1, model_indices=None):
    clients = tuple(range(len(SIZES))) if clients is None else clients
    count = len(clients)
    return Chunk(2, clients, model_indices or (0,) * count, (2,) * count, steps, weights or (1.0,) * count, lr)


def with_engine(engine, training_task, data):
    """Return a trainer with this engine, or a new one of a class, that writes out the updates of single clients."""
    trainer = Trainer(training_task, data, engine=engine() if isinstance(engine, type) else engine)
    trainer._adds_up = False
    return trainer


def engine_of(training_task, device="cpu"):
    """Return the class of the engine that is chosen for clients."""
    return type(choose(training_task.local_work, device))


def engine_for(model, device="cpu", **facts):
    """Return the class of the engine that is chosen for a model trained by plain SGD with corrections."""
    return type(choose(LocalWork(model, corrects=True, **facts), device))


class Pulled(FedAvg):
    """FedAvg whose clients also feel a correction and a proximal term."""

    prox: ClassVar[float] = 0.3

    def correction(self, sent, kept):
        return 0.05 * sent["x"].roll(1, -1)


PLAIN = [(algorithm, engine) for algorithm in (FedAvg(), Pulled()) for engine in (VmapEngine, DenseBatchedEngine)]


@pytest.mark.parametrize(("algorithm", "engine"), [*PLAIN, (FedAvg(), DenseGramEngine)])
@pytest.mark.parametrize("name", MODELS)
def test_engines_agree_on_unequal_steps_and_unequal_starts(name, algorithm, engine):
    if engine is DenseGramEngine and name == "logistic":
        pytest.skip("dense gram needs two or more layers")
    model = MODELS[name]
    sent = [{"x": initial(model, seed)} for seed in (1, 2)]
    work = chunk((10, 0, 7, 2, 1), model_indices=(0, 1, 1, 0, 1), weights=(0.5, 1.0, 0.25, 2.0, 1.0))
    training_task = replace(task(model), algorithm=algorithm)
    one, many = (with_engine(e, training_task, samples(model)).learn(work, sent) for e in (SequentialEngine, engine))
    np.testing.assert_allclose(one.sums["delta"], many.sums["delta"], rtol=1e-5, atol=1e-6)
    assert one.loss == pytest.approx(many.loss, rel=1e-5)


def test_sequential_and_vmap_agree_on_convolutions_with_dropout():
    model = FslCifar().build((3, 32, 32), 10)
    work = chunk((3, 0, 2, 1, 1))
    sent = [{"x": initial(model, 1)}]
    one, many = (with_engine(e, task(model), samples(model)).learn(work, sent) for e in (SequentialEngine, VmapEngine))
    np.testing.assert_allclose(one.sums["delta"], many.sums["delta"], rtol=1e-3, atol=1e-5)


def test_stacks_of_dense_layers_are_batched_and_nothing_else_is():
    assert all(engine_for(model) is DenseBatchedEngine for model in MODELS.values())
    assert not DenseBatchedEngine().supports(LocalWork(FslCifar().build((3, 32, 32), 10)), "cpu")


def test_dense_gram_is_taken_where_trips_are_short_and_nothing_but_the_gradient_is_followed():
    wide = Mlp(hidden=[200]).build((1, 28, 28), 10)
    assert engine_of(task(wide)) is DenseGramEngine
    assert engine_of(replace(task(wide), algorithm=Pulled())) is DenseBatchedEngine
    assert engine_of(replace(task(wide), algorithm=FedAMS())) is DenseBatchedEngine
    assert engine_of(task(MODELS["mlp"])) is DenseBatchedEngine
    assert engine_of(task(Logistic().build((1000,), 100))) is DenseBatchedEngine
    long = replace(task(wide), workloads=(workload(100, 10, epochs=4, steps=None),))
    assert engine_of(long) is DenseBatchedEngine
    assert engine_of(task(wide), "cuda") is not DenseGramEngine


@pytest.mark.parametrize("batch", [1, 3, 32])
def test_dense_gram_agrees_on_long_trips_of_any_batch(batch):
    model = MODELS["deep"]
    training_task = task(model, batch)
    work = chunk(tuple(w.wanted for w in training_task.workloads))
    sent = [{"x": initial(model, 1)}]
    one, many = (
        with_engine(e, training_task, samples(model)).learn(work, sent) for e in (SequentialEngine, DenseGramEngine)
    )
    np.testing.assert_allclose(one.sums["delta"], many.sums["delta"], rtol=1e-4, atol=1e-5)


def test_local_steps_are_those_of_torch_sgd_on_the_same_batches():
    model, data = MODELS["mlp"], samples(MODELS["mlp"])
    net = nn.Sequential(nn.Flatten(), nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 3))
    start = torch.from_numpy(initial(model, 1))
    nn.utils.vector_to_parameters(start.clone(), net.parameters())
    optimiser, work = torch.optim.SGD(net.parameters(), lr=0.1), task(model).workloads[0]
    order = sequence(3, 0, 2, data.split.of(0), work, 9)
    for first, last in bounds(work, 9):
        batch = torch.from_numpy(order[first:last])
        optimiser.zero_grad()
        nn.functional.cross_entropy(net(torch.from_numpy(data.x)[batch]), torch.from_numpy(data.y)[batch]).backward()
        optimiser.step()
    expected = nn.utils.parameters_to_vector(net.parameters()).detach() - start
    learned = Trainer(task(model), data).learn(chunk((9,), clients=(0,)), [{"x": start.numpy()}])
    np.testing.assert_allclose(learned.sums["delta"], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "engine"),
    [*((name, DenseBatchedEngine) for name in MODELS), ("mlp", DenseGramEngine), ("deep", DenseGramEngine)],
)
def test_a_client_has_the_same_bits_whoever_shares_its_chunk(name, engine):
    model = MODELS[name]
    trainer, sent = with_engine(engine, task(model), samples(model)), [{"x": initial(model, 1)}]
    alone = (1.0, 0.0, 0.0, 0.0, 0.0)
    together = trainer.learn(chunk((6, 3, 9, 2, 5), weights=alone), sent)
    pair = trainer.learn(chunk((6, 9), clients=(0, 2), weights=(1.0, 0.0)), sent)
    assert np.array_equal(together.sums["delta"], pair.sums["delta"])


def test_no_step_and_no_rate_leave_the_model_as_it_was():
    model = MODELS["mlp"]
    learned = Trainer(task(model), samples(model)).learn(chunk((0,) * 5), [{"x": initial(model, 1)}])
    assert not learned.sums["delta"].any()
    assert learned.loss == 0.0


@pytest.mark.parametrize("engine", [SequentialEngine, VmapEngine, DenseBatchedEngine, DenseGramEngine])
def test_a_bad_update_is_named_with_client_and_step(engine):
    model, data = MODELS["mlp"], samples(MODELS["mlp"])
    data.x[data.split.of(2)[5]] = np.nan
    trainer = with_engine(engine, task(model), data)
    learned = trainer.learn(chunk((4, 2, 8, 1, 4)), [{"x": initial(model, 1)}])
    order = sequence(3, 2, 2, data.split.of(2), task(model).workloads[2], 8)
    first = int(np.flatnonzero(order == data.split.of(2)[5])[0]) // 5
    assert learned.bad == ((2, first),)


@pytest.mark.parametrize("drop_last", [False, True])
def test_epochs_are_real_passes_in_a_new_order_each_time(drop_last):
    work = workload(23, 5, epochs=3, steps=None, drop_last=drop_last)
    order = sequence(3, 0, 2, np.arange(100, 123), work, work.wanted)
    passes = np.split(order, 3)
    for one in passes:
        assert len(set(one.tolist())) == (20 if drop_last else 23)
    assert not np.array_equal(passes[0], passes[1])
    assert [last - first for first, last in bounds(work, work.wanted)][:5] == [5, 5, 5, 5, 5 if drop_last else 3]
    assert np.array_equal(sequence(3, 0, 2, np.arange(100, 123), work, 4), order[:20])


@pytest.mark.parametrize("name", ["mlp", "dropout"])
def test_sums_of_the_sequential_engine_have_the_bits_of_updates_that_are_written_out(name):
    model = MODELS[name]
    work = chunk((6, 0, 9, 1, 5), weights=(0.3, 0.7, 0.2, 0.1, 2.0))
    trainer = Trainer(task(model), samples(model), engine=SequentialEngine())
    assert trainer._adds_up
    sent = [{"x": initial(model, 1)}]
    (found,) = trainer.learn_together([work], sent)
    (written,) = trainer.learn_together([work], sent, add_up=False)
    assert found.sums["delta"].any()
    assert found.sums["delta"].tobytes() == written.sums["delta"].tobytes()

"""Sums of clients' gradients that engines give, pulls that differ between clients, and digits of control variates."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.func import functional_call

from fedactors.algorithms.feddyn import FedDyn
from fedactors.algorithms.scaffold import Scaffold
from fedactors.data import batches
from fedactors.data.base import LabelledSamples
from fedactors.data.partitions.assignment import contiguous
from fedactors.engines.conv_sequential import ConvSequentialEngine
from fedactors.engines.cuda_graph import CudaGraphEngine
from fedactors.engines.dense_batched import DenseBatchedEngine
from fedactors.engines.sequential import SequentialEngine
from fedactors.engines.vmap import VmapEngine
from fedactors.learning.central_learner import CentralLearner
from fedactors.learning.trainer import Trainer
from fedactors.learning.training_task import TrainingData, TrainingTask
from fedactors.models.network import initial
from fedactors.models.paper_models import Mlp
from fedactors.workload import workload
from tests.engines import test_conv_sequential
from tests.engines.test_engines import MODELS, SIZES, chunk, samples, task, with_engine

WORK = chunk((10, 0, 7, 2, 1), model_indices=(0, 1, 1, 0, 1), weights=(0.5, 1.0, 0.25, 2.0, 1.0))


class Record(Scaffold):
    """SCAFFOLD that keeps the result of its trips."""

    def upload(self, trip):
        SEEN.append(trip)
        return super().upload(trip)


SEEN = []


def trip_of(engine, algorithm, model, work=WORK):
    """Return what the clients of `work` come back with under `engine`, their control variates being random."""
    draws = np.random.default_rng(5)
    sent = [{"x": initial(model, seed), "c": draws.normal(size=model.parameters).astype(np.float32)} for seed in (1, 2)]
    kept = [{name: draws.normal(size=model.parameters).astype(np.float32) for name in algorithm.keeps}] * len(SIZES)
    SEEN.clear()
    with_engine(engine, replace(task(model), algorithm=algorithm), samples(model)).learn(work, sent, kept)
    (trip,) = SEEN
    return trip


ENGINES = [
    *((name, engine) for name in MODELS for engine in (VmapEngine, DenseBatchedEngine, CudaGraphEngine)),
    *(("bare", engine) for engine in (ConvSequentialEngine, VmapEngine)),
]


@pytest.mark.parametrize(("name", "engine"), ENGINES)
def test_the_sum_of_gradients_is_what_the_path_tells(name, engine):
    """y - x = -eta (G + K (c - c_i)); the sequential engine, too, and all agree."""
    model = MODELS.get(name) or test_conv_sequential.MODELS[name]
    work = WORK if name in MODELS else WORK._replace(steps=(3, 0, 2, 1, 1))
    for one in (SequentialEngine, engine):
        trip = trip_of(one, Record(), model, work)
        told = -trip.delta / trip.lr - trip.steps * (trip.sent["c"] - trip.kept["c"])
        np.testing.assert_allclose(trip.gradients, told, atol=1e-4)
        assert not trip.gradients[1].any()
    reference = trip_of(SequentialEngine, Record(), model, work).gradients
    np.testing.assert_allclose(trip.gradients, reference, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("engine", [VmapEngine, DenseBatchedEngine])
def test_engines_agree_where_each_client_has_a_pull_of_its_own(name, engine):
    model = MODELS[name]
    training_task = replace(task(model), algorithm=FedDyn(alpha=2.0, alpha_by="share"))
    kept = [{"r": initial(model, 9)}] * len(SIZES)
    found = []
    for one in (SequentialEngine, engine):
        trainer = with_engine(one, training_task, samples(model))
        found.append(trainer.learn(WORK, [{"x": initial(model, seed)} for seed in (1, 2)], kept).sums["delta"])
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-6)
    assert not CudaGraphEngine().supports(training_task.local_work, "cuda")


def test_the_share_of_a_client_is_its_samples_over_their_mean():
    """Sizes 23, 7, 40, 1, 16: the mean is 17.4."""
    assert task(MODELS["mlp"]).shares.tolist() == pytest.approx([size / 17.4 for size in (23, 7, 40, 1, 16)])


def exact_mean_gradient(model, x, data, work, lr):
    """Return the mean gradient along client 0's path of plain SGD, in double precision, by torch's own modules."""
    first, second = (layer for layer in model.layers if hasattr(layer, "outputs"))
    net = torch.nn.Sequential(
        torch.nn.Linear(first.inputs, first.outputs), torch.nn.ReLU(), torch.nn.Linear(second.inputs, second.outputs)
    ).double()
    names = [name for name, _ in net.named_parameters()]
    shapes = [tuple(parameter.shape) for parameter in net.parameters()]
    y = torch.from_numpy(x).double()
    order = batches.sequence(3, 0, 2, data.split.of(0), work, work.wanted)
    total = torch.zeros_like(y)
    for begin, end in batches.bounds(work, work.wanted):
        parts = [
            part.view(shape) for part, shape in zip(y.split([int(np.prod(s)) for s in shapes]), shapes, strict=True)
        ]
        leaves = [part.clone().requires_grad_() for part in parts]
        chosen = order[begin:end]
        inputs = torch.from_numpy(data.x[chosen]).double().flatten(1)
        out = functional_call(net, dict(zip(names, leaves, strict=True)), (inputs,))
        loss = torch.nn.functional.cross_entropy(out, torch.from_numpy(data.y[chosen]))
        gradient = torch.cat([one.flatten() for one in torch.autograd.grad(loss, leaves)])
        total += gradient
        y = y - lr * gradient
    return total / work.wanted


def test_the_central_learner_gives_its_gradients_with_all_digits():
    """One step: the sum is the weighted gradient at x; from the difference of models it is wrong by more than .002."""
    model = Mlp(hidden=[200]).build((1, 28, 28), 10)
    draws = np.random.default_rng(0)
    x, y = draws.normal(size=(20, 1, 28, 28)).astype(np.float32), draws.integers(0, 10, 20)
    central = CentralLearner(model, 1, LabelledSamples(x, y))
    start = torch.from_numpy(initial(model, 1))
    gf = torch.from_numpy(draws.normal(size=model.parameters).astype(np.float32)) * 0.01
    one = workload(20, 20, epochs=None, steps=1)
    moved, met = central.learn_and_sum(start, 1e-5, one, 0, weight=0.5, correction=gf)
    wanted = 0.5 * central.gradient(start).double()
    told = (start - moved).double() / 1e-5 - gf
    assert float((met - wanted).norm() / wanted.norm()) < 1e-5
    assert float((told - wanted).norm() / wanted.norm()) > 2e-3
    assert torch.equal(moved, central.learn(start, 1e-5, one, 0, weight=0.5, correction=gf))


@pytest.mark.parametrize("engine", [SequentialEngine, VmapEngine, DenseBatchedEngine, CudaGraphEngine])
def test_a_control_variate_keeps_its_digits_at_a_rate_of_a_hundred_thousandth(engine):
    """From the difference of models, c_i is wrong by more than .002 of its length; from the gradients, by .00001."""
    model = Mlp(hidden=[200]).build((1, 28, 28), 10)
    draws = np.random.default_rng(0)
    data = TrainingData(
        draws.normal(size=(50, 1, 28, 28)).astype(np.float32), draws.integers(0, 10, 50), contiguous(np.array([50]))
    )
    work = workload(50, 10, epochs=1, steps=None)
    lr = 1e-5
    x = initial(model, 1)
    one = chunk((5,), clients=(0,), lr=lr)
    wanted = exact_mean_gradient(model, x, data, work, lr)
    found = {}
    for sums in (True, False):
        trained = engine()
        type(trained).sums_gradients, before = sums, type(trained).sums_gradients
        try:
            trainer = Trainer(TrainingTask(model, Scaffold(), 3, (work,)), data, engine=trained)
            learned = trainer.learn(one, [{"x": x, "c": np.zeros_like(x)}], [None])
        finally:
            type(trained).sums_gradients = before
        c = torch.from_numpy(learned.kept[0]["c"]).double()
        found[sums] = float((c - wanted).norm() / wanted.norm())

    assert found[True] < 1e-5
    assert found[False] > 2e-3

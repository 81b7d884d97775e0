"""What `precision` changes: how products round, in every engine alike, and nothing beyond the run that asked for it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional

from fedactors.data.base import LabelledSamples
from fedactors.data.partitions.assignment import contiguous
from fedactors.data.sets.mnist import Mnist
from fedactors.engines.dense_batched import DenseBatchedEngine
from fedactors.engines.dense_gram import DenseGramEngine
from fedactors.engines.local_work import LocalWork
from fedactors.engines.sequential import SequentialEngine
from fedactors.engines.vmap import VmapEngine
from fedactors.learning.central_learner import CentralLearner
from fedactors.learning.evaluation import EvaluationSet, ModelEvaluator
from fedactors.learning.trainer import Trainer
from fedactors.learning.training_task import TrainingData
from fedactors.models.losses import losses
from fedactors.models.network import initial, views
from fedactors.models.paper_models import FslCifar, Mlp, ResNet9
from fedactors.models.precision import rounding
from fedactors.workload import workload
from tests.data.test_datasets import SHARED, real_mnist
from tests.engines.test_engines import MODELS, chunk, engine_for, engine_of, samples, task, with_engine


def bf16(model):
    return replace(model, precision="bf16")


def test_products_take_factors_and_give_results_in_bfloat16_and_the_loss_is_float32():
    model, (weight, bias) = bf16(MODELS["logistic"]), (torch.randn(3, 12), torch.randn(3))
    x, y = torch.randn(5, 12), torch.tensor([0, 1, 2, 1, 0])
    rounded = functional.linear(x.bfloat16(), weight.bfloat16(), bias.bfloat16()).float()
    found = losses(model, [weight, bias], x, y)
    assert found.dtype == torch.float32
    assert torch.equal(found, functional.cross_entropy(rounded, y, reduction="none"))
    assert not torch.equal(found, losses(MODELS["logistic"], [weight, bias], x, y))


@pytest.mark.parametrize("name", MODELS)
def test_engines_round_alike(name):
    """As far as they can: sums of bfloat16 factors differ in order, and their results are rounded to 8 bits."""
    model = bf16(MODELS[name])
    work, sent = chunk((10, 0, 7, 2, 1)), [{"x": initial(model, 1)}]
    one, many = (with_engine(e, task(model), samples(model)).learn(work, sent) for e in (SequentialEngine, VmapEngine))
    exact = with_engine(SequentialEngine, task(MODELS[name]), samples(model)).learn(work, sent)
    largest = np.abs(exact.sums["delta"]).max()
    np.testing.assert_allclose(one.sums["delta"], many.sums["delta"], atol=0.01 * largest)
    np.testing.assert_allclose(one.sums["delta"], exact.sums["delta"], atol=0.02 * largest)
    assert not np.array_equal(one.sums["delta"], exact.sums["delta"])
    assert one.sums["delta"].dtype == np.float32


def test_engines_by_hand_are_for_float32():
    wide = Mlp(hidden=[200]).build((1, 28, 28), 10)
    assert engine_of(task(wide)) is DenseGramEngine
    assert engine_of(task(bf16(wide))) is SequentialEngine
    assert engine_for(bf16(wide)) is SequentialEngine
    assert DenseBatchedEngine().supports(LocalWork(wide), "cuda")
    assert not DenseBatchedEngine().supports(LocalWork(bf16(wide)), "cuda"), "the recorded step is that of `vmap`"


def test_the_server_learns_as_its_clients_do():
    """One client that holds the server's samples: its steps from the same batches are the central learner's."""
    model, data = bf16(MODELS["mlp"]), samples(MODELS["mlp"])
    x, work = torch.from_numpy(initial(model, 1)), workload(len(data.y), 9, epochs=None, steps=3)
    central = CentralLearner(model, 3, LabelledSamples(data.x, data.y))
    one = workload(len(data.y), 9, epochs=None, steps=1)
    stepped = central.learn(x, 0.2, one, 4)
    torch.testing.assert_close(stepped, x - 0.2 * central.sample(x, one, 4), rtol=1e-2, atol=1e-3)
    exact = CentralLearner(MODELS["mlp"], 3, LabelledSamples(data.x, data.y))
    assert not torch.equal(central.learn(x, 0.2, work, 4), exact.learn(x, 0.2, work, 4))
    assert not torch.equal(central.gradient(x), exact.gradient(x))


def test_models_are_examined_in_float32():
    model, data = MODELS["mlp"], samples(MODELS["mlp"])
    flat = initial(model, 1)
    plain, rounded = (ModelEvaluator(m, EvaluationSet(data.x, data.y)).evaluate(flat) for m in (model, bf16(model)))
    assert plain == rounded


@pytest.mark.parametrize(
    "choice", [FslCifar(), pytest.param(ResNet9(), marks=pytest.mark.slow)], ids=lambda choice: choice.name
)
def test_convolutions_and_norms_train_in_bfloat16(choice):
    model = bf16(choice.build((3, 32, 32), 10))
    learned = Trainer(task(model), samples(model)).learn(chunk((1, 1), (0, 3)), [{"x": initial(model, 1)}])
    assert np.isfinite(learned.sums["delta"]).all()
    assert learned.sums["delta"].any()


@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
def test_switches_are_those_of_the_run_and_then_as_before(precision):
    """Switches can be set without a GPU; whoever holds data on one has them set."""
    switches = torch.backends.cuda.matmul, torch.backends.cudnn
    before = [switch.allow_tf32 for switch in switches]

    def fail():
        with rounding(precision, "cuda"):
            assert [switch.allow_tf32 for switch in switches] == [precision == "tf32"] * 2
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert [switch.allow_tf32 for switch in switches] == before == [False, True]
    with rounding(precision, "cpu"):
        assert [switch.allow_tf32 for switch in switches] == before


@pytest.mark.slow
@real_mnist
def test_bfloat16_learns_real_digits_as_float32_does():
    """Four clients, 180 steps each, then the mean: 3 of 4 digits are known, by both within two points."""
    data = Mnist(root=str(SHARED), test_limit=2000).load(0, 1)
    few = TrainingData(data.x[:2400], data.y[:2400], contiguous(np.full(4, 600)))
    accuracies, models = {}, {}
    for precision in ("fp32", "bf16"):
        model = replace(Mlp(hidden=[32]).build((1, 28, 28), 10), precision=precision)
        few_steps = replace(task(model), workloads=(workload(600, 10, epochs=3, steps=None),) * 4)
        start = initial(model, 1)
        learned = Trainer(few_steps, few).learn(chunk((180,) * 4, tuple(range(4)), (0.25,) * 4, lr=0.2), [{"x": start}])
        models[precision] = start + learned.sums["delta"]
        accuracies[precision] = ModelEvaluator(model, EvaluationSet(data.test_x, data.test_y)).evaluate(
            models[precision]
        )["accuracy"]
    assert min(accuracies.values()) > 0.75
    assert accuracies["bf16"] == pytest.approx(accuracies["fp32"], abs=0.02)
    assert not np.array_equal(models["fp32"], models["bf16"])
    assert views(model, torch.from_numpy(models["bf16"]))[0].dtype == torch.float32


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_tf32_is_another_rounding_on_a_gpu():
    wide = Mlp(hidden=[200]).build((1, 28, 28), 10)
    found = {}
    for precision in ("fp32", "tf32"):
        model = replace(wide, precision=precision)
        trainer = Trainer(task(model), samples(model), "cuda")
        found[precision] = trainer.learn(chunk((3, 0, 2, 1, 1)), [{"x": initial(model, 1)}]).sums["delta"]
    largest = np.abs(found["fp32"]).max()
    np.testing.assert_allclose(found["tf32"], found["fp32"], atol=0.02 * largest)
    assert not np.array_equal(found["tf32"], found["fp32"])

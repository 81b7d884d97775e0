"""Steps of the central learner by an optimiser are those of its engine, whatever a model does in training."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedactors.data.base import LabelledSamples
from fedactors.learning.central_learner import CentralLearner
from fedactors.models.loss_description import LossDescription
from fedactors.models.module_description import described
from fedactors.models.module_layer import InputSpec, ModuleMaker
from fedactors.models.network import initial
from fedactors.models.paper_models import FslCifar, Mlp
from fedactors.optim.server_optimizers import Sgd
from fedactors.own_code.user_code import parse
from fedactors.workload import workload

NETS = """
from torch import nn

def normed():
    return nn.Sequential(nn.Linear(12, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))
"""


@pytest.fixture
def models(tmp_path):
    (tmp_path / "nets.py").write_text(NETS)
    module = described(ModuleMaker(parse("nets.py:normed", tmp_path)), (InputSpec("", (12,)),))
    return {
        "plain": Mlp(hidden=[8]).build((12,), 3),
        "dropout": Mlp(hidden=[16], dropout=0.4).build((12,), 3),
        "images": FslCifar().build((3, 32, 32), 10),
        "module": module,
    }


def test_buffers_are_apart_from_the_parameters_of_their_layer(models):
    """They come last in the vector: 12 * 8 + 8 of a dense layer, 2 * 8 of BatchNorm, 8 * 3 + 3, its 2 * 8 buffers."""
    assert models["module"].runs.module == (104, 16, 27, 16)


def test_samples_count_by_their_weights(models):
    """In a batch of all samples, 12 of which weigh 2 and the others nothing, the mean is that of the 12."""
    model, draws = replace(models["plain"], loss=LossDescription("cross_entropy", "class")), np.random.default_rng(2)
    x, y = draws.normal(size=(30, 12)).astype(np.float32), draws.integers(0, 3, 30)
    weights = np.where(np.arange(30) < 12, 2.0, 0.0).astype(np.float32)
    start = torch.from_numpy(initial(model, 1))
    few = CentralLearner(model, 3, LabelledSamples(x[:12], y[:12]))
    weighed = CentralLearner(model, 3, LabelledSamples(x, y, weights))
    found = weighed.learn(start, 0.2, workload(30, 30, epochs=None, steps=1), 5)
    torch.testing.assert_close(found, start - 0.2 * few.gradient(start))


@pytest.mark.parametrize(
    ("name", "count", "batch"),
    [("plain", 87, 9), ("dropout", 87, 9), ("dropout", 1300, 700), ("images", 20, 6), ("module", 87, 9)],
)
def test_sgd_as_an_optimiser_is_the_rate_alone(models, name, count, batch):
    model, draws = models[name], np.random.default_rng(1)
    x, y = draws.normal(size=(count, *model.input_shape)).astype(np.float32), draws.integers(0, 3, count)
    central = CentralLearner(model, 3, LabelledSamples(x, y))
    start, work = torch.from_numpy(initial(model, 1)), workload(count, batch, epochs=None, steps=4)
    along = 0.01 * torch.linspace(-1, 1, len(start))
    for correction in (None, along):
        plain = central.learn(start, 0.2, work, 5, weight=0.4, correction=correction)
        other = central.learn(start, 9.0, work, 5, weight=0.4, correction=correction, optimizer=Sgd(lr=0.2))
        torch.testing.assert_close(other, plain, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(plain, central.learn(start, 0.2, work, 6, weight=0.4, correction=along))


@pytest.mark.parametrize(("name", "batch"), [("plain", 700), ("dropout", 700), ("module", 9)])
def test_a_gradient_that_is_sent_is_that_of_the_first_step(models, name, batch):
    """I-M1 rests on it: the step of PT and the gradient of 1-W have one batch, its statistics and dropout masks."""
    model, draws = models[name], np.random.default_rng(1)
    count = 2 * batch
    x, y = draws.normal(size=(count, *model.input_shape)).astype(np.float32), draws.integers(0, 3, count)
    central = CentralLearner(model, 3, LabelledSamples(x, y))
    start, work = torch.from_numpy(initial(model, 1)), workload(count, batch, epochs=None, steps=1)
    trained = model.parameters - model.buffer_values
    stepped, gradient = central.learn(start, 1.0, work, 5), central.sample(start, work, 5)
    torch.testing.assert_close((start - gradient)[:trained], stepped[:trained], rtol=1e-4, atol=1e-5)
    assert not gradient[trained:].any()
    same = torch.allclose(central.first_batch_gradient(start, work, 5), gradient, rtol=1e-3)
    assert same == (name == "plain"), "measures are of the model as it is evaluated"

"""Convolutions by hand against autograd, and dropout masks in the order of memory against those of a cohort."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedactors.algorithms.fed_ams import FedAMS
from fedactors.algorithms.fedavg import FedAvg
from fedactors.engines import conv_model
from fedactors.engines.conv_batches import channels_last
from fedactors.engines.conv_sequential import ConvSequentialEngine
from fedactors.engines.sequential import SequentialEngine
from fedactors.models.dropout import Masks, mask
from fedactors.models.layers import Flatten, Pool, Relu, conv, dense, stack
from fedactors.models.network import initial
from fedactors.models.paper_models import FslCifar, FslEmnist, LambCifarCnn, LambCnn, McmahanCnn, ResNet9
from tests.engines.test_engines import Pulled, chunk, engine_for, engine_of, samples, task, with_engine

COLOUR, GREY = (3, 32, 32), (1, 28, 28)
MODELS = {
    "fsl_cifar": FslCifar().build(COLOUR, 10),
    "fsl_emnist": FslEmnist().build(GREY, 10),
    "mcmahan": McmahanCnn().build(GREY, 10),
    "lamb": LambCnn().build(GREY, 10),
    "lamb_cifar": LambCifarCnn().build(COLOUR, 10),
    "bare": stack("bare", (2, 9, 8), conv(3, 3, "valid"), conv(4, 2, "valid"), Pool(3), Flatten(), dense(3)),
    "twice": stack(
        "twice", (32, 16, 16), conv(64, 3, "same"), Relu(), Pool(2), Pool(2), conv(4, 1, "same"), Flatten(), dense(3)
    ),
    "unpooled": stack(
        "unpooled", (3, 14, 14), conv(48, 3, "same"), conv(48, 3, "valid"), Relu(), Pool(3), Flatten(), dense(3)
    ),
    "last": stack(
        "last", (2, 6, 6), Pool(2), Relu(), conv(4, 3, "same"), Relu(), Flatten(), dense(5), Relu(), dense(3)
    ),
}


@pytest.mark.parametrize("algorithm", [FedAvg(), Pulled()], ids=["plain", "pulled"])
@pytest.mark.parametrize("name", MODELS)
def test_by_hand_agrees_with_autograd_on_unequal_steps_and_starts(name, algorithm):
    model = MODELS[name]
    assert engine_for(model) is ConvSequentialEngine
    sent = [{"x": initial(model, seed)} for seed in (1, 2)]
    work = chunk((3, 0, 2, 1, 1), model_indices=(0, 1, 1, 0, 1), weights=(0.5, 1.0, 0.25, 2.0, 1.0))
    training_task = replace(task(model), algorithm=algorithm)
    one, many = (
        with_engine(e, training_task, samples(model)).learn(work, sent)
        for e in (SequentialEngine, ConvSequentialEngine)
    )
    most = np.abs(one.sums["delta"]).max()
    np.testing.assert_allclose(many.sums["delta"], one.sums["delta"], rtol=1e-4, atol=3e-6 * most)
    assert many.loss == pytest.approx(one.loss, rel=1e-5)


def test_by_hand_is_for_plain_descent_on_chains_and_nothing_else():
    model = MODELS["fsl_cifar"]
    assert engine_of(task(model)) is ConvSequentialEngine
    assert engine_of(replace(task(model), algorithm=FedAMS())) is SequentialEngine
    assert engine_for(model, second_loss=0.5) is SequentialEngine
    assert engine_for(replace(model, precision="bf16")) is SequentialEngine
    assert engine_for(replace(model, loss="squared")) is SequentialEngine
    assert engine_for(ResNet9().build(COLOUR, 10)) is SequentialEngine


def test_maxima_come_before_the_bias_and_the_relu_that_precede_them():
    kinds = [link.kind for link in conv_model.links(MODELS["fsl_cifar"])]
    first, second = ["conv", "pool", "bias", "relu"], ["conv", "pool", "bias", "relu"]
    assert kinds == [*first, *second, "dropout", "flatten", "dense", "relu", "dropout", "dense"]
    kinds = [link.kind for link in conv_model.links(MODELS["twice"])]
    assert kinds[:4] == ["conv", "pool", "pool", "bias"]
    kinds = [link.kind for link in conv_model.links(MODELS["lamb"])]
    assert kinds[:8] == ["conv", "pool", "bias", "relu", "conv", "bias", "dropout", "pool"]


def test_a_bad_sample_is_named_with_client_and_step():
    model, data = MODELS["bare"], samples(MODELS["bare"])
    data.x[data.split.of(1)] = np.nan
    learned = with_engine(ConvSequentialEngine, task(model), data).learn(
        chunk((2, 2, 2, 1, 2)), [{"x": initial(model, 1)}]
    )
    assert learned.bad == ((1, 0),)


@pytest.mark.parametrize("key", [0, 123, -5, 2**62, -(2**63)])
@pytest.mark.parametrize("rate", [0.0, 0.25, 0.999])
def test_masks_are_those_of_a_cohort_in_the_order_of_memory(key, rate):
    masks = Masks()
    for shape in ((3, 4, 5, 6), (7, 9)):
        for step in (0, 3):
            found = masks.of(shape, rate, key, 6, step)
            wanted = mask(found.numel(), rate, torch.tensor(key), 6, step).view(shape)
            assert torch.equal(found > 0, wanted)
            assert torch.equal(channels_last(found), found)
            assert found.stride() == channels_last(found).stride()
            assert set(found.unique().tolist()) <= {0.0, float(np.float32(1 / (1 - rate)))}

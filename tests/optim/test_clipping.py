"""Clipped gradients: against torch.nn.utils, row by row, and engine against engine."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from fedactors.clip import Clip
from fedactors.engines.dense_batched import DenseBatchedEngine
from fedactors.engines.descent import Descent
from fedactors.engines.sequential import SequentialEngine
from fedactors.engines.vmap import VmapEngine
from fedactors.models.network import initial
from fedactors.optim.client_optimizers import SGD
from fedactors.optim.clipping import clipped
from tests.engines.test_engines import MODELS, chunk, samples, task, with_engine

BOUNDS = [Clip(norm=0.5), Clip(norm=100.0), Clip(value=0.3)]


def numbers(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def by_torch(grad, clip):
    parts = [torch.nn.Parameter(torch.zeros_like(part)) for part in grad.split((4, 2, 1))]
    for part, own in zip(parts, grad.split((4, 2, 1)), strict=True):
        part.grad = own.clone()
    if clip.norm is None:
        torch.nn.utils.clip_grad_value_(parts, clip.value)
    else:
        torch.nn.utils.clip_grad_norm_(parts, clip.norm)
    return torch.cat([part.grad for part in parts])


@pytest.mark.parametrize("clip", BOUNDS, ids=str)
def test_rows_are_clipped_each_as_torch_clips_a_model(clip):
    rows = numbers(5, 7) * torch.tensor([[0.01], [0.1], [1.0], [10.0], [0.0]], dtype=torch.float64)
    found = clipped(rows, clip)
    for row, mine in zip(rows, found, strict=True):
        torch.testing.assert_close(mine, by_torch(row, clip), rtol=1e-12, atol=0)


def test_without_a_bound_gradients_are_the_same_object():
    grad = numbers(3)
    assert clipped(grad, None) is grad


def test_the_gradient_of_the_loss_is_clipped_and_not_what_an_algorithm_adds():
    """From 0 with lr 1: g = (3, 4) becomes (0.6, 0.8); the correction (10, 0) is added whole."""
    walk = Descent(SGD(), torch.zeros(2), {}, lr=1.0, correction=torch.tensor([10.0, 0.0]), clip=Clip(norm=1.0))
    walk.step(torch.tensor([3.0, 4.0]), 1)
    torch.testing.assert_close(walk.y, torch.tensor([-10.6, -0.8]), rtol=1e-5, atol=0)


@pytest.mark.parametrize("engine", [VmapEngine, DenseBatchedEngine])
@pytest.mark.parametrize("clip", [Clip(norm=0.1), Clip(value=0.01)], ids=str)
def test_engines_agree_under_clipping(engine, clip):
    model = MODELS["deep"]
    sent = [{"x": initial(model, seed)} for seed in (1, 2)]
    work = {"steps": (10, 0, 7, 2, 1), "model_indices": (0, 1, 1, 0, 1), "weights": (0.5, 1.0, 0.25, 2.0, 1.0)}
    bounded = replace(task(model), clip=clip)
    found = {}
    for name, one, chosen in (
        ("free", SequentialEngine, task(model)), ("one", SequentialEngine, bounded), ("many", engine, bounded),
    ):  # fmt: skip
        found[name] = with_engine(one, chosen, samples(model)).learn(chunk(**work), sent).sums["delta"]
    assert np.abs(found["free"] - found["one"]).max() > 1e-4
    np.testing.assert_allclose(found["one"], found["many"], rtol=2e-3, atol=2e-5 * np.abs(found["one"]).max())


@pytest.mark.parametrize("options", [{}, {"norm": 1.0, "value": 1.0}, {"norm": 0.0}, {"value": -1.0}])
def test_one_bound_above_zero_is_accepted(options):
    with pytest.raises(ValidationError):
        Clip(**options)

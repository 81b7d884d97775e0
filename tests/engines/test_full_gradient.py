"""Gradients over whole data sets: torch's, under every loss that a scenario names."""

import pytest
import torch

from fedactors.engines.client_batch import DeviceDataset
from fedactors.engines.full_gradient import full_gradient
from fedactors.models.network import initial, views
from tests.models.test_task_losses import NAMES, PAIRS, labels_of, model_of

MANY = 1100  # more than are taken at a time, so that parts of unequal weight are added


def dataset_of(loss, kind, weights=None):
    x = torch.randn(MANY, 5, generator=torch.Generator().manual_seed(3))
    y = labels_of(kind, MANY)
    if kind == "classes":
        y = y.sort().values  # parts hold other classes
    return DeviceDataset(model_of(loss, kind), x, y, weights=weights)


def gradient_by_torch(data, held, kind, judge):
    """Return the gradient at the initial model of what `judge` says of its outputs for the samples `held`."""
    flat = torch.from_numpy(initial(data.model, 0)).requires_grad_()
    weight, bias = views(data.model, flat)
    outputs, y = data.x[held] @ weight.T + bias, data.y[held]
    loss = judge(outputs[:, 0], y.float()) if kind == "binary" else judge(outputs, y)
    return torch.autograd.grad(loss, flat)[0]


@pytest.mark.parametrize(("loss", "theirs", "kind"), PAIRS, ids=NAMES)
def test_the_gradient_over_all_samples_is_that_of_torchs_mean(loss, theirs, kind):
    data = dataset_of(loss, kind)
    x = torch.from_numpy(initial(data.model, 0))
    for held in (torch.arange(MANY), torch.arange(0, MANY, 7)):
        wanted = gradient_by_torch(data, held, kind, theirs)
        torch.testing.assert_close(full_gradient(data, held, x), wanted, rtol=1e-4, atol=1e-5)
    assert not full_gradient(data, torch.arange(0), x).any()


@pytest.mark.parametrize(("loss", "theirs", "kind"), PAIRS, ids=NAMES)
def test_a_sample_that_weighs_two_counts_as_one_that_is_there_twice(loss, theirs, kind):
    weights = torch.ones(MANY)
    weights[::3] = 2.0
    data = dataset_of(loss, kind, weights)
    twice = torch.repeat_interleave(torch.arange(MANY), weights.long())
    wanted = gradient_by_torch(data, twice, kind, theirs)
    found = full_gradient(data, torch.arange(MANY), torch.from_numpy(initial(data.model, 0)))
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)

"""Gradients and losses at a fixed model: over whole data sets, and of one step of training."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fedactors.engines.client_batch import DeviceDataset
from fedactors.models.loss_terms import LEAST, Terms
from fedactors.models.losses import sample_terms
from fedactors.models.network import views
from fedactors.models.precision import rounding
from fedactors.models.torch_modules import written_buffers

_BATCH = 500  # samples at a time; part of the result's bits, so never tuned to the machine


def full_gradient(dataset: DeviceDataset, held: Tensor, x: Tensor) -> Tensor:
    """Return the gradient at the model `x` of the loss of the samples `held` as one batch; both `(parameters,)`.

    The loss is the mean over samples, by their weights where they or their classes have some, without ignored labels.
    The gradient is 0 if there are no samples. Dropout is off.
    """
    if not len(held):
        return torch.zeros_like(x)
    flat = x.clone().requires_grad_()
    tensors = views(dataset.model, flat)
    total = torch.zeros_like(x)
    counted = 0.0
    for rows in torch.split(held.to(x.device), _BATCH):
        with rounding(dataset.model.precision, dataset.device):
            found = _terms(dataset, tensors, rows, None, 0)
            total += torch.autograd.grad(found.added.sum(), flat, retain_graph=True)[0]
        counted += _count(found)
    return total / max(counted, LEAST)


@torch.no_grad()
def full_loss(dataset: DeviceDataset, held: Tensor, x: Tensor) -> float:
    """Return the loss whose gradient `full_gradient` returns; 0 if there are no samples."""
    tensors = views(dataset.model, x)
    total = counted = 0.0
    for rows in torch.split(held.to(x.device), _BATCH):
        with rounding(dataset.model.precision, dataset.device):
            found = _terms(dataset, tensors, rows, None, 0)
        total += float(found.added.double().sum())
        counted += _count(found)
    return total / max(counted, LEAST)


def training_gradient(
    dataset: DeviceDataset, batch: Tensor, x: Tensor, key: Tensor, step: int
) -> tuple[Tensor, Sequence[Tensor]]:
    """Return what `full_gradient` does in training, and the buffers that the forward pass has written.

    The whole `batch` is passed at once, with the dropout masks of `key`, an int64 of shape (), in local step `step`.
    """
    flat = x.clone().requires_grad_()
    with rounding(dataset.model.precision, dataset.device), written_buffers() as written:
        found = _terms(dataset, views(dataset.model, flat), batch.to(x.device), key, step)
        total = torch.autograd.grad(found.added.sum(), flat)[0]
    return total / max(_count(found), LEAST), written


def _terms(dataset: DeviceDataset, tensors: Sequence[Tensor], rows: Tensor, key: Tensor | None, step: int) -> Terms:
    """Return what the samples `rows` add to a loss, and how much they count."""
    found = sample_terms(dataset.model, tensors, dataset.x[rows], dataset.y[rows], key, step)
    return found if dataset.weights is None else found.weighted(dataset.weights[rows])


def _count(found: Terms) -> float:
    """Return how much samples count together."""
    return len(found.added) if found.counts is None else float(found.counts.sum())

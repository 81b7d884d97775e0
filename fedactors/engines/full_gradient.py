"""Gradients over whole data sets at a fixed model, for measures of dissimilarity. Dropout is off."""

from __future__ import annotations

import torch
from torch import Tensor

from fedactors.engines.client_batch import DeviceDataset
from fedactors.models.losses import losses
from fedactors.models.network import views
from fedactors.models.precision import rounding

_BATCH = 500  # samples at a time; part of the result's bits, so never tuned to the machine


def full_gradient(dataset: DeviceDataset, held: Tensor, x: Tensor) -> Tensor:
    """Return the gradient of the mean loss over the samples `held` at the model `x`, both of shape `(parameters,)`."""
    flat = x.clone().requires_grad_()
    tensors = views(dataset.model, flat)
    total = torch.zeros_like(x)
    for rows in torch.split(held.to(x.device), _BATCH):
        with rounding(dataset.model.precision, dataset.device):
            loss = losses(dataset.model, tensors, dataset.x[rows], dataset.y[rows]).sum()
            total += torch.autograd.grad(loss, flat, retain_graph=True)[0]
    return total / max(len(held), 1)

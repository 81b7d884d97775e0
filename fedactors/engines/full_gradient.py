"""Gradients over whole data sets at a fixed model, for measures of dissimilarity. Dropout is off."""

from __future__ import annotations

import torch
from torch import Tensor

from fedactors.engines.client_batch import DeviceDataset
from fedactors.models.loss_terms import LEAST
from fedactors.models.losses import sample_terms
from fedactors.models.network import views
from fedactors.models.precision import rounding

_BATCH = 500  # samples at a time; part of the result's bits, so never tuned to the machine


def full_gradient(dataset: DeviceDataset, held: Tensor, x: Tensor) -> Tensor:
    """Return the gradient at the model `x` of the loss of the samples `held` as one batch; both `(parameters,)`.

    The loss is the mean over samples, by their weights where they or their classes have some, without ignored labels.
    The gradient is 0 if there are no samples.
    """
    if not len(held):
        return torch.zeros_like(x)
    flat = x.clone().requires_grad_()
    tensors = views(dataset.model, flat)
    total = torch.zeros_like(x)
    counted = 0.0
    for rows in torch.split(held.to(x.device), _BATCH):
        with rounding(dataset.model.precision, dataset.device):
            found = sample_terms(dataset.model, tensors, dataset.x[rows], dataset.y[rows])
            if dataset.weights is not None:
                found = found.weighted(dataset.weights[rows])
            total += torch.autograd.grad(found.added.sum(), flat, retain_graph=True)[0]
        counted += len(rows) if found.counts is None else float(found.counts.sum())
    return total / max(counted, LEAST)

"""Local steps one client after the other: the reference, and the fastest way for convolutions on a CPU."""

from __future__ import annotations

import torch
from torch import Tensor

from fedactors.data import batches
from fedactors.engines.base import BatchResult, ClientBatch, DeviceDataset
from fedactors.engines.descent import LocalModels
from fedactors.models.losses import mean_loss


def train(dataset: DeviceDataset, rows: ClientBatch) -> BatchResult:
    """Train all rows; see `BatchResult`."""
    deltas = torch.zeros_like(rows.starts)
    losses = torch.zeros(len(rows.clients), max(rows.steps, default=0), device=rows.starts.device)
    state = {name: vectors.clone() for name, vectors in rows.state.items()}
    for row in range(len(rows.clients)):
        if rows.steps[row]:
            walk = _trip(dataset, rows, row, losses[row])
            deltas[row] = walk.delta
            for name, vector in walk.state.items():
                state[name][row] = vector
    return BatchResult(deltas, losses, state)


def _trip(dataset: DeviceDataset, rows: ClientBatch, row: int, losses: Tensor) -> LocalModels:
    """Train one client; its losses are written to `losses`."""
    model, walk = dataset.model, LocalModels(dataset.model, rows, row)
    tensors = [tensor.requires_grad_() for tensor in walk.tensors]
    order = torch.from_numpy(rows.order[row]).to(rows.starts.device)
    key = rows.keys[row]
    for step, (first, last) in enumerate(batches.bounds(rows.works[row], rows.steps[row])):
        chosen = order[first:last]
        loss = mean_loss(model, tensors, _laid_out(dataset.x[chosen]), dataset.y[chosen], key, step)
        total = loss * rows.weight
        if rows.beside is not None:
            total = total + rows.beside.loss(tensors, row, step)
        grads = torch.autograd.grad(total, tensors, materialize_grads=True)
        losses[step] = loss.detach()
        with torch.no_grad():
            walk.move(grads, step)
    return walk


def _laid_out(x: Tensor) -> Tensor:
    """Return images with the channels last in memory: convolutions and pools on a CPU are a quarter faster so."""
    return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x

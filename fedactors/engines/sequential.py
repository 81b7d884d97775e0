"""Local steps one client after the other, for any model: the reference that other engines are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from fedactors.data import batches
from fedactors.engines.base import Engine
from fedactors.engines.client_batch import BatchResult, ClientBatch, DeviceDataset
from fedactors.engines.descent import LocalModels
from fedactors.engines.local_work import LocalWork
from fedactors.models.losses import mean_loss, weighted_loss
from fedactors.models.network import placed
from fedactors.models.torch_modules import held, written_buffers
from fedactors.workload import Workload


class SequentialEngine(Engine):
    """Takes any work on any device; used on a CPU where no other engine is for the model."""

    accepts = "any model and optimiser on any device"
    sums_gradients = True
    sums_updates = True

    def supports(self, work: LocalWork, device: str) -> bool:
        """Anything."""
        return True

    def suits(self, work: LocalWork, device: str) -> bool:
        """On a CPU: on a GPU, steps of one client leave most of the device idle."""
        return device == "cpu"

    def parts_keep_bits(self, work: LocalWork, dataset: DeviceDataset, workload: Workload) -> bool:
        """Each row is trained by itself."""
        return True

    def train(self, dataset: DeviceDataset, rows: ClientBatch) -> BatchResult:
        """Train all rows."""
        total = rows.sums
        deltas = rows.starts.new_empty(rows.starts.shape if total is None else (len(rows.clients), 0))
        room = rows.starts.new_empty(rows.starts.shape[1])  # of every client in turn: how it lies decides about bits
        losses = torch.zeros(len(rows.clients), max(rows.steps, default=0), device=rows.starts.device)
        state = {name: vectors.clone() for name, vectors in rows.state.items()}
        gradients = rows.starts.new_zeros(rows.starts.shape) if rows.sums_gradients else None
        for row in range(len(rows.clients)):
            if not rows.steps[row]:
                deltas[row] = 0.0
                continue
            local = _train_row(dataset, rows, row, losses[row], room)
            if total is None:
                torch.sub(room, rows.starts[row], out=deltas[row])
            else:
                update = room.sub_(rows.starts[row]).mul_(total.weights[row])
                total.of(rows.chunks[row], len(room)).add_(update)
            for name, vector in local.state.items():
                state[name][row] = vector
            if gradients is not None and local.gradients is not None:
                gradients[row] = local.gradients
        return BatchResult(deltas, losses, state, gradients)


def _train_row(dataset: DeviceDataset, rows: ClientBatch, row: int, losses: Tensor, room: Tensor) -> LocalModels:
    """Train one client; its losses are written to `losses`, its model to `room`."""
    model = dataset.model
    local = LocalModels(model, rows, row, room)
    tensors = [tensor.requires_grad_() for tensor in local.tensors]
    held(model, tensors, partial(_take_steps, dataset, rows, row, local, tensors, losses))
    return local


def _take_steps(
    dataset: DeviceDataset,
    rows: ClientBatch,
    row: int,
    local: LocalModels,
    tensors: Sequence[Tensor],
    losses: Tensor,
) -> None:
    """Take all local steps of one client."""
    model = dataset.model
    order = torch.from_numpy(rows.order[row]).to(rows.starts.device)
    key = rows.keys[row]
    found = []
    for step, (first, last) in enumerate(batches.bounds(rows.works[row], rows.steps[row])):
        chosen = order[first:last]
        with written_buffers() as written:
            x, y = placed(model, dataset.x[chosen]), dataset.y[chosen]
            if dataset.weights is None:
                loss = mean_loss(model, tensors, x, y, key, step)
            else:
                counted = dataset.counted(chosen, torch.ones_like(chosen, dtype=torch.float32))
                loss = weighted_loss(model, tensors, x, y, counted, key, step)
        total = loss if rows.weight == 1.0 else loss * rows.weight
        if rows.second_loss is not None:
            total = total + rows.second_loss.loss(tensors, row, step)
        grads = _filled(torch.autograd.grad(total, tensors, allow_unused=True), tensors)
        found.append(loss.detach())
        with torch.no_grad():
            local.move(grads, step, None, written)
    torch.stack(found, out=losses[: len(found)])


def _filled(grads: Sequence[Tensor | None], tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """Return gradients with zeros for tensors that a loss does not depend on, such as buffers."""
    return [torch.zeros_like(one) if grad is None else grad for grad, one in zip(grads, tensors, strict=True)]

"""Local steps one client after the other, for any model: the reference that other engines are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from fedactors.data import batches
from fedactors.engines.added_loss import added_to_samples, global_outputs
from fedactors.engines.base import Engine
from fedactors.engines.client_batch import BatchResult, ClientBatch, DeviceDataset
from fedactors.engines.descent import LocalModels
from fedactors.engines.local_work import LocalWork
from fedactors.models.loss_terms import Terms
from fedactors.models.losses import mean_loss, output_terms, outputs_of, weighted_loss
from fedactors.models.network import placed, views
from fedactors.models.torch_modules import held, written_buffers
from fedactors.workload import Workload


class SequentialEngine(Engine):
    """Takes any work on any device; used on a CPU where no other engine is for the model."""

    accepts = "any model and optimiser on any device"
    sums_gradients = True
    sums_updates = True
    takes_added_loss = True

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
    batch_losses = _BatchLosses(dataset, rows, row, tensors)
    order = torch.from_numpy(rows.order[row]).to(rows.starts.device)
    found = []
    for step, (first, last) in enumerate(batches.bounds(rows.works[row], rows.steps[row])):
        loss, total, written = batch_losses.of(order[first:last], step)
        total = total if rows.weight == 1.0 else total * rows.weight
        if rows.second_loss is not None:
            total = total + rows.second_loss.loss(tensors, row, step, rows.keys[row])
        grads = _filled(torch.autograd.grad(total, tensors, allow_unused=True), tensors)
        found.append(loss.detach())
        with torch.no_grad():
            local.move(grads, step, None, written)
    torch.stack(found, out=losses[: len(found)])


class _BatchLosses:
    """The losses of one client's batches, at the model of its `tensors`."""

    def __init__(self, dataset: DeviceDataset, rows: ClientBatch, row: int, tensors: Sequence[Tensor]) -> None:
        self._dataset = dataset
        self._tensors = tensors
        self._key = rows.keys[row]
        self._added = rows.added_loss
        self._start = () if rows.added_loss is None else views(dataset.model, rows.added_loss.models[row])

    def of(self, chosen: Tensor, step: int) -> tuple[Tensor, Tensor, Sequence[Tensor]]:
        """Return the model's loss of the samples `chosen`, what is minimised, and the buffers that it has written."""
        model = self._dataset.model
        x, y = placed(model, self._dataset.x[chosen]), self._dataset.y[chosen]
        theirs = None if self._added is None else global_outputs(model, self._start, x)
        with written_buffers() as written:
            if self._added is None or theirs is None:
                loss = total = self._loss(x, y, chosen, step)
            else:
                outputs = outputs_of(model, self._tensors, x, self._key, step)
                terms = output_terms(model, self._tensors, outputs, y)
                more = terms.plus(added_to_samples(self._added.rule, outputs, y, theirs))
                loss, total = (self._mean(one, chosen) for one in (terms, more))
        return loss, total, written

    def _loss(self, x: Tensor, y: Tensor, chosen: Tensor, step: int) -> Tensor:
        """Return the model's loss of a batch."""
        model = self._dataset.model
        if self._dataset.weights is None:
            return mean_loss(model, self._tensors, x, y, self._key, step)
        return weighted_loss(model, self._tensors, x, y, self._counted(chosen), self._key, step)

    def _mean(self, terms: Terms, chosen: Tensor) -> Tensor:
        """Return the loss of a batch of which samples add `terms`."""
        return terms.average() if self._dataset.weights is None else terms.mean(self._counted(chosen))

    def _counted(self, chosen: Tensor) -> Tensor:
        """Return how much each sample counts in its batch."""
        return self._dataset.counted(chosen, torch.ones_like(chosen, dtype=torch.float32))


def _filled(grads: Sequence[Tensor | None], tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """Return gradients with zeros for tensors that a loss does not depend on, such as buffers."""
    return [torch.zeros_like(one) if grad is None else grad for grad, one in zip(grads, tensors, strict=True)]

"""An engine that is a plain loop: y <- y - eta_l g, client after client and batch after batch."""

from __future__ import annotations

import torch
from torch import Tensor

from fedactors.data.batches import bounds
from fedactors.engines.base import Engine
from fedactors.engines.client_batch import NO_STATE, BatchResult, ClientBatch, DeviceDataset
from fedactors.engines.local_work import LocalWork
from fedactors.models.losses import mean_loss
from fedactors.models.network import views


class PlainLoop(Engine):
    """Plain SGD on a CPU; what else an algorithm may add to local steps, it refuses."""

    name = "plain-loop"  # where a scenario names this file in `plugins`; an entry point has a name of its own
    accepts = "plain SGD on a CPU, without correction, proximal term, loss weight or second loss"

    def supports(self, work: LocalWork, device: str) -> bool:
        """Whether only the gradient moves clients."""
        plain = work.plain_sgd and not work.corrects and work.loss_weight == 1.0 and work.second_loss is None
        return plain and device == "cpu"

    def train(self, dataset: DeviceDataset, rows: ClientBatch) -> BatchResult:
        """Train all rows."""
        deltas = torch.zeros(rows.starts.shape)
        losses = torch.zeros(len(rows.clients), max(rows.steps, default=0))
        for row, start in enumerate(rows.starts):
            deltas[row] = self._train_row(dataset, rows, row, losses[row]) - start
        return BatchResult(deltas, losses, NO_STATE)

    def _train_row(self, dataset: DeviceDataset, rows: ClientBatch, row: int, losses: Tensor) -> Tensor:
        """Return the model of one client after its steps; the loss of each step is written to `losses`."""
        y = rows.starts[row].clone().requires_grad_()
        for step, (first, last) in enumerate(bounds(rows.works[row], rows.steps[row])):
            batch = torch.from_numpy(rows.order[row][first:last])
            x, labels = dataset.x[batch], dataset.y[batch]
            loss = mean_loss(dataset.model, views(dataset.model, y), x, labels, rows.keys[row], step)
            (gradient,) = torch.autograd.grad(loss, y)
            y = (y.detach() - rows.lr * gradient).requires_grad_()
            losses[step] = loss.detach()
        return y.detach()

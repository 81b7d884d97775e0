"""An engine in one file: one step of gradient descent after the other, as in a textbook."""

import torch

from fedactors.data.batches import bounds
from fedactors.engines.base import Engine
from fedactors.engines.client_batch import NO_STATE, BatchResult
from fedactors.models.losses import mean_loss
from fedactors.models.network import views


class ToyEngine(Engine):
    accepts = "plain SGD on a CPU, without corrections, weights or second losses"
    calls = 0

    def supports(self, work, device):
        plain = work.plain_sgd and not work.corrects and work.loss_weight == 1.0 and work.second_loss is None
        return plain and device == "cpu"

    def train(self, dataset, rows):
        ToyEngine.calls += 1
        deltas, losses = torch.zeros(rows.starts.shape), torch.zeros(len(rows.clients), max(rows.steps, default=0))
        for row, (start, order) in enumerate(zip(rows.starts, rows.order, strict=True)):
            y = start.clone().requires_grad_()
            for step, (first, last) in enumerate(bounds(rows.works[row], rows.steps[row])):
                batch = torch.from_numpy(order[first:last])
                tensors = views(dataset.model, y)
                loss = mean_loss(dataset.model, tensors, dataset.x[batch], dataset.y[batch], rows.keys[row], step)
                (gradient,) = torch.autograd.grad(loss, y)
                y.data -= rows.lr * gradient
                losses[row, step] = loss.detach()
            deltas[row] = y.detach() - start
        return BatchResult(deltas, losses, NO_STATE)

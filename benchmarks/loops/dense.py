"""Loops for one or two dense layers, with the backward pass by hand.

Shapes are those of a chunk: C clients, n samples each, B of them in a batch, d inputs, h hidden, k classes. Weights
are kept as PyTorch keeps them, (outputs, inputs).
"""

from __future__ import annotations

import torch
from loops.work import Loop, Work
from torch import Tensor
from torch.func import grad_and_value, vmap
from torch.nn import functional


def _gathered(work: Work, clients: list[int], order: Tensor) -> Tensor:
    """Return inputs (C, n, d) in the order of the steps, copied once per chunk.

    One flat `index_select` takes a seventh of the time of `x[clients, order]`.
    """
    flat = work.x.view(-1, work.x[0, 0].numel())
    rows = torch.tensor(clients)[:, None] * work.x.shape[1] + order
    return flat.index_select(0, rows.flatten()).view(*order.shape, -1)


def _hot(work: Work, clients: list[int], order: Tensor) -> Tensor:
    """Return one-hot labels (C, k, n): classes before samples, as the softmax over them is far quicker that way."""
    labels = work.y[torch.tensor(clients)[:, None], order][:, None]
    return torch.zeros(len(clients), 10, order.shape[1]).scatter_(1, labels, 1.0)


def _copies(tensor: Tensor, count: int) -> Tensor:
    """Return (count, *shape); `repeat` copies even for a count of 1."""
    return tensor.repeat(count, *(1 for _ in tensor.shape))


def vmap_loop(work: Work) -> tuple[list[Tensor], float]:
    """Autograd under vmap, in-place updates: what an engine for any model does."""

    def loss(tensors: tuple[Tensor, ...], x: Tensor, y: Tensor) -> Tensor:
        for at in range(0, len(tensors), 2):
            x = functional.linear(functional.relu(x) if at else x, tensors[at], tensors[at + 1])
        return functional.cross_entropy(x, y)

    step = vmap(grad_and_value(loss))
    sums, total = [torch.zeros_like(tensor) for tensor in work.model], torch.zeros(())
    for clients, order in work.chunks():
        rows = torch.tensor(clients)[:, None]
        moving = tuple(_copies(tensor, len(clients)) for tensor in work.model)
        for chosen in order.split(work.batch, 1):
            grads, losses = step(moving, work.x[rows, chosen].flatten(2), work.y[rows, chosen])
            torch._foreach_add_(moving, grads, alpha=-work.lr)
            total += losses.sum()
        for sum_of, tensor, start in zip(sums, moving, work.model, strict=True):
            sum_of.add_((tensor.sum(0) - len(clients) * start) / len(work.cohort))
    return sums, float(total) / work.order.numel() * work.batch


def bmm_loop(work: Work) -> tuple[list[Tensor], float]:
    """Batched products; the gradient of a weight goes into it as `baddbmm_`, and is never formed."""
    sums, total = [torch.zeros_like(tensor) for tensor in work.model], torch.zeros(())
    for clients, order in work.chunks():
        x, hot = _gathered(work, clients, order), _hot(work, clients, order)
        moving = [_copies(tensor, len(clients)) for tensor in work.model]
        logs = torch.empty_like(hot)
        for at in range(0, x.shape[1], work.batch):
            rows = slice(at, at + work.batch)
            _step(moving, x[:, rows], hot[:, :, rows], logs[:, :, rows], work.lr / work.batch)
        total += (logs * hot).sum()
        for sum_of, tensor, start in zip(sums, moving, work.model, strict=True):
            sum_of.add_(tensor.sum(0) - len(clients) * start, alpha=1 / len(work.cohort))
    return sums, -float(total) / work.order.numel()


def _step(moving: list[Tensor], x: Tensor, hot: Tensor, logs: Tensor, rate: float) -> None:
    """Take one step of all clients; log-probabilities are written to `logs`."""
    *first, weight, bias = moving
    inputs = x
    if first:
        inputs = torch.baddbmm(first[1][:, None], x, first[0].mT).relu_()
    error = _classified(weight, bias, inputs, hot, logs)
    if first:
        back = torch.bmm(error.mT, weight).mul_(inputs > 0)
        first[0].baddbmm_(back.mT, x, alpha=-rate)
        first[1].sub_(back.sum(1), alpha=rate)
    _descend(weight, bias, error, inputs, rate)


def _classified(weight: Tensor, bias: Tensor, inputs: Tensor, hot: Tensor, logs: Tensor) -> Tensor:
    """Return the errors (C, k, B) of the last layer; log-probabilities are written to `logs`."""
    logs.copy_(torch.baddbmm(bias[:, :, None], weight, inputs.mT).log_softmax(1))
    return logs.exp().sub_(hot)


def _descend(weight: Tensor, bias: Tensor, error: Tensor, inputs: Tensor, rate: float) -> None:
    """Move the last layer."""
    weight.baddbmm_(error, inputs, alpha=-rate)
    bias.sub_(error.sum(2), alpha=rate)


def span_loop(*, keep_gram: bool) -> Loop:
    """Return a loop in which the first layer's weights never move.

    They stay in the span of what the client has seen: W_t = W_0 - rate * sum_s D_s^T X_s. So X W_0^T is one large
    product per client, a step needs only the Gram matrix X X^T of the client's samples (+ 1 for the bias) and the
    history D of errors, and the weighted sum of all clients' updates, D^T X, is one more large product that adds
    straight into the sum. With `keep_gram` Gram matrices are kept between rounds, n * n floats per client.
    """
    kept: dict[int, Tensor] = {}

    def gram(client: int, x: Tensor) -> Tensor:
        if client in kept:
            return kept[client]
        found = torch.addmm(torch.ones(()), x, x.T)
        if keep_gram:
            kept[client] = found
        return found

    def loop(work: Work) -> tuple[list[Tensor], float]:
        weight, bias, last, last_bias = work.model
        sums, rate = [torch.zeros_like(tensor) for tensor in work.model], work.lr / work.batch
        total = torch.zeros(())
        share = 1 / len(work.cohort)
        for clients, order in work.chunks():
            flat = [work.x[client].flatten(1) for client in clients]
            held = zip(flat, clients, order, strict=True)
            grams = torch.stack([gram(client, x)[at][:, at] for x, client, at in held])
            outer = torch.stack(
                [torch.addmm(bias, x, weight.T)[at] for x, at in zip(flat, order, strict=True)]
            )  # (C, n, h)
            hot = _hot(work, clients, order)
            moving, errors = [_copies(tensor, len(clients)) for tensor in (last, last_bias)], torch.empty_like(outer)
            logs = torch.empty_like(hot)
            for at in range(0, order.shape[1], work.batch):
                now, before = slice(at, at + work.batch), slice(0, at)
                hidden = torch.baddbmm(outer[:, now], grams[:, now, before], errors[:, before], alpha=-rate).relu_()
                error = _classified(*moving, hidden, hot[:, :, now], logs[:, :, now])
                torch.mul(torch.bmm(error.mT, moving[0]), hidden > 0, out=errors[:, now])
                _descend(*moving, error, hidden, rate)
            total += (logs * hot).sum()
            for x, at, error in zip(flat, order, errors, strict=True):
                back = torch.empty_like(error)
                back[at] = error  # in the order of x
                sums[0].addmm_(back.T, x, alpha=-rate * share)
            sums[1].sub_(errors.sum((0, 1)), alpha=rate * share)
            for sum_of, tensor, start in zip(sums[2:], moving, (last, last_bias), strict=True):
                sum_of.add_((tensor.sum(0) - len(clients) * start), alpha=share)
        return sums, -float(total) / work.order.numel()

    return loop

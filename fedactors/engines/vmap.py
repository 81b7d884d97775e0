"""Local steps of many clients at once, for any model: `vmap` over rows that start anywhere and stop when they like."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.func import grad, vmap

from fedactors.data import batches
from fedactors.engines.base import BatchResult, ClientBatch, DeviceDataset, longest_first
from fedactors.engines.descent import LocalModels
from fedactors.models.layers import Model
from fedactors.models.losses import losses as each_loss


@longest_first
def train(dataset: DeviceDataset, rows: ClientBatch) -> BatchResult:
    """Train all rows; see `BatchResult`."""
    model, device = dataset.model, rows.starts.device
    longest = max(rows.steps)
    losses = torch.zeros(longest, len(rows.clients), device=device)
    walk = LocalModels(model, rows)
    samples, weights = (torch.from_numpy(a).to(device) for a in batches.table(rows.order, rows.works, rows.steps))
    gradient = gradient_of(model, rows.weight, rows.beside and rows.beside.terms)
    shorter = [-steps for steps in rows.steps]
    for step in range(longest):
        active = bisect.bisect_left(shorter, -step)  # rows with more than `step` steps
        chosen = samples[step, :active]
        mine = tuple(tensor[:active] for tensor in walk.tensors)
        inputs = (mine, dataset.x[chosen], dataset.y[chosen], weights[step, :active], rows.keys[:active])
        further = rows.beside.batches(active, step) if rows.beside else ()
        grads, losses[step, :active] = gradient(step, *inputs, *further)
        walk.move(grads, step, active)
    return BatchResult(walk.delta, losses.T, walk.state)


@lru_cache(maxsize=16)
def gradient_of(model: Model, weight: float, beside: tuple[Model, float] | None) -> Callable[..., Any]:
    """Return the function of a step and rows of (tensors, x, y, weights, key, further x and y) to (gradients, losses).

    The gradient is that of `weight` times the loss and, if `beside` gives another loss and its weight, of that one on
    the further samples.
    """

    def total(
        tensors: tuple[Tensor, ...],
        x: Tensor,
        y: Tensor,
        weights: Tensor,
        key: Tensor,
        step: int | Tensor,
        *further: Tensor,
    ) -> tuple[Tensor, Tensor]:
        own = (each_loss(model, tensors, x, y, key, step) * weights).sum()
        if beside is None:
            return own * weight, own
        samples, labels = further
        return own * weight + each_loss(beside[0], tensors, samples, labels).mean() * beside[1], own

    gradient: Any = grad(total, has_aux=True)

    def rows(step: int | Tensor, *inputs: Any) -> Any:
        dims = (0, 0, 0, 0, 0, None, *(0 for _ in inputs[5:]))
        return vmap(gradient, in_dims=dims)(*inputs[:5], step, *inputs[5:])

    return rows

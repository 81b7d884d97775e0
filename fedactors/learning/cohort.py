"""Local steps of many clients at once, for any model: `vmap` over rows that start anywhere and stop when they like."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.func import grad_and_value, vmap
from torch.nn import functional

from fedactors.learning import batches
from fedactors.learning.descent import Walk
from fedactors.learning.layers import Model
from fedactors.learning.network import forward
from fedactors.learning.resident import Resident, Rows, Trained, longest_first


@longest_first
def train(resident: Resident, rows: Rows) -> Trained:
    """Train all rows; see `Trained`."""
    model, device = resident.model, rows.starts.device
    longest = max(rows.steps)
    losses = torch.zeros(longest, len(rows.clients), device=device)
    walk = Walk(model, rows)
    samples, weights = (torch.from_numpy(a).to(device) for a in batches.table(rows.order, rows.works, rows.steps))
    shorter = [-steps for steps in rows.steps]
    for step in range(longest):
        active = bisect.bisect_left(shorter, -step)  # rows with more than `step` steps
        chosen = samples[step, :active]
        mine = tuple(tensor[:active] for tensor in walk.tensors)
        inputs = (mine, resident.x[chosen], resident.y[chosen], weights[step, :active])
        grads, losses[step, :active] = _gradient(model)(*inputs, rows.keys[:active], step)
        walk.move(grads, step, active)
    return Trained(walk.delta, losses.T, walk.state)


@lru_cache(maxsize=16)
def _gradient(model: Model) -> Callable[..., Any]:
    """Return the function of (tensors, x, y, weights, keys, step) to (gradients, losses), each with a row axis."""

    def loss(tensors: tuple[Tensor, ...], x: Tensor, y: Tensor, weights: Tensor, key: Tensor, step: int) -> Tensor:
        each = functional.cross_entropy(forward(model, tensors, x, key, step), y, reduction="none")
        return (each * weights).sum()

    return vmap(grad_and_value(loss), in_dims=(0, 0, 0, 0, 0, None))

"""Local steps of many clients at once for stacks of dense layers, with the backward pass by hand.

`vmap(grad)` writes out every client's gradient, which is as large as its model, only to add it to the model. Here the
gradient of a weight never exists: it is a product of two thin matrices, errors and inputs, and goes into the weight by
`baddbmm_`. An optimiser with a state needs the gradient, and gets it from the same two matrices. The arithmetic is
otherwise that of `sequential`, the reference it is tested against. Shapes are those of `dense_steps`.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from fedactors.data import batches
from fedactors.engines.base import LongestFirstEngine
from fedactors.engines.client_batch import NO_STATE, BatchPlan, BatchResult, ClientBatch, DeviceDataset
from fedactors.engines.dense_steps import (
    PaddingRow,
    backward,
    descending,
    errors,
    first_rows,
    forward,
    hot_labels,
    log_probabilities,
    mean_losses,
)
from fedactors.engines.descent import LocalModels
from fedactors.engines.local_work import CACHED, LocalWork
from fedactors.models.dense_stacks import blocks_of
from fedactors.models.layers import Model
from fedactors.models.network import views

_GATHERED = 2**22  # input values copied at a time: 16 MB
_ROWS = 1000  # of chunks that are trained together


class DenseBatchedEngine(LongestFirstEngine):
    """For softmax models of dense layers, each followed by nothing, by ReLU, or by ReLU and dropout."""

    sums_gradients = True
    accepts = "stacks of dense layers in fp32 or tf32, without a second loss"

    def supports(self, work: LocalWork, device: str) -> bool:
        """Any optimiser on any device."""
        return bool(blocks_of(work.model)) and work.second_loss is None

    def prepare(self, dataset: DeviceDataset, plan: BatchPlan) -> _StepInputs | None:
        """Return the batches of the first steps of trips; None unless the longest one is first."""
        return next(_step_inputs(dataset, plan)) if plan.longest_first else None

    def max_rows(self, dataset: DeviceDataset) -> int:
        """Return as many as have their models in the cache: a call costs nearly as much for few rows as for many."""
        return min(_ROWS, CACHED // dataset.model.parameters)

    def train_sorted(self, dataset: DeviceDataset, rows: ClientBatch) -> BatchResult:
        """Train all rows, longest first."""
        blocks = blocks_of(dataset.model)
        sgd = rows.plain_sgd
        local = _InPlace(dataset.model, rows) if sgd else _Collected(dataset.model, rows)
        padding = PaddingRow([*local.tensors, *local.summed] if sgd else ())
        losses = list[Tensor]()
        shorter = [-steps for steps in rows.steps]
        for some in _step_inputs(dataset, rows, *rows.prepared):
            logs = torch.zeros_like(some.hot)
            for at, step in enumerate(some.steps):
                left = bisect.bisect_left(shorter, -step)  # rows with more than `step` steps
                active = padding.active_rows(left)
                mine = first_rows(local.tensors, active)
                x, hot, weights, keys = first_rows((some.x[at], some.hot[at], some.weights[at], rows.keys), active)
                inputs, slopes = forward(blocks, mine, x, keys, step)
                found = log_probabilities(mine, inputs[-1], out=logs[at, :active])
                error = errors(found, hot, weights)
                if left < active:
                    found[left:] = 0.0
                if rows.weight != 1.0:
                    error.mul_(rows.weight)
                backward(mine, inputs, slopes, error, local.accumulate)
                local.finish_step(step, active)
            losses.append(mean_losses(logs, some.hot, some.weights))
        padding.restore()
        return BatchResult(local.delta, torch.cat(losses).T, local.state, local.gradients)


class _StepInputs(NamedTuple):
    """Batches of some steps that follow one another."""

    steps: range
    x: Tensor  # (steps, C, B, d)
    hot: Tensor  # (steps, C, classes, B): labels
    weights: Tensor  # (steps, C, 1, B)


def _step_inputs(dataset: DeviceDataset, plan: BatchPlan, prepared: _StepInputs | None = None) -> Iterator[_StepInputs]:
    """Yield the batches of all steps; those of the first steps may have been `prepared`.

    Inputs are gathered for many steps at a time: one flat `index_select` costs a seventh of indexing by two tensors.
    """
    if prepared:
        yield prepared
        if len(prepared.steps) == plan.steps[0]:
            return
    device = dataset.x.device
    samples, weights = (torch.from_numpy(a).to(device) for a in batches.table(plan.order, plan.works, plan.steps))
    flat = dataset.x.flatten(1)
    at_once = max(1, _GATHERED // (samples[0].numel() * flat.shape[1]))
    for first in range(len(prepared.steps) if prepared else 0, len(samples), at_once):
        chosen = samples[first : first + at_once]
        x = flat.index_select(0, chosen.flatten()).view(*chosen.shape, -1)
        hot = hot_labels(dataset, chosen)
        yield _StepInputs(range(first, first + len(chosen)), x, hot, weights[first : first + at_once, :, None])


class _InPlace:
    """Plain SGD, a constant correction, and a proximal term towards the start: every layer is moved in place."""

    state = NO_STATE

    def __init__(self, model: Model, rows: ClientBatch) -> None:
        self._starts = views(model, rows.starts)
        self._prox = rows.prox
        self._lr = rows.lr
        self._corrections = None if rows.corrections is None else views(model, rows.corrections)
        self._descend = descending(rows.lr)
        self.tensors = [tensor.clone(memory_format=torch.contiguous_format) for tensor in self._starts]
        self.summed = [torch.zeros_like(tensor) for tensor in self.tensors] if rows.sums_gradients else []

    def accumulate(self, first: int, weight: Tensor, bias: Tensor, error: Tensor, inputs: Tensor) -> None:
        """y <- y - lr * (g + corr + prox * (y - x)), for the rows of tensor number `first` and the next."""
        for number, tensor in enumerate((weight, bias), first):
            if isinstance(self._prox, Tensor):
                weight_of_start = self._lr * self._prox[: len(tensor)].view(-1, *[1] * (tensor.dim() - 1))
                tensor.lerp_(self._starts[number][: len(tensor)], weight_of_start)
            elif self._prox:
                tensor.lerp_(self._starts[number][: len(tensor)], self._lr * self._prox)
            if self._corrections is not None:
                tensor.add_(self._corrections[number][: len(tensor)], alpha=-self._lr)
        if self.summed:
            rows = slice(len(weight))
            self.summed[first][rows].baddbmm_(error, inputs)
            self.summed[first + 1][rows].add_(error.sum(2))
        self._descend(first, weight, bias, error, inputs)

    def finish_step(self, step: int, active: int) -> None:
        """Do nothing: all layers have moved."""

    @property
    def gradients(self) -> Tensor | None:
        """The sum of each row's gradients, if it is wanted."""
        return torch.cat([tensor.flatten(1) for tensor in self.summed], 1) if self.summed else None

    @property
    def delta(self) -> Tensor:
        """y - x."""
        deltas = [(tensor - start).flatten(1) for tensor, start in zip(self.tensors, self._starts, strict=True)]
        return torch.cat(deltas, 1)


class _Collected(LocalModels):
    """Any other optimiser: it needs all gradients of a step at once, so they are written out."""

    def __init__(self, model: Model, rows: ClientBatch) -> None:
        super().__init__(model, rows)
        self.summed: list[Tensor] = []
        self._grads: list[Tensor] = list(self.tensors)

    def accumulate(self, first: int, weight: Tensor, bias: Tensor, error: Tensor, inputs: Tensor) -> None:
        """Write out the gradients of tensors number `first` and the next."""
        self._grads[first : first + 2] = torch.bmm(error, inputs), error.sum(2)

    def finish_step(self, step: int, active: int) -> None:
        """Take the step."""
        self.move(self._grads, step, active)

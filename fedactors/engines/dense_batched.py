"""Local steps of many clients at once for stacks of dense layers, with the backward pass by hand.

`vmap(grad)` writes out every client's gradient, which is as large as its model, only to add it to the model and forget
it. Here the gradient of a weight never exists: it is a product of two thin matrices, errors and inputs, and goes into
the weight by `baddbmm_`. An optimiser with a state needs it, and gets it from the same two matrices. The same
arithmetic otherwise, and the reference it is tested against is `sequential`.

Shapes: C clients, B samples in a batch. Activations are (C, B, features). The logits are (C, classes, B): a softmax
over a short last axis costs ten times one over a middle axis.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

from fedactors.data import batches
from fedactors.engines.base import NO_STATE, BatchPlan, BatchResult, ClientBatch, DeviceDataset, longest_first
from fedactors.engines.descent import LocalModels
from fedactors.models.dense_stacks import Block, blocks_of
from fedactors.models.dropout import mask
from fedactors.models.layers import Model
from fedactors.models.network import views
from fedactors.optim.client_optimizers import SGD

_GATHERED = 2**22  # input values copied at a time: 16 MB


def can(model: Model) -> bool:
    """Whether `model` is a softmax over dense layers, each followed by nothing, by ReLU, or by ReLU and dropout."""
    return bool(blocks_of(model))


@longest_first
def train(dataset: DeviceDataset, rows: ClientBatch) -> BatchResult:
    """Train all rows; see `BatchResult`."""
    blocks = blocks_of(dataset.model)
    sgd = isinstance(rows.optimizer, SGD)
    walk = _InPlace(dataset.model, rows) if sgd else _Collected(dataset.model, rows)
    company = PaddingRow(walk.tensors if sgd else ())
    losses, shorter = list[Tensor](), [-steps for steps in rows.steps]
    for lot in _lots(dataset, rows, *rows.ready):
        logs = torch.zeros_like(lot.hot)
        for at, step in enumerate(lot.steps):
            left = bisect.bisect_left(shorter, -step)  # rows with more than `step` steps
            active = company.of(left)
            mine = first_rows(walk.tensors, active)
            x, hot, weights, keys = first_rows((lot.x[at], lot.hot[at], lot.weights[at], rows.keys), active)
            inputs, slopes = forward(blocks, mine, x, keys, step)
            found = log_probabilities(mine, inputs[-1], out=logs[at, :active])
            error = errors(found, hot, weights)
            found[left:] = 0.0
            if rows.weight != 1.0:
                error.mul_(rows.weight)
            backward(mine, inputs, slopes, error, walk.hear)
            walk.settle(step, active)
        losses.append(mean_losses(logs, lot.hot, lot.weights))
    company.leave()
    return BatchResult(walk.delta, torch.cat(losses).T, walk.state)


class PaddingRow:
    """Keeps a second row at work when only one is left: products of a single row round differently from those of many.

    So a row has the same bits whoever else there is, as long as there is somebody. The second one's trip is over, and
    what further steps do to its `tensors`, (rows, ...), is undone.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._tensors, self._kept = tensors, list[Tensor]()

    def of(self, left: int) -> int:
        """Return how many rows take a step that `left` rows need."""
        if left != 1 or not self._tensors or len(self._tensors[0]) < 2:
            return left
        self._kept = self._kept or [tensor[1].clone() for tensor in self._tensors]
        return 2

    def leave(self) -> None:
        """Put the second row back to where its trip ended."""
        for tensor, kept in zip(self._tensors, self._kept, strict=False):
            tensor[1] = kept


class _Lot(NamedTuple):
    """Batches of some steps that follow one another."""

    steps: range
    x: Tensor  # (steps, C, B, d)
    hot: Tensor  # (steps, C, classes, B): labels
    weights: Tensor  # (steps, C, 1, B)


def prepare(dataset: DeviceDataset, trips: BatchPlan) -> _Lot | None:
    """Return the batches of the first steps of trips; None unless the longest one is first."""
    return next(_lots(dataset, trips)) if trips.longest_first else None


def _lots(dataset: DeviceDataset, trips: BatchPlan, ready: _Lot | None = None) -> Iterator[_Lot]:
    """Yield the batches of all steps; `ready` are the first ones.

    Inputs are gathered for many steps at a time: one flat `index_select` costs a seventh of indexing by two tensors.
    """
    if ready:
        yield ready
        if len(ready.steps) == trips.steps[0]:
            return
    device = dataset.x.device
    samples, weights = (torch.from_numpy(a).to(device) for a in batches.table(trips.order, trips.works, trips.steps))
    flat = dataset.x.flatten(1)
    at_once = max(1, _GATHERED // (samples[0].numel() * flat.shape[1]))
    for first in range(len(ready.steps) if ready else 0, len(samples), at_once):
        chosen = samples[first : first + at_once]
        x = flat.index_select(0, chosen.flatten()).view(*chosen.shape, -1)
        hot = hot_labels(dataset, chosen)
        yield _Lot(range(first, first + len(chosen)), x, hot, weights[first : first + at_once, :, None])


def hot_labels(dataset: DeviceDataset, samples: Tensor) -> Tensor:
    """Return the labels of `samples`, (steps, C, B), as (steps, C, classes, B): 1 where they are, 0 elsewhere."""
    labels = dataset.y.index_select(0, samples.flatten()).view(samples.shape)
    hot = dataset.x.new_zeros(*samples.shape[:2], prod(dataset.model.output_shape), samples.shape[2])
    return hot.scatter_(2, labels[:, :, None], 1.0)


def first_rows(tensors: Sequence[Tensor], active: int) -> Sequence[Tensor]:
    """Return the first `active` rows of each; of all, at no cost."""
    return tensors if active == len(tensors[0]) else [tensor[:active] for tensor in tensors]


def forward(
    blocks: Sequence[Block],
    tensors: Sequence[Tensor],
    x: Tensor,
    keys: Tensor,
    step: int | Tensor,
    slope: Tensor | None = None,
) -> tuple[list[Tensor], list[Tensor | None]]:
    """Return the inputs of each dense layer, and the slopes of what made them (ReLU and dropout); `slope` is x's."""
    inputs, slopes = [x], [slope]
    for layer, block in enumerate(blocks[:-1]):
        weight, bias = tensors[2 * layer : 2 * layer + 2]
        hidden, mine = activate(torch.baddbmm(bias[:, None], inputs[-1], weight.mT), block, keys, step)
        inputs.append(hidden)
        slopes.append(mine)
    return inputs, slopes


def activate(hidden: Tensor, block: Block, keys: Tensor, step: int | Tensor) -> tuple[Tensor, Tensor]:
    """Apply ReLU and dropout in place; return (outputs, slopes)."""
    hidden = hidden.relu_()
    slope = hidden.sign()  # 0 or 1, at an eighth of what a comparison and its conversion take
    if block.rate:
        kept = _masks(hidden, block, keys, step)
        hidden, slope = hidden.mul_(kept), slope.mul_(kept)
    return hidden, slope


def log_probabilities(tensors: Sequence[Tensor], inputs: Tensor, out: Tensor | None = None) -> Tensor:
    """Return the logarithms of what the last layer holds likely, (C, classes, B); in `out`, if that is given."""
    logits = torch.baddbmm(tensors[-1][:, :, None], tensors[-2], inputs.mT)
    logs: Tensor = torch.log_softmax(logits, 1, out=out)
    return logs


def errors(logs: Tensor, hot: Tensor, weights: Tensor) -> Tensor:
    """Return the errors of the last layer, (C, classes, B)."""
    return logs.exp().sub_(hot).mul_(weights)


def mean_losses(logs: Tensor, hot: Tensor, weights: Tensor) -> Tensor:
    """Return the mean loss of each batch, (..., C), from (..., C, classes, B)."""
    return -((logs * hot).sum(-2) * weights.squeeze(-2)).sum(-1)


def _masks(hidden: Tensor, block: Block, keys: Tensor, step: int | Tensor) -> Tensor:
    """Return each row's dropout mask, scaled, in the shape of `hidden`: the masks that one client alone would have."""
    masks = torch.func.vmap(lambda key: mask(prod(hidden.shape[1:]), block.rate, key, block.number, step))(keys)
    return masks.view(hidden.shape).to(hidden.dtype).mul_(1 / (1 - block.rate))


def backward(
    tensors: Sequence[Tensor],
    inputs: Sequence[Tensor],
    slopes: Sequence[Tensor | None],
    error: Tensor,
    hear: Hear,
) -> Tensor:
    """Let each layer hear of its gradient, from the last to the first; `error` is (C, classes, B).

    A layer does only after the errors below it were worked out from its old weights: it may move at once. `slopes` are
    those of the inputs of each layer, None where nothing is to be learned below; returned are the errors below the
    first that has.
    """
    for layer in reversed(range(len(inputs))):
        weight, bias = tensors[2 * layer : 2 * layer + 2]
        slope = slopes[layer]
        below = None if slope is None else torch.bmm(error.mT, weight).mul_(slope).mT
        hear(2 * layer, weight, bias, error, inputs[layer])
        if below is not None:
            error = below
    return error


Hear = Callable[[int, Tensor, Tensor, Tensor, Tensor], None]
"""Takes the number of a layer's first tensor, its weight and bias, and the two factors of its gradient: errors and
inputs."""


def descending(lr: float) -> Hear:
    """Return plain SGD, which moves a layer by -lr times its gradient without writing the gradient out."""

    def hear(first: int, weight: Tensor, bias: Tensor, error: Tensor, inputs: Tensor) -> None:
        weight.baddbmm_(error, inputs, alpha=-lr)
        bias.sub_(error.sum(2), alpha=lr)

    return hear


class _InPlace:
    """Plain SGD with what moves a client besides: a constant correction, and a proximal term towards its start."""

    state = NO_STATE

    def __init__(self, model: Model, rows: ClientBatch) -> None:
        self._starts, self._prox, self._lr = views(model, rows.starts), rows.prox, rows.lr
        self._corrections = None if rows.corrections is None else views(model, rows.corrections)
        self._descend = descending(rows.lr)
        self.tensors = [tensor.clone(memory_format=torch.contiguous_format) for tensor in self._starts]

    def hear(self, first: int, weight: Tensor, bias: Tensor, error: Tensor, inputs: Tensor) -> None:
        """Y <- y - lr * (g + corr + prox * (y - x)), for the rows of tensor number `first` and the next."""
        for number, tensor in enumerate((weight, bias), first):
            if self._prox:
                tensor.lerp_(self._starts[number][: len(tensor)], self._lr * self._prox)
            if self._corrections is not None:
                tensor.add_(self._corrections[number][: len(tensor)], alpha=-self._lr)
        self._descend(first, weight, bias, error, inputs)

    def settle(self, step: int, active: int) -> None:
        """Do nothing more: all layers have moved."""

    @property
    def delta(self) -> Tensor:
        """Y - x."""
        deltas = [(tensor - start).flatten(1) for tensor, start in zip(self.tensors, self._starts, strict=True)]
        return torch.cat(deltas, 1)


class _Collected(LocalModels):
    """Any other optimiser, which needs all gradients of a step at once."""

    def __init__(self, model: Model, rows: ClientBatch) -> None:
        super().__init__(model, rows)
        self._grads = list(self.tensors)

    def hear(self, first: int, weight: Tensor, bias: Tensor, error: Tensor, inputs: Tensor) -> None:
        """Write out the gradients of tensors number `first` and the next."""
        self._grads[first : first + 2] = torch.bmm(error, inputs), error.sum(2)

    def settle(self, step: int, active: int) -> None:
        """Take the step."""
        self.move(self._grads, step, active)

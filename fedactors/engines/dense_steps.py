"""One step of stacks of dense layers by hand: the arithmetic that `dense_batched`, `dense_gram` and `cuda_graph` share.

The gradient of a weight is a product of two thin matrices, errors and inputs. It is never written out:
`backward` gives the two factors to its caller, which adds their product to the weight.

Shapes: C clients, B samples in a batch. Activations are (C, B, features). The logits are (C, classes, B): a softmax
over a short last axis costs ten times one over a middle axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import torch
from torch import Tensor

from fedactors.engines.client_batch import DeviceDataset
from fedactors.models.dense_stacks import Block
from fedactors.models.dropout import mask

Accumulate = Callable[[int, Tensor, Tensor, Tensor, Tensor], None]
"""Takes the number of a layer's first tensor, its weight and bias, and the two factors of its gradient: errors and
inputs."""


class PaddingRow:
    """Keeps a second row active when only one is left: products of a single row round differently from those of many.

    So a row has the same bits whichever rows are trained with it, as long as there is one. The trip of the second row
    is over, and what further steps do to its `tensors`, each (rows, ...), is undone.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._tensors = tensors
        self._saved = list[Tensor]()

    def active_rows(self, left: int) -> int:
        """Return how many rows take a step that `left` rows need."""
        if left != 1 or not self._tensors or len(self._tensors[0]) < 2:
            return left
        self._saved = self._saved or [tensor[1].clone() for tensor in self._tensors]
        return 2

    def restore(self) -> None:
        """Put the second row back to where its trip ended."""
        for tensor, saved in zip(self._tensors, self._saved, strict=False):
            tensor[1] = saved


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
    inputs = [x]
    slopes = [slope]
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
        hidden = hidden.mul_(kept)
        slope = slope.mul_(kept)
    return hidden, slope


def log_probabilities(tensors: Sequence[Tensor], inputs: Tensor, out: Tensor | None = None) -> Tensor:
    """Return the log probabilities of the last layer, (C, classes, B); in `out`, if that is given."""
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
    accumulate: Accumulate,
) -> Tensor:
    """Give the factors of each layer's gradient to `accumulate`, from the last layer to the first.

    `error` is (C, classes, B). A layer may be moved at once: the errors below it have then been computed from its old
    weights. `slopes` are those of the inputs of each layer, None where there are no errors to compute below. Returns
    the errors below the first layer that has slopes.
    """
    for layer in reversed(range(len(inputs))):
        weight, bias = tensors[2 * layer : 2 * layer + 2]
        slope = slopes[layer]
        below = None if slope is None else torch.bmm(error.mT, weight).mul_(slope).mT
        accumulate(2 * layer, weight, bias, error, inputs[layer])
        if below is not None:
            error = below
    return error


def descending(lr: float) -> Accumulate:
    """Return plain SGD, which moves a layer by -lr times its gradient without writing the gradient out."""

    def accumulate(first: int, weight: Tensor, bias: Tensor, error: Tensor, inputs: Tensor) -> None:
        weight.baddbmm_(error, inputs, alpha=-lr)
        bias.sub_(error.sum(2), alpha=lr)

    return accumulate

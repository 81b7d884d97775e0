"""Losses, as functions of a model's tensors and a batch; and how well each label fits each sample.

    cross_entropy   of a softmax over the outputs; for sequences the mean over their places
    binary          cross entropy of one output's sigmoid: labels 0 and 1
    squared         half the squared distance of the outputs from the label's unit vector: quadratic for linear models
    hinge           1 - cos(u, e_y) where positive: pulls the movies seen (u) and the next one (row y of the model's
                    table) together; no negatives, which a client with few items could not give
    spreadout       mean of cos(e_a, e_b)^2 over all pairs of rows of the table (Zhang et al., Learning Spread-Out Local
                    Feature Descriptors, 2017, second moment): pushes all items apart; looks at no sample

The same code serves one client and, under `torch.func.vmap`, many.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from fedactors.models.layers import REGULARISERS, Model
from fedactors.models.loss_description import LossDescription
from fedactors.models.loss_terms import Terms, terms
from fedactors.models.network import forward
from fedactors.models.precision import autocast


def losses(
    model: Model, tensors: Sequence[Tensor], x: Tensor, y: Tensor, keys: Tensor | None = None, step: int | Tensor = 0
) -> Tensor:
    """Return the loss of each sample, `(batch,)`; arguments as for `forward`."""
    if model.loss in REGULARISERS:
        return spreadout(tensors[0]).expand(x.shape[0])
    return losses_of_outputs(model, tensors, outputs_of(model, tensors, x, keys, step), y)


def sample_terms(
    model: Model, tensors: Sequence[Tensor], x: Tensor, y: Tensor, keys: Tensor | None = None, step: int | Tensor = 0
) -> Terms:
    """Return what each sample adds to the loss of its batch, and how much it counts; arguments as for `forward`."""
    if model.loss in REGULARISERS:
        return Terms(losses(model, tensors, x, y, keys, step))
    return output_terms(model, tensors, outputs_of(model, tensors, x, keys, step), y)


def output_terms(model: Model, tensors: Sequence[Tensor], outputs: Tensor, y: Tensor) -> Terms:
    """Return what `sample_terms` does, from the outputs of the model; for losses that look at samples."""
    if isinstance(model.loss, LossDescription):
        return terms(model.loss, outputs, y)
    return Terms(losses_of_outputs(model, tensors, outputs, y))


def mean_loss(
    model: Model, tensors: Sequence[Tensor], x: Tensor, y: Tensor, keys: Tensor | None = None, step: int | Tensor = 0
) -> Tensor:
    """Return the mean of `losses`, a scalar; where classes have weights, that of torch."""
    if model.loss == "cross_entropy":
        outputs = outputs_of(model, tensors, x, keys, step)
        flat = (outputs, y) if outputs.dim() == 2 else (outputs.flatten(0, -2), y.flatten())
        return functional.cross_entropy(*flat)
    found = sample_terms(model, tensors, x, y, keys, step)
    if isinstance(model.loss, LossDescription):
        return found.mean(torch.full_like(found.added, 1 / len(y)))
    return found.average()


def weighted_loss(
    model: Model,
    tensors: Sequence[Tensor],
    x: Tensor,
    y: Tensor,
    weights: Tensor,
    keys: Tensor | None = None,
    step: int | Tensor = 0,
) -> Tensor:
    """Return the loss of a batch whose samples have `weights` that sum to 1, or are 0 for what fills it up."""
    return sample_terms(model, tensors, x, y, keys, step).mean(weights)


def outputs_of(
    model: Model, tensors: Sequence[Tensor], x: Tensor, keys: Tensor | None, step: int | Tensor = 0
) -> Tensor:
    """Return what `forward` does, in float32, as exact as the model is trained."""
    if model.precision != "bf16":
        return forward(model, tensors, x, keys, step)
    with autocast(x.device.type):
        return forward(model, tensors, x, keys, step).float()


def losses_of_outputs(model: Model, tensors: Sequence[Tensor], outputs: Tensor, y: Tensor) -> Tensor:
    """Return the loss of each sample, `(batch,)`, from the model's outputs; for losses that look at samples."""
    if isinstance(model.loss, LossDescription):
        return terms(model.loss, outputs, y).added
    if model.loss == "cross_entropy":
        return _cross_entropy(outputs, y)
    if model.loss == "binary":
        return functional.binary_cross_entropy_with_logits(outputs[:, 0], y.to(outputs.dtype), reduction="none")
    if model.loss == "squared":  # (|o|^2 - 2 o_y + 1) / 2
        return outputs.square().sum(1) / 2 - outputs.gather(1, y[:, None])[:, 0] + 0.5
    wanted = functional.embedding(y, tensors[0])
    return functional.relu(1 - (_unit(outputs) * _unit(wanted)).sum(1))


def scores(model: Model, tensors: Sequence[Tensor], outputs: Tensor) -> Tensor:
    """Return how well each label fits each sample, `(batch, labels)`; for sequences `(batch, places, labels)`.

    Of a binary model the column of label 0 is 0.
    """
    if model.loss == "binary" or (isinstance(model.loss, LossDescription) and model.loss.name == "bce"):
        return functional.pad(outputs, (1, 0))
    return _unit(outputs) @ _unit(tensors[0]).T if model.loss == "hinge" else outputs


def _cross_entropy(outputs: Tensor, y: Tensor) -> Tensor:
    if outputs.dim() == 2:
        return functional.cross_entropy(outputs, y, reduction="none")
    each = functional.cross_entropy(outputs.flatten(0, 1), y.flatten(), reduction="none")
    return each.view(y.shape).mean(1)


def spreadout(table: Tensor) -> Tensor:
    """Return the mean squared cosine over pairs of rows of a table, `(rows, d)`.

    sum_ab <e_a, e_b>^2 = |E^T E|^2, which takes O(V d^2); the V pairs of a row with itself are taken off.
    """
    rows = _unit(table)
    count = table.shape[0]
    return ((rows.T @ rows).square().sum() - rows.square().sum(1).square().sum()) / max(count * (count - 1), 1)


def _unit(x: Tensor) -> Tensor:
    return functional.normalize(x, dim=-1, eps=1e-8)

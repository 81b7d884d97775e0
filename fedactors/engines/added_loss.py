"""What an algorithm adds to the loss of each sample of a client's batch: see `Algorithm.added_loss`.

    L(y; B) = sum_{i in B} w_i ( l_i(y) + r(o_i(y), label_i, o_i(x)) ) / sum_{i in B} w_i

o_i are outputs, y the client's model and x the one that its trip started from. x answers as it is evaluated: dropout
off, BatchNorm by its running averages. So what it says of a sample depends neither on the batch that the sample is in
nor on chance, and is what the model is judged by. No gradient flows into it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.func import grad, vmap

from fedactors.engines.local_work import AddedRule
from fedactors.errors import UserCodeError
from fedactors.in_place import unchanged
from fedactors.models.layers import Model, Shape
from fedactors.models.losses import outputs_of
from fedactors.models.network import views
from fedactors.models.torch_modules import given_tensors


@dataclass(frozen=True)
class AddedLoss:
    """The rule by which losses of samples grow, and the model of each row whose outputs it is given."""

    rule: AddedRule
    models: Tensor  # (rows, parameters): stride 0 along the rows where it is one model

    @property
    def is_shared(self) -> bool:
        """Whether it is the same model for all rows."""
        return self.models.stride(0) == 0

    def tensors(self, model: Model, rows: int) -> tuple[Tensor, ...]:
        """Return the tensors of the models of the first `rows` rows; without a row axis where it is one model."""
        return tuple(views(model, self.models[0] if self.is_shared else self.models[:rows]))

    def take(self, rows: Tensor) -> AddedLoss:
        """Return that of these rows."""
        return replace(self, models=self.models[: len(rows)] if self.is_shared else self.models[rows])


def global_outputs(model: Model, tensors: Sequence[Tensor], x: Tensor) -> Tensor:
    """Return what a model of these `tensors` answers in evaluation, `(batch, *output_shape)`, without gradients.

    It gets a copy of the samples, as a module may change what it is given.
    """
    with torch.no_grad(), given_tensors():
        return outputs_of(model, tensors, x.clone(), None)


def added_to_samples(rule: AddedRule, outputs: Tensor, labels: Tensor, theirs: Tensor) -> Tensor:
    """Return what is added to the loss of each sample, `(batch,)`; `theirs` are the outputs of the model x.

    Raises UserCodeError if the rule returns something else, or changes what it was given.
    """
    with unchanged(f"added_loss of algorithm {rule.algorithm}", outputs=outputs, labels=labels, global_outputs=theirs):
        found = rule.function(outputs, labels, theirs)
    count = len(labels)
    if not isinstance(found, Tensor) or found.shape != (count,):
        what = f"shape {tuple(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
        raise UserCodeError(
            f"added_loss of algorithm {rule.algorithm} returned {what} for {count} samples"
            f" (accepted: a tensor of shape ({count},), a number for each sample)"
        )
    return found.to(outputs.dtype)


@lru_cache(maxsize=16)
def vmappable(rule: AddedRule, output_shape: Shape) -> bool:
    """Whether torch.func.vmap can compute a rule for many clients at once: tried once, for two clients, on noise.

    Labels are of the kinds that there are; those that the rule is not for make it fail alone, too.
    """
    draws = torch.Generator().manual_seed(0)
    outputs, theirs = torch.randn(2, 2, 2, *output_shape, generator=draws)
    return any(_same_at_once(rule, outputs, labels, theirs) for labels in _labels(outputs))


def _labels(outputs: Tensor) -> Iterator[Tensor]:
    """Yield labels for outputs `(clients, batch, *output_shape)`: classes of samples or of places; values."""
    classes = torch.arange(outputs[..., 0].numel()) % max(2, outputs.shape[-1])
    yield classes.view(outputs.shape[:-1])
    yield outputs.sigmoid().round()
    yield outputs.flatten(2)[..., 0]


def _same_at_once(rule: AddedRule, outputs: Tensor, labels: Tensor, theirs: Tensor) -> bool:
    def total(outputs: Tensor, labels: Tensor, theirs: Tensor) -> Tensor:
        return added_to_samples(rule, outputs, labels, theirs).sum()

    gradient: Callable[..., Any] = grad(total)
    try:
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            together = vmap(gradient)(outputs, labels, theirs)
            alone = torch.stack([gradient(outputs[row], labels[row], theirs[row]) for row in range(len(outputs))])
    except Exception:  # of the user's code: it is told when the loss is computed for one client
        return False
    at_once = not any("batching rule" in str(one.message) for one in warned)
    return at_once and bool(torch.allclose(together, alone, rtol=1e-3, atol=1e-5, equal_nan=True))

"""The losses that a scenario names, sample by sample; names and numbers are torch's.

The loss of a batch is sum_i w_i a_i / sum_i w_i b_i: a_i is what sample i adds, b_i how much it counts. b_i is 1 but
where classes have weights or labels are ignored; the batch's loss is then torch's, whose mean is one over weights.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from fedactors.errors import DataError
from fedactors.models.loss_description import LossDescription

LEAST = 1e-12  # that a sum of weights is taken for where nothing counts


class Terms(NamedTuple):
    """What each sample of a batch adds to its loss, `(batch,)`, and how much it counts; None if all count 1."""

    added: Tensor
    counts: Tensor | None = None

    def mean(self, weights: Tensor) -> Tensor:
        """Return the loss of the batch, the samples having `weights` that sum to 1."""
        total = (self.added * weights).sum()
        return total if self.counts is None else total / (self.counts * weights).sum().clamp(min=LEAST)

    def average(self) -> Tensor:
        """Return the loss of the batch, all samples having the same weight."""
        mean = self.added.mean()
        return mean if self.counts is None else mean / self.counts.mean().clamp(min=LEAST)

    def plus(self, each: Tensor) -> Terms:
        """Return the terms of samples whose own losses are larger by `each`, `(batch,)`; they count as before."""
        return self._replace(added=self.added + (each if self.counts is None else each * self.counts))

    def weighted(self, weights: Tensor) -> Terms:
        """Return the terms of samples that have `weights`, `(batch,)`, whatever their sum."""
        return Terms(self.added * weights, weights if self.counts is None else self.counts * weights)


Rule = Callable[[LossDescription, Tensor, Tensor], Terms]


def terms(loss: LossDescription, outputs: Tensor, y: Tensor) -> Terms:
    """Return the terms of a batch: `outputs` `(batch, …)` of a model, and labels `y`.

    Raises DataError if a loss of the user returns something else than a number, or one for each sample.
    """
    if loss.reference is not None:
        return _of_user(loss, outputs, y)
    return RULES[loss.name](loss, outputs, y)


def _class_terms(loss: LossDescription, outputs: Tensor, y: Tensor) -> Terms:
    weights = loss.option("class_weights")
    ignored = loss.ignored
    weight = None if weights is None else outputs.new_tensor(weights)
    smoothing = loss.option("label_smoothing") or 0.0
    assert isinstance(smoothing, float)
    places = outputs.flatten(0, -2)
    labels = y.flatten()
    counts_not = torch.zeros_like(labels, dtype=torch.bool) if ignored is None else torch.eq(labels, ignored)
    there = (~counts_not).to(outputs.dtype)
    known = labels.masked_fill(counts_not, 0)
    each = functional.cross_entropy(places, known, weight, reduction="none", label_smoothing=smoothing) * there
    added = each.view(len(y), -1).mean(1)
    if weight is None and ignored is None:
        return Terms(added)
    counts = there if weight is None else there * weight[known]
    return Terms(added, counts.view(len(y), -1).mean(1))


def _values(function: Callable[..., Tensor]) -> Rule:
    """Return the rule of a loss of values: the mean over all values of a sample."""

    def rule(loss: LossDescription, outputs: Tensor, y: Tensor) -> Terms:
        options: dict[str, Any] = dict(loss.options)
        wanted = y.to(outputs.dtype).reshape(outputs.shape)
        return Terms(function(outputs, wanted, reduction="none", **options).flatten(1).mean(1))

    return rule


def _logistic(loss: LossDescription, outputs: Tensor, y: Tensor) -> Terms:
    weight = loss.option("pos_weight")
    positive = None if weight is None else outputs.new_tensor(weight)
    wanted = y.to(outputs.dtype).reshape(outputs.shape)
    each = functional.binary_cross_entropy_with_logits(outputs, wanted, reduction="none", pos_weight=positive)
    return Terms(each.flatten(1).mean(1))


def _log_likelihood(loss: LossDescription, outputs: Tensor, y: Tensor) -> Terms:
    each = functional.nll_loss(outputs.flatten(0, -2), y.flatten(), reduction="none")
    return Terms(each.view(len(y), -1).mean(1))


def _margin(loss: LossDescription, outputs: Tensor, y: Tensor) -> Terms:
    """By hand: torch has no rule by which vmap computes its own function at once."""
    margin = loss.option("margin")
    assert isinstance(margin, float)
    classes = outputs.shape[-1]
    beyond = functional.relu(margin - outputs.gather(1, y[:, None]) + outputs)
    others = torch.ones_like(outputs).scatter(1, y[:, None], 0.0)
    return Terms((beyond * others).sum(1) / classes)


def _ctc(loss: LossDescription, outputs: Tensor, y: Tensor) -> Terms:
    """Labels are `(batch, places)`, filled up with -1; a sample's loss is divided by its number of labels, as torch's.

    A sample whose labels cannot be aligned with its outputs adds nothing.
    """
    batch, places = outputs.shape[:2]
    lengths = (y >= 0).sum(1)
    blank = loss.option("blank")
    assert isinstance(blank, int)
    each = functional.ctc_loss(
        outputs.log_softmax(-1).transpose(0, 1),
        y.clamp(min=0),
        torch.full((batch,), places, dtype=torch.int64, device=y.device),
        lengths,
        blank=blank,
        reduction="none",
        zero_infinity=True,
    )
    return Terms(each / lengths.clamp(min=1))


RULES: dict[str, Rule] = {
    "cross_entropy": _class_terms,
    "nll": _log_likelihood,
    "multi_margin": _margin,
    "mse": _values(functional.mse_loss),
    "l1": _values(functional.l1_loss),
    "huber": _values(functional.huber_loss),
    "smooth_l1": _values(functional.smooth_l1_loss),
    "poisson_nll": _values(functional.poisson_nll_loss),
    "bce": _logistic,
    "multi_label": _logistic,
    "ctc": _ctc,
}


def _of_user(loss: LossDescription, outputs: Tensor, y: Tensor) -> Terms:
    return Terms(returned(loss, outputs, y).expand(len(y)))


def returned(loss: LossDescription, outputs: Tensor, y: Tensor) -> Tensor:
    """Return what a loss of the user does, `(batch,)`, or `()`: then all samples count the same.

    Raises DataError if it returns something else.
    """
    found = made(loss)(outputs, y)
    if not isinstance(found, Tensor) or (found.dim() and found.shape != (len(y),)):
        shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise DataError(
            f"task.loss: {loss} returned {shape} for {len(y)} samples (accepted: a number, or shape ({len(y)},))"
        )
    return found


@lru_cache(maxsize=16)
def made(loss: LossDescription) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the user's loss as a function of outputs and labels.

    A class is made once with the arguments; a function is given them in every call. Raises DataError if it cannot be.
    """
    assert loss.reference is not None
    arguments = json.loads(loss.arguments)
    try:
        found = loss.reference.load()
        return found(**arguments) if isinstance(found, type) else partial(found, **arguments)
    except (Exception, SystemExit) as error:
        text = " ".join(str(error).split())[:300]
        raise DataError(f"task.loss: {loss}: {type(error).__name__}: {text}") from error

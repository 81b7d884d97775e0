"""The losses that a scenario may name in `task.loss`: options only, without torch; `loss_terms` computes them."""

from __future__ import annotations

import json
from typing import Annotated, ClassVar, Literal

from pydantic import Field, PositiveInt

from fedactors.arguments import Arguments
from fedactors.errors import ScenarioError
from fedactors.models.layers import Loss
from fedactors.models.loss_description import LabelKind, LossDescription, Option
from fedactors.options import Options
from fedactors.own_code.user_code import Reference

Positive = Annotated[float, Field(gt=0.0)]
Weights = Annotated[tuple[Annotated[float, Field(ge=0.0)], ...], Field(strict=False, min_length=1)]


class TaskLoss(Options):
    """Base of all losses that a scenario names."""

    label_kind: ClassVar[LabelKind] = "value"

    name: str

    def describe(self) -> Loss | LossDescription:
        """Return the loss as a model has it."""
        return LossDescription(self.name, self.label_kind, self._options())

    @property
    def ignored(self) -> int | None:
        """The label that does not count; None if all do."""
        loss = self.describe()
        return loss.ignored if isinstance(loss, LossDescription) else None

    def outputs(self, classes: int, values: int) -> int:
        """Return how many numbers a model answers for data of `classes` labels, or of so many `values` each.

        Raises ScenarioError if the loss is not defined for them.
        """
        return values

    def _options(self) -> tuple[tuple[str, Option], ...]:
        given = self.model_dump(exclude={"name"})
        return tuple((name, value) for name, value in given.items() if value is not None)


class _OfClasses(TaskLoss):
    """A loss of labels that are classes: a model answers one number for each."""

    label_kind: ClassVar[LabelKind] = "class"

    def outputs(self, classes: int, values: int) -> int:
        """Return the number of classes."""
        return classes


class CrossEntropyLoss(_OfClasses):
    """Cross entropy of a softmax; for sequences the mean over their places: torch.nn.CrossEntropyLoss."""

    name: Literal["cross_entropy"] = "cross_entropy"
    label_smoothing: float = Field(default=0.0, ge=0.0, lt=1.0)
    """What part of every label is spread evenly over all classes."""
    class_weights: Weights | None = None
    """How much each class counts, in the order of the labels."""
    ignore_index: int | None = None
    """A label that does not count, such as what fills up sequences."""

    def describe(self) -> Loss | LossDescription:
        """Return the loss that fast engines know, if there are no options."""
        plain = not self.label_smoothing and self.class_weights is None and self.ignore_index is None
        return "cross_entropy" if plain else super().describe()

    def outputs(self, classes: int, values: int) -> int:
        """Return the number of classes. Raises ScenarioError if there are other weights than classes."""
        if self.class_weights is not None and len(self.class_weights) != classes:
            raise ScenarioError(
                f"task.loss.class_weights: found {len(self.class_weights)} weights for {classes} classes"
                f" (accepted: {classes})"
            )
        return classes


class NllLoss(_OfClasses):
    """Minus the log probability of the label, which the model answers: torch.nn.NLLLoss."""

    name: Literal["nll"] = "nll"


class MultiMarginLoss(_OfClasses):
    """Hinge loss of several classes: torch.nn.MultiMarginLoss."""

    name: Literal["multi_margin"] = "multi_margin"
    margin: Positive = 1.0
    """By how much the right answer has to be above each other one."""


class MseLoss(TaskLoss):
    """Mean squared difference: torch.nn.MSELoss."""

    name: Literal["mse"] = "mse"


class L1Loss(TaskLoss):
    """Mean absolute difference: torch.nn.L1Loss."""

    name: Literal["l1"] = "l1"


class HuberLoss(TaskLoss):
    """Squared below `delta`, straight above it: torch.nn.HuberLoss."""

    name: Literal["huber"] = "huber"
    delta: Positive = 1.0
    """The difference at which squares end."""


class SmoothL1Loss(TaskLoss):
    """As huber with slope 1: torch.nn.SmoothL1Loss."""

    name: Literal["smooth_l1"] = "smooth_l1"
    beta: Positive = 1.0
    """The difference at which squares end."""


class PoissonLoss(TaskLoss):
    """Counts whose logarithm of the mean the model answers: torch.nn.PoissonNLLLoss."""

    name: Literal["poisson_nll"] = "poisson_nll"


class BceLoss(TaskLoss):
    """Cross entropy of the sigmoid of one output, labels 0 and 1: torch.nn.BCEWithLogitsLoss."""

    label_kind: ClassVar[LabelKind] = "class"

    name: Literal["bce"] = "bce"
    pos_weight: Positive | None = None
    """How much samples with label 1 count."""

    def outputs(self, classes: int, values: int) -> int:
        """Return 1. Raises ScenarioError if there are more than two labels."""
        if classes > 2:
            raise ScenarioError(
                f"task.loss: bce judges labels 0 and 1, the data have {classes} labels (accepted: cross_entropy)"
            )
        return 1


class MultiLabelLoss(TaskLoss):
    """Each label of a sample 0 or 1 by itself; the mean over labels of bce: torch.nn.MultiLabelSoftMarginLoss."""

    label_kind: ClassVar[LabelKind] = "multi-label"

    name: Literal["multi_label"] = "multi_label"
    pos_weight: Weights | None = None
    """How much a 1 counts, for each label."""

    def outputs(self, classes: int, values: int) -> int:
        """Return the number of labels. Raises ScenarioError if there are other weights than labels."""
        if self.pos_weight is not None and len(self.pos_weight) != classes:
            raise ScenarioError(
                f"task.loss.pos_weight: found {len(self.pos_weight)} weights for {classes} labels (accepted: {classes})"
            )
        return classes


class CtcLoss(_OfClasses):
    """Sequences of labels that are not aligned with the outputs: torch.nn.CTCLoss. Labels are filled up with -1."""

    label_kind: ClassVar[LabelKind] = "sequence"

    name: Literal["ctc"] = "ctc"
    blank: int = Field(default=0, ge=0)
    """The label that stands for none."""


class TorchLoss(TaskLoss):
    """A loss of the user: a function of outputs and labels, or a class of such objects (a torch.nn.Module, say)."""

    label_kind: ClassVar[LabelKind] = "any"

    name: Literal["torch"] = "torch"
    factory: Reference
    """`losses.py:my_loss` (relative to the scenario) or `package.module:Loss`. Returns a number for a batch, its mean,
    or one for each sample."""
    arguments: Arguments = Field(default_factory=dict)
    """Keyword arguments of the function in every call, or of the class once."""
    numbers: PositiveInt | None = None
    """How many numbers a model answers; by default one for each label of the data."""

    def describe(self) -> LossDescription:
        """Return the loss as a model has it."""
        return LossDescription(self.name, self.label_kind, (), self.factory, json.dumps(self.arguments, sort_keys=True))

    def outputs(self, classes: int, values: int) -> int:
        """Return what is said, or the number of labels."""
        return self.numbers or classes

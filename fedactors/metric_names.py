"""The measures of models that a scenario may name, and which of their values are better. Nothing is computed here."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from fedactors.own_code.user_code import Reference

_PARTS = ("federated_", "central_")  # prefixes of the parts of a test set
VALIDATION = "validation_"  # before the name of a measure of the samples for validation
TEST = "test_"  # before the name of a measure where that of the test samples is meant, although there is validation
_MARK = "validation_loss"  # a column of every evaluation with samples for validation
CLASS, VALUES, LABELS = "class", "value", "multi-label"  # what labels a measure is of
BEST = "best"  # views of outputs that measures need, see learning.metric_views
CHANCE = "chance"
OUTPUTS = "outputs"
_BY_ALL = ("auroc", "average_precision", "calibration_error")  # measures of classes that look at all outputs
_TOP = re.compile(r"top[1-9]\d{0,3}")


class MetricSpec(NamedTuple):
    """One measure of a run, as it travels to the evaluator."""

    name: str
    factory: Reference | None = None
    arguments: str = "{}"  # as JSON


class MetricInfo(NamedTuple):
    """What is known of a measure by its name."""

    higher_is_better: bool
    of: tuple[str, ...]  # kinds of labels that it judges


METRICS: dict[str, MetricInfo] = {
    "accuracy": MetricInfo(True, (CLASS, LABELS)),
    "balanced_accuracy": MetricInfo(True, (CLASS,)),
    "precision_macro": MetricInfo(True, (CLASS, LABELS)),
    "recall_macro": MetricInfo(True, (CLASS, LABELS)),
    "f1_macro": MetricInfo(True, (CLASS, LABELS)),
    "f1_micro": MetricInfo(True, (CLASS, LABELS)),
    "f1_weighted": MetricInfo(True, (CLASS, LABELS)),
    "auroc": MetricInfo(True, (CLASS, LABELS)),
    "average_precision": MetricInfo(True, (CLASS, LABELS)),
    "matthews": MetricInfo(True, (CLASS, LABELS)),
    "cohen_kappa": MetricInfo(True, (CLASS,)),
    "calibration_error": MetricInfo(False, (CLASS,)),
    "perplexity": MetricInfo(False, (CLASS,)),
    "exact_match": MetricInfo(True, (LABELS,)),
    "hamming": MetricInfo(False, (LABELS,)),
    "mse": MetricInfo(False, (VALUES,)),
    "rmse": MetricInfo(False, (VALUES,)),
    "mae": MetricInfo(False, (VALUES,)),
    "mape": MetricInfo(False, (VALUES,)),
    "r2": MetricInfo(True, (VALUES,)),
    "explained_variance": MetricInfo(True, (VALUES,)),
    "pearson": MetricInfo(True, (VALUES,)),
    "spearman": MetricInfo(True, (VALUES,)),
}
_OTHERS = {"loss": False, "train_loss": False, "spreadout": False, "auc": True, "recall10": True}
_NOT_SHARES = {  # measures whose values are not between 0 and 1
    "loss", "train_loss", "spreadout", "matthews", "cohen_kappa", "perplexity", "mse", "rmse", "mae", "mape", "r2",
    "explained_variance", "pearson", "spearman",
}  # fmt: skip
WRITTEN = ("accuracy", "loss", "auc", "recall10", "spreadout")  # measures that need not be named
OF_NO_SAMPLES = ("train_loss", "spreadout")  # measures that do not depend on the samples of an evaluation


def info_of(name: str) -> MetricInfo | None:
    """Return what is known of a measure that a scenario may name; None if there is no such."""
    if _TOP.fullmatch(name):
        return MetricInfo(True, (CLASS,))
    return METRICS.get(name)


def judged_as(name: str, kind: str) -> str:
    """Return the kind of labels that a measure judges, where labels are of `kind`.

    Under a loss of the user, what labels are is not said, and a measure is of its own kind.
    """
    info = info_of(name)
    return kind if info is None or kind in info.of else info.of[-1]


def view_of(spec: MetricSpec, kind: str) -> str:
    """Return which view a measure needs."""
    if spec.factory is not None or judged_as(spec.name, kind) != CLASS or spec.name in _BY_ALL:
        return OUTPUTS
    if spec.name == "perplexity":
        return CHANCE
    return spec.name if spec.name.startswith("top") else BEST


def views_of(specs: Sequence[MetricSpec], kind: str) -> tuple[str, ...]:
    """Return the views that measures need, each once."""
    return tuple({view_of(spec, kind): None for spec in specs})


def without_part(column: str) -> str:
    """Return the name of a measure without the part of the test set, or of validation, that a column is of."""
    column = column.removeprefix(VALIDATION)
    return next((column.removeprefix(part) for part in _PARTS if column.startswith(part)), column)


def of_validation(measures: Mapping[str, float]) -> dict[str, float]:
    """Return measures of the samples for validation under the names of their columns; without what is of no samples."""
    return {VALIDATION + name: value for name, value in measures.items() if name not in OF_NO_SAMPLES}


def is_validated(columns: Container[str]) -> bool:
    """Return whether columns of an evaluation are also of samples for validation."""
    return _MARK in columns


def chooser(name: str, own: Container[str] = (), *, validated: bool) -> str:
    """Return the column of metrics that a choice by a measure looks at: of validation, where there are such samples.

    A name with "test_" before it means the test samples, unless it is one of a scenario's `own` measures.
    """
    if name not in own and name.startswith(TEST):
        return name.removeprefix(TEST)
    alone = name.startswith(VALIDATION) or name in OF_NO_SAMPLES
    return name if alone or not validated else VALIDATION + name


def higher_is_better(name: str) -> bool | None:
    """Return whether higher values of a column of metrics are better; None if the name says nothing."""
    bare = without_part(name)
    if bare in _OTHERS:
        return _OTHERS[bare]
    known = info_of(bare)
    return None if known is None else known.higher_is_better


def is_share(name: str) -> bool:
    """Return whether the values of a column of metrics are known to be shares, between 0 and 1."""
    bare = without_part(name)
    return higher_is_better(bare) is not None and bare not in _NOT_SHARES

"""Measures of models on a test set, by name; torchmetrics computes them, and is imported when the first one is wanted.

A measure is a function of what a model answers, or of a view of it (`metric_views`), and of the labels, over all
samples at once. Sequences count place by place; places whose label the loss ignores do not count.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor

from fedactors.engines.micro_batching import out_of_memory
from fedactors.errors import DataError
from fedactors.extras import needed
from fedactors.learning.metric_views import view
from fedactors.metric_names import BEST, CLASS, LABELS, VALUES, MetricSpec, judged_as, view_of, views_of
from fedactors.models.layers import Loss, Model
from fedactors.models.loss_description import LossDescription
from fedactors.own_code.user_errors import in_a_line, told

Function = Callable[[Tensor, Tensor], Any]

_CURVES = ("auroc", "average_precision")  # areas under a curve of each class


def kind_of(model: Model, y: Tensor) -> str:
    """Return what the labels of a model are: classes, values, or several labels at once."""
    if isinstance(model.loss, LossDescription):
        if model.loss.label_kind == "any":
            return VALUES if y.is_floating_point() or model.output_shape[-1] == 1 else CLASS
        if model.loss.label_kind in (VALUES, LABELS):
            return model.loss.label_kind
    return CLASS


def measured(
    specs: Sequence[MetricSpec], kind: str, outputs: Tensor, y: Tensor, loss: Loss | LossDescription = "cross_entropy"
) -> dict[str, float]:
    """Return the measures of `outputs`, `(n, …)`, against labels `y`; NaN where a measure is not defined.

    The loss says which labels do not count, and what outputs are: of `poisson_nll` logarithms of the means, which are
    what values are compared with. Functions of the user are given the outputs as they are.

    Raises DataError if a function of the user raises or returns no number, and what torch raises where memory lacks.
    """
    views = {name: view(name, outputs, y) for name in views_of(specs, kind)}
    return measured_by(specs, kind, views, outputs.shape[-1] if outputs.dim() else 0, y, loss)


def measured_by(
    specs: Sequence[MetricSpec],
    kind: str,
    views: Mapping[str, Tensor],
    classes: int,
    y: Tensor,
    loss: Loss | LossDescription = "cross_entropy",
) -> dict[str, float]:
    """Return the same of outputs of which there are only the `views` that the measures need; see `view`."""
    found = {}
    for spec in specs:
        seen = views[view_of(spec, kind)]
        if spec.factory is not None:
            found[spec.name] = _of_user(spec, seen, y)
        else:
            found[spec.name] = _of_torchmetrics(spec.name, judged_as(spec.name, kind), seen, y, loss, classes)
    return found


def _rows(kind: str, outputs: Tensor, y: Tensor, loss: Loss | LossDescription) -> tuple[Tensor, Tensor]:
    """Return outputs and labels with one row for each answer."""
    named = loss if isinstance(loss, LossDescription) else None
    if kind == VALUES:
        answers = outputs.double()
        values = answers.exp() if named is not None and named.name == "poisson_nll" else answers
        return values, y.to(torch.float64).reshape(outputs.shape)
    if kind == LABELS:
        return outputs.double().sigmoid(), y.long()
    places, labels = outputs.flatten(0, -2).double(), y.flatten()
    ignored = None if named is None else named.ignored
    there = labels >= 0 if ignored is None else labels != ignored
    return (places, labels) if bool(there.all()) else (places[there], labels[there])


def _of_torchmetrics(
    name: str, kind: str, outputs: Tensor, y: Tensor, loss: Loss | LossDescription, classes: int
) -> float:
    functions = needed("torchmetrics.functional", "metrics")
    rules: dict[str, Callable[..., Tensor]] = {CLASS: _of_classes, VALUES: _of_values, LABELS: _of_labels}
    rule = partial(rules[kind], classes=classes) if kind == CLASS else rules[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of classes without samples, and of too few samples
        try:
            value = rule(functions, name, *_rows(kind, outputs, y, loss))
        except (ValueError, IndexError, RuntimeError) as error:
            if out_of_memory(error):
                raise
            return math.nan  # too few samples, or of one kind only
    return float(value.double().mean())


def _of_classes(functions: Any, name: str, seen: Tensor, y: Tensor, *, classes: int) -> Tensor:
    """Return a measure of what its view, `(rows, 1)`, or all outputs, `(rows, classes)`, show."""
    if name.startswith("top") or (view_of(MetricSpec(name), CLASS) == BEST and bool(seen.isnan().any())):
        return seen[:, 0]  # its mean is the measure; NaN where outputs and labels do not go together
    if name == "perplexity":
        return (-seen[:, 0].log().sum() / len(y)).exp()
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "accuracy": ("accuracy", {"average": "micro"}),
        "balanced_accuracy": ("accuracy", {"average": None}),
        "matthews": ("matthews_corrcoef", {}),
        "cohen_kappa": ("cohen_kappa", {}),
        "calibration_error": ("calibration_error", {}),
    }
    if name in _CURVES:
        return _of_curves(functions, name, seen.softmax(-1), y, classes)
    answers = seen[:, 0].long() if view_of(MetricSpec(name), CLASS) == BEST else seen.softmax(-1)
    if name == "matthews":
        classes = max(classes, 3)  # of two, torchmetrics has other values than 0 where it is not defined
    called, options = calls.get(name) or _averaged(name)
    found = torch.as_tensor(getattr(functions.classification, f"multiclass_{called}")(answers, y, classes, **options))
    if name == "balanced_accuracy":
        there = torch.bincount(y, minlength=classes) > 0
        return (found * there / there.sum()).sum()
    return found


def _of_curves(functions: Any, name: str, answers: Tensor, y: Tensor, classes: int) -> Tensor:
    """Return the mean over classes of the areas under their curves; of two classes the area of the second one."""
    if classes == 2:
        area = getattr(functions.classification, f"binary_{name}")(answers[:, 1], y)
        return _mean_where_defined(name, area.reshape(1), y.sum().reshape(1), len(y))
    each = getattr(functions.classification, f"multiclass_{name}")(answers, y, classes, average=None)
    return _mean_where_defined(name, each, torch.bincount(y, minlength=classes), len(y))


def _mean_where_defined(name: str, each: Tensor, positive: Tensor, samples: int) -> Tensor:
    """Return the mean of the areas under the curves of `each` class, `(classes,)`, that are defined; NaN if none is.

    It takes samples of the class, of which there are `positive`, `(classes,)`, and for the ROC curve others too.
    """
    defined = (positive > 0) & (positive < samples) if name == "auroc" else positive > 0
    return each[defined].mean()


def _averaged(name: str) -> tuple[str, dict[str, Any]]:
    """Return function and average of names such as f1_macro."""
    what, _, average = name.rpartition("_")
    return {"f1": "f1_score"}.get(what, what), {"average": average}


def _of_labels(functions: Any, name: str, outputs: Tensor, y: Tensor) -> Tensor:
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "accuracy": ("accuracy", {"average": "micro"}),
        "matthews": ("matthews_corrcoef", {}),
        "exact_match": ("exact_match", {}),
        "hamming": ("hamming_distance", {"average": "micro"}),
    }
    called, options = (name, {"average": None}) if name in _CURVES else calls.get(name) or _averaged(name)
    function = getattr(functions.classification, f"multilabel_{called}")
    found = torch.as_tensor(function(outputs, y, outputs.shape[-1], **options))
    return _mean_where_defined(name, found, y.sum(0), len(y)) if name in _CURVES else found


def _of_values(functions: Any, name: str, outputs: Tensor, y: Tensor) -> Tensor:
    called = {
        "mse": "mean_squared_error",
        "rmse": "mean_squared_error",
        "mae": "mean_absolute_error",
        "mape": "mean_absolute_percentage_error",
        "r2": "r2_score",
        "pearson": "pearson_corrcoef",
        "spearman": "spearman_corrcoef",
    }.get(name, name)
    options = {"squared": False} if name == "rmse" else {}
    one = outputs.shape[1:].numel() == 1
    given = (outputs.flatten(), y.flatten()) if one or name in ("mse", "rmse", "mae", "mape") else (outputs, y)
    return torch.as_tensor(getattr(functions, called)(*given, **options))


@lru_cache(maxsize=32)
def made(spec: MetricSpec) -> Function:
    """Return the user's measure, made once in each process."""
    assert spec.factory is not None
    found, arguments = spec.factory.load(), json.loads(spec.arguments)
    return found(**arguments) if isinstance(found, type) else partial(found, **arguments)


def _of_user(spec: MetricSpec, outputs: Tensor, y: Tensor) -> float:
    try:
        return float(made(spec)(outputs.clone(), y.clone()))  # it may change them: others are given the same
    except (Exception, SystemExit) as error:
        said = in_a_line(told(error)) or f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        raise DataError(f"task.metrics: {spec.name} ({spec.factory}): {said}") from error

"""What a scenario trains, and how much: the model with the loss that it names, its metrics, and the clients' work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from math import prod

import numpy as np
from numpy.typing import NDArray

from fedactors.data.base import Info
from fedactors.errors import ScenarioError
from fedactors.metric_names import CLASS, LABELS, VALUES, MetricSpec, info_of
from fedactors.models.builder import Describing
from fedactors.models.layers import Model
from fedactors.models.loss_description import LossDescription
from fedactors.models.module_layer import InputSpec, ModuleLayer, scenario_seed
from fedactors.models.task_losses import TaskLoss
from fedactors.scenario.local_options import LocalOptions
from fedactors.scenario.model import Scenario
from fedactors.scenario.task.task_options import TaskOptions
from fedactors.workload import Workload, workload


def model_of(task: TaskOptions, info: Info, seed: int) -> Model:
    """Return the model for the data, with the loss of the task, in a scenario with this `seed`.

    Raises ScenarioError or DataError if model, loss and data do not go together.
    """
    token = scenario_seed.set(seed)
    try:
        return _for_weights(_with_loss(task, info), info)
    finally:
        scenario_seed.reset(token)


def _with_loss(task: TaskOptions, info: Info) -> Model:
    """Return the model with the loss of the task. Raises ScenarioError or DataError if the two do not go together."""
    if task.loss is None:
        return _built(task, info, info.outputs)
    by_data = info.kind in ("value", "multi-label")
    outputs = info.outputs if by_data else task.loss.outputs(info.classes, _values(info))
    model = _built(task, info, outputs)
    loss = task.loss.describe()
    if model.loss != "cross_entropy" and model.loss != loss:
        raise ScenarioError(
            f'task.loss: found "{task.loss.name}", but model "{model.name}" is made for the loss {model.loss}'
            " (accepted: another model, or none)"
        )
    _check_outputs(task.loss, model, outputs)
    return replace(model, loss=loss)


def _for_weights(model: Model, info: Info) -> Model:
    """Return the model with a loss that knows weights of samples, if the data have them. Raises ScenarioError."""
    if not info.weighted or isinstance(model.loss, LossDescription):
        return model
    if model.loss != "cross_entropy":
        raise ScenarioError(
            f'task.dataset: "{info.name}" gives weights of samples, and the loss {model.loss} of model "{model.name}"'
            " knows none (accepted: data without weights, or a model for task.loss)"
        )
    return replace(model, loss=LossDescription("cross_entropy", "class"))


def _built(task: TaskOptions, info: Info, outputs: int) -> Model:
    """Return the model with so many outputs; models that can take samples of several parts are given these."""
    if info.inputs and isinstance(task.model, Describing):
        return task.model.describe(tuple(InputSpec(*part) for part in info.inputs), outputs)
    built: object = task.model.build(info.input_shape, outputs)
    if not isinstance(built, Model):
        kind = type(built).__name__
        raise ScenarioError(
            f'task.model: "{task.model.name}" builds {kind} (accepted: fedactors.models.layers.Model; a torch module is'
            " named by the model torch)"
        )
    return built


def _values(info: Info) -> int:
    """Return how many values a label has: one, unless labels are rows of values."""
    return max(1, prod(info.label_shape))


def _check_outputs(loss: TaskLoss, model: Model, outputs: int) -> None:
    """Refuse a model that does not answer what the loss judges. Raises ScenarioError."""
    found = model.output_shape
    if loss.label_kind == "sequence":
        if len(found) != 2:
            raise ScenarioError(
                f'task.loss: ctc judges sequences, but model "{model.name}" answers {found} for a sample'
                " (accepted: a model that answers (places, labels))"
            )
    elif loss.label_kind != "any" and found[-1] != outputs:
        raise ScenarioError(
            f'task.loss: "{loss.name}" judges {outputs} numbers for a sample, but model "{model.name}" answers'
            f" {found[-1]} (accepted: a model that answers {outputs})"
        )


def check_packages(task: TaskOptions) -> None:
    """Refuse metrics that nothing here computes, before code of the user is imported. Raises ScenarioError."""
    if any(metric.factory is None for metric in task.metrics) and find_spec("torchmetrics") is None:
        raise ScenarioError(
            "task.metrics: needs the package torchmetrics (accepted: pip install 'fedactors[metrics]', or no metrics)"
        )


def runs_own_code(model: Model, metrics: Sequence[MetricSpec]) -> bool:
    """Whether a module or the loss of a model, or one of the metrics, is the user's."""
    loss = model.loss
    own_loss = isinstance(loss, LossDescription) and loss.reference is not None
    own_module = any(isinstance(layer, ModuleLayer) for layer in model.layers)
    return own_loss or own_module or any(spec.factory is not None for spec in metrics)


def check_metrics(task: TaskOptions, model: Model) -> None:
    """Refuse metrics that say nothing of such labels. Raises ScenarioError."""
    kinds = _kinds(model)
    for metric in task.metrics:
        known = info_of(metric.name)
        if known is not None and not set(known.of) & set(kinds):
            raise ScenarioError(
                f'task.metrics: "{metric.name}" is of labels of the kind {" or ".join(known.of)}, but the loss'
                f" {model.loss} judges the kind {' or '.join(kinds)}"
            )


def _kinds(model: Model) -> tuple[str, ...]:
    """Return what kinds of labels the loss of a model judges."""
    if not isinstance(model.loss, LossDescription):
        return (CLASS,)
    if model.loss.label_kind == "any":
        return CLASS, VALUES, LABELS
    return (model.loss.label_kind,)


def workloads_of(sizes: NDArray[np.int64], scenario: Scenario) -> list[Workload]:
    """Return what each client is asked to do, from the samples it trains on and the group it belongs to."""
    found: list[Workload] = []
    for number, group in enumerate(scenario.population):
        mine = sizes[len(found) : len(found) + group.count]
        found += _workloads_of_group(mine, scenario.local_of(number))
    return found


def _workloads_of_group(sizes: NDArray[np.int64], local: LocalOptions) -> list[Workload]:
    @cache
    def of(samples: int) -> Workload:
        return workload(
            samples,
            local.batch,
            epochs=local.epochs,
            steps=local.steps,
            drop_last=local.drop_last,
            whole_passes=local.update_unit == "epoch",
            with_replacement=local.with_replacement,
        )

    return [of(samples) for samples in sizes.tolist()]

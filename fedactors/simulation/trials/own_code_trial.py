"""Tries a module, a loss and metrics of the user once, on a few of the data, before anything runs.

The loss of a batch is computed at the first model, in training mode; metrics are computed of as many outputs as
there are test samples, the outputs of the first few of them over and over; where clients are
evaluated on test samples of their own, also of those of one client.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import Module

from fedactors.data.evaluation_set import EvaluationSet
from fedactors.errors import DataError, naming
from fedactors.learning import metrics
from fedactors.learning.evaluation import ModelEvaluator
from fedactors.learning.metrics import kind_of, measured
from fedactors.learning.training_task import TrainingData, TrainingTask
from fedactors.metric_names import MetricSpec
from fedactors.models import loss_terms
from fedactors.models.layers import REGULARISERS, Model
from fedactors.models.loss_description import LossDescription
from fedactors.models.loss_terms import returned
from fedactors.models.losses import outputs_of, scores
from fedactors.models.module_layer import ModuleLayer
from fedactors.models.network import forward, initial, views
from fedactors.own_code.user_code import telling
from fedactors.simulation.prepared import Prepared
from fedactors.simulation.trials.repeated_calls import Tried, held_by, refuse_memory, refuse_pairs
from fedactors.workload import Workload

_FEW = 8  # samples
_MANY = 100_000  # samples, in which different labels are looked for


def try_own_code(prepared: Prepared, task: TrainingTask, samples: TrainingData, test: EvaluationSet) -> None:
    """Raise DataError, naming the scenario's file, if code of the user cannot be trained or measured with."""
    with naming(prepared.scenario.source):
        if _trains_by_own_code(task.model):
            _try_step(task.model, samples, task.seed)
            _try_one_sample(task, samples)
        if _own_metrics(task) and len(test.y):
            _try_metrics(task, test)
            if (evaluation := prepared.scenario.server.evaluation) is not None and evaluation.on == "held_out":
                _try_at_a_client(task, test)


def _trains_by_own_code(model: Model) -> bool:
    return _own_loss(model) is not None or any(isinstance(layer, ModuleLayer) for layer in model.layers)


def _own_metrics(task: TrainingTask) -> list[MetricSpec]:
    return [spec for spec in task.metrics if spec.factory is not None]


def _own_loss(model: Model) -> LossDescription | None:
    loss = model.loss
    return loss if isinstance(loss, LossDescription) and loss.reference is not None else None


def _batch(x: NDArray[np.float32], y: NDArray[np.generic]) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(np.array(x[:_FEW])), torch.from_numpy(np.array(y[:_FEW]))


def _try_step(model: Model, samples: TrainingData, seed: int) -> None:
    """Compute a batch's loss in training mode, and its gradient by the outputs. Raises DataError if there is none."""
    x, y = _batch(*samples.few(_FEW))
    flat = torch.from_numpy(initial(model, seed)).requires_grad_()
    module = next((layer for layer in model.layers if isinstance(layer, ModuleLayer)), None)
    with telling(module.maker.factory, _training(model), DataError) if module else nullcontext():
        outputs = outputs_of(model, views(model, flat), x, torch.tensor(0))
    if module is not None and not outputs.requires_grad:
        raise DataError(
            f"{module.maker}: forward in training mode returned a tensor without gradients (accepted: what follows from"
            " the parameters, without detach() or no_grad())"
        )
    own = _own_loss(model)
    if own is not None and own.reference is not None:
        with telling(own.reference, "task.loss raised", DataError):
            _check_loss(own, outputs, y, weighted=samples.weights is not None)
            _check_pairs(_tried_loss(own), outputs.detach(), samples.few(_MANY)[1])
            refuse_memory(_tried_loss(own), outputs.detach(), y)


def _try_one_sample(task: TrainingTask, samples: TrainingData) -> None:
    """Raise DataError if there is a batch of one sample, and a module does not train on it, as under BatchNorm."""
    module = next((layer for layer in task.model.layers if isinstance(layer, ModuleLayer)), None)
    found = next(_batches_of_one(task), None)
    if found is None or module is None:
        return
    x, _ = _batch(*samples.few(1))
    tensors = views(task.model, torch.from_numpy(initial(task.model, task.seed)))
    try:
        shape = tuple(outputs_of(task.model, tensors, x, torch.tensor(0)).shape)
        said = f"returns the shape {shape}" if shape != (1, *module.output_shape) else ""
    except Exception as error:
        said = f"raises {type(error).__name__}: {' '.join(str(error).split())[:150]}"
    if said:
        who, work, accepted = found
        raise DataError(
            f"{module.maker}: {who} has {work.held:,} samples, of which batches of {work.batch:,} leave one, and for"
            f" one sample forward in training mode {said} (accepted: {accepted}, or GroupNorm in place of BatchNorm)"
        )


def _batches_of_one(task: TrainingTask) -> Iterator[tuple[str, Workload, str]]:
    """Yield who has a batch of one sample at times, the work that it is of, and what else is accepted."""
    for client, work in enumerate(task.workloads):
        if _has_batch_of_one(work):
            yield f"client {client}", work, "another server.local.batch, server.local.drop_last: true"
    if task.algorithm.central_loss not in REGULARISERS:
        central = task.algorithm.central_work(task.setting)
        sent = task.algorithm.centre == "at clients"  # which are sent full batches alone
        if central.wanted and (central.batch == 1 if sent else _has_batch_of_one(central)):
            yield "the server", central, "another size of its batches or of its data"


def _has_batch_of_one(work: Workload) -> bool:
    return bool(work.wanted) and (
        work.batch == 1 or (work.pass_samples % work.batch == 1 and work.wanted >= work.pass_steps)
    )


def _check_loss(own: LossDescription, outputs: Tensor, y: Tensor, *, weighted: bool) -> None:
    """Raise DataError if a loss of the user has no gradient, or cannot say how much each sample counts."""
    found = returned(own, outputs, y)
    if not found.requires_grad:
        raise DataError(
            f"task.loss: {own} returned a tensor without gradients (accepted: a function of the outputs, without"
            " detach() or no_grad())"
        )
    if weighted and not found.dim():
        raise DataError(
            f"task.loss: {own} returned one number, and the data give weights of samples (accepted: a number for each"
            " sample)"
        )
    torch.autograd.grad(found.mean(), outputs)
    parts = loss_terms.made(own)
    trained = [name for name, one in parts.named_parameters() if one.requires_grad] if isinstance(parts, Module) else []
    if trained:
        raise DataError(
            f"task.loss: {own} has the parameter {trained[0]}, which nothing trains (accepted: parameters of the model,"
            " or requires_grad_(False))"
        )


def _tried_loss(own: LossDescription) -> Tried:
    assert own.reference is not None
    held = partial(_held_by_loss, own, own.reference.module)
    return Tried(f"task.loss: {own}", partial(returned, own), loss_terms.made.cache_clear, held)


def _held_by_loss(own: LossDescription, file: str) -> dict[str, object]:
    return held_by(loss_terms.made(own), file)


def _tried_metric(spec: MetricSpec, kind: str) -> Tried:
    def value(outputs: Tensor, labels: Tensor) -> Tensor:
        return torch.tensor(measured([spec], kind, outputs, labels)[spec.name], dtype=torch.float64)

    return Tried(f"task.metrics: {spec.name} ({spec.factory})", value, metrics.made.cache_clear)


def _check_pairs(tried: Tried, outputs: Tensor, labels: NDArray[np.generic]) -> None:
    """Raise DataError if a function compares each output with each label; `labels` are those of the data."""
    if labels.ndim == 1:
        known, count = np.unique(labels), len(outputs)
        refuse_pairs(tried, outputs, torch.from_numpy(known[np.arange(count) * len(known) // count]))


def _training(model: Model) -> str:
    exact = f" with precision: {model.precision}" if model.precision != "fp32" else ""
    return f"forward in training mode{exact} raised"


@torch.no_grad()
def _try_metrics(task: TrainingTask, test: EvaluationSet) -> None:
    """Compute the user's metrics. Raises DataError if one raises, or returns no number."""
    x, _ = _batch(test.x, test.y)
    flat = torch.from_numpy(initial(task.model, task.seed))
    tensors = views(task.model, flat)
    few = scores(task.model, tensors, forward(task.model, tensors, x))
    y = torch.from_numpy(test.y)
    kind = kind_of(task.model, y)
    every = few[torch.arange(len(y)) % len(few)]
    for spec in _own_metrics(task):
        _check_pairs(_tried_metric(spec, kind), few, test.y)
        refuse_memory(_tried_metric(spec, kind), every, y)


def _try_at_a_client(task: TrainingTask, test: EvaluationSet) -> None:
    """Compute the user's metrics as at the client that holds out the fewest labels. Raises DataError if one raises."""
    assert task.holdout is not None
    held = ((client, task.holdout.of(client)) for client in range(len(task.workloads)))
    some = ((len(np.unique(test.y[rows])), len(rows), client) for client, rows in held if len(rows))
    if (least := min(some, default=None)) is None:
        return
    labels, count, client = least
    evaluator = ModelEvaluator(task.model, test, metrics=_own_metrics(task))
    try:
        evaluator.evaluate(initial(task.model, task.seed), task.holdout.of(client))
    except DataError as error:
        raise DataError(
            f"{error}; so it is at client {client}, which is evaluated on {count:,} test samples with {labels:,} labels"
            " (accepted: a number, such as NaN, for any labels)"
        ) from error

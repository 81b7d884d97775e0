"""Which engine takes local steps: they differ in the last place, so a run uses one of them throughout.

fused        many clients at once, stacks of dense layers, by hand
span         the same for short trips: the first layer stays in the span of the samples seen
chain        one client after the other, convolutions and dense layers, by hand; a large dense layer is shared
sequential   one client after the other, anything: the reference
cohort       many clients at once, anything, under vmap: for a GPU
graphed      many clients at once on a GPU, steps recorded as CUDA graphs
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fedactors.engines import (
    conv_batches,
    conv_model,
    conv_sequential,
    cuda_graph,
    dense_batched,
    dense_gram,
    sequential,
    vmap,
)
from fedactors.engines.base import BatchPlan, DeviceDataset, Train
from fedactors.engines.cuda_graph import CudaGraphEngine
from fedactors.learning.chunks import CACHED
from fedactors.learning.training_task import TrainingTask
from fedactors.models.layers import Model
from fedactors.optim.client_optimizers import SGD

_ROWS = 100  # of chunks that are trained together
_SPANNED = 20  # the same, for `span`
_PREPARED = 2**24  # parameters of rows that `chain` is given and prepares at once


def engine(model: Model, device: str, *, two_losses: bool = False) -> Train:
    """Return the engine that trains `model` by plain SGD on a device type, with `two_losses` in each step if asked.

    The choice looks at these alone, never at a chunk: engines differ in the last place, so a run uses one of them
    throughout. On a CPU, convolutions gain nothing from company; see `chain` for what does.
    """
    if device == "cuda":
        return CudaGraphEngine() if cuda_graph.can(model) and not two_losses else vmap.train
    if two_losses:
        return sequential.train
    return (
        dense_batched.train
        if dense_batched.can(model)
        else conv_sequential.train
        if conv_model.can(model)
        else sequential.train
    )


def engine_of(task: TrainingTask, device: str) -> Train:
    """Return the engine for the clients of a lesson.

    That is `engine`, unless the span of the first layer is quicker, or the optimiser has a state: steps that move one
    are not recorded.
    """
    two_losses = task.algorithm.centre == "at clients"
    if spans(task, device):
        return dense_gram.train
    if not _sgd(task) and device == "cuda":
        return dense_batched.train if dense_batched.can(task.model) and not two_losses else vmap.train
    if not _sgd(task) and conv_model.can(task.model):
        return sequential.train
    return engine(task.model, device, two_losses=two_losses)


def spans(task: TrainingTask, device: str) -> bool:
    """Whether clients are trained by `span`: on a CPU, where nothing but the gradient moves them and it pays."""
    algorithm = task.algorithm
    plain = _sgd(task) and not algorithm.corrects and algorithm.loss_weight == 1.0
    return plain and device == "cpu" and dense_gram.pays(task.model, task.workloads)


def prepare_of(train: Train) -> Callable[[DeviceDataset, BatchPlan], Any] | None:
    """Return what an engine can do for trips before models are known, if there is anything; see `Rows.ready`."""
    prepares: dict[Train, Callable[[DeviceDataset, BatchPlan], Any]] = {
        dense_batched.train: dense_batched.prepare,
        dense_gram.train: dense_gram.prepare,
        conv_sequential.train: conv_batches.prepare,
    }
    return prepares.get(train)


def adds_up(task: TrainingTask, device: str) -> bool:
    """Whether the engine for the clients of a lesson can add updates up by itself; see `UpdateSums`."""
    return engine_of(task, device) in (dense_gram.train, conv_sequential.train)


def rows_at_once(task: TrainingTask, device: str) -> int:
    """Return how many rows of several chunks are trained at once; 0 where each chunk is trained by itself.

    A call costs nearly as much for few rows as for many, and what is trained together is prepared together. Only rows
    that do not know of one another may: see `MicroBatching`. What clients keep comes and goes a chunk at a time.
    """
    if device != "cpu" or task.algorithm.keeps or not _sgd(task):
        return 0
    if spans(task, device):
        return _SPANNED
    train, parameters = engine_of(task, device), task.model.parameters
    if train is conv_sequential.train:
        return min(_ROWS, _PREPARED // parameters)
    return min(_ROWS, CACHED // parameters) if train is dense_batched.train else 0


def _sgd(task: TrainingTask) -> bool:
    return isinstance(task.algorithm.optimizer(task.setting), SGD)

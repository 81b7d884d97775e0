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

from fedactors.learning import chain, chain_batches, chain_trip, cohort, fused, graphed, sequential, span
from fedactors.learning.chunks import CACHED
from fedactors.learning.graphed import Graphed
from fedactors.learning.layers import Model
from fedactors.learning.lesson import Lesson
from fedactors.learning.optimizers import SGD
from fedactors.learning.resident import Resident, Train, Trips

_ROWS = 100  # of chunks that are trained together
_SPANNED = 20  # the same, for `span`
_PREPARED = 2**24  # parameters of rows that `chain` is given and prepares at once


def engine(model: Model, device: str, *, two_losses: bool = False) -> Train:
    """Return the engine that trains `model` by plain SGD on a device type, with `two_losses` in each step if asked.

    The choice looks at these alone, never at a chunk: engines differ in the last place, so a run uses one of them
    throughout. On a CPU, convolutions gain nothing from company; see `chain` for what does.
    """
    if device == "cuda":
        return Graphed() if graphed.can(model) and not two_losses else cohort.train
    if two_losses:
        return sequential.train
    return fused.train if fused.can(model) else chain.train if chain_trip.can(model) else sequential.train


def engine_of(lesson: Lesson, device: str) -> Train:
    """Return the engine for the clients of a lesson.

    That is `engine`, unless the span of the first layer is quicker, or the optimiser has a state: steps that move one
    are not recorded.
    """
    two_losses = lesson.algorithm.centre == "at clients"
    if spans(lesson, device):
        return span.train
    if not _sgd(lesson) and device == "cuda":
        return fused.train if fused.can(lesson.model) and not two_losses else cohort.train
    if not _sgd(lesson) and chain_trip.can(lesson.model):
        return sequential.train
    return engine(lesson.model, device, two_losses=two_losses)


def spans(lesson: Lesson, device: str) -> bool:
    """Whether clients are trained by `span`: on a CPU, where nothing but the gradient moves them and it pays."""
    algorithm = lesson.algorithm
    plain = _sgd(lesson) and not algorithm.corrects and algorithm.loss_weight == 1.0
    return plain and device == "cpu" and span.pays(lesson.model, lesson.workloads)


def prepare_of(train: Train) -> Callable[[Resident, Trips], Any] | None:
    """Return what an engine can do for trips before models are known, if there is anything; see `Rows.ready`."""
    prepares: dict[Train, Callable[[Resident, Trips], Any]] = {
        fused.train: fused.prepare,
        span.train: span.prepare,
        chain.train: chain_batches.prepare,
    }
    return prepares.get(train)


def adds_up(lesson: Lesson, device: str) -> bool:
    """Whether the engine for the clients of a lesson can add updates up by itself; see `Total`."""
    return engine_of(lesson, device) in (span.train, chain.train)


def rows_at_once(lesson: Lesson, device: str) -> int:
    """Return how many rows of several chunks are trained at once; 0 where each chunk is trained by itself.

    A call costs nearly as much for few rows as for many, and what is trained together is prepared together. Only rows
    that do not know of one another may: see `Fitting`. What clients keep comes and goes a chunk at a time.
    """
    if device != "cpu" or lesson.algorithm.keeps or not _sgd(lesson):
        return 0
    if spans(lesson, device):
        return _SPANNED
    train, parameters = engine_of(lesson, device), lesson.model.parameters
    if train is chain.train:
        return min(_ROWS, _PREPARED // parameters)
    return min(_ROWS, CACHED // parameters) if train is fused.train else 0


def _sgd(lesson: Lesson) -> bool:
    return isinstance(lesson.algorithm.optimizer(lesson.setting), SGD)

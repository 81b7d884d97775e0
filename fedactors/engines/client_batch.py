"""The data of a host on its device, and the trips that an engine trains in one call: the rows of a `ClientBatch`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedactors.clip import Clip
from fedactors.engines.added_loss import AddedLoss
from fedactors.models.layers import Model
from fedactors.models.losses import mean_loss
from fedactors.models.torch_modules import given_tensors
from fedactors.optim.client_optimizers import PLAIN, Optimizer
from fedactors.workload import Workload

NO_STATE: Mapping[str, Tensor] = MappingProxyType({})


@dataclass(frozen=True)
class DeviceDataset:
    """A host's samples on its device: moved once, gathered by index for every batch."""

    model: Model
    x: Tensor  # (n, *shape)
    y: Tensor  # (n,)
    cache: Any = None
    """What the engine keeps of the samples from trip to trip; made by `Engine.dataset`, read by that engine only."""
    weights: Tensor | None = None
    """How much each sample counts in its batch, (n,); only under losses that a scenario describes."""

    def counted(self, chosen: Tensor, weights: Tensor) -> Tensor:
        """Return `weights` of the samples `chosen`, (..., batch), by how much each counts; they sum to 1 again."""
        if self.weights is None:
            return weights
        products = weights * self.weights[chosen]
        return products / products.sum(-1, keepdim=True).clamp(min=1e-12)

    @property
    def device(self) -> str:
        """The device type, "cpu" or "cuda"."""
        return self.x.device.type


def second_key(key: Tensor) -> Tensor:
    """Return the key of the dropout masks under a second loss, for the `key` of those under the first; int64."""
    return ~key


@dataclass(frozen=True)
class SecondLoss:
    """A second loss in every step, on samples that clients were sent besides their model.

    The model is in training, as under the first loss; its dropout masks are others. Buffers are those that the client's
    own batch leaves.
    """

    dataset: DeviceDataset  # its model says which loss
    samples: Tensor  # (rows, steps, batch): indices of the samples of each step
    weight: float

    @property
    def terms(self) -> tuple[Model, float]:
        """The model with the loss, and the weight."""
        return self.dataset.model, self.weight

    def batches(self, rows: int, step: int) -> tuple[Tensor, Tensor]:
        """Return the samples and labels of one step of the first `rows` rows, each with a row axis."""
        chosen = self.samples[:rows, step]
        return self.dataset.x[chosen], self.dataset.y[chosen]

    def loss(self, tensors: Sequence[Tensor], row: int, step: int, key: Tensor) -> Tensor:
        """Return the weighted mean loss of one step of a row, whose dropout masks have a `key`."""
        chosen = self.samples[row, step]
        x, y = self.dataset.x[chosen], self.dataset.y[chosen]
        with given_tensors():
            return mean_loss(self.dataset.model, tensors, x, y, second_key(key), step) * self.weight


class PhaseStep(NamedTuple):
    """A step of rows in which some of the values move."""

    moving: Tensor  # (rows, parameters) bool, or (parameters,) for one row
    number: Tensor  # (rows, 1) or (1,), float64: of the step in its phase, from 1

    def part(self, vectors: Tensor) -> Tensor:
        """Return vectors with zeros where nothing moves."""
        return torch.where(self.moving, vectors, 0.0)


class Phases(NamedTuple):
    """Which values of a model move when: its personal part in the first steps of a trip, all others in further ones."""

    personal: Tensor  # (parameters,) bool
    steps: Tensor  # (rows, 1) of the first phase, or (1,) for one row

    def step(self, number: int, rows: slice) -> PhaseStep:
        """Return step `number` of a trip, from 1, of `rows`."""
        steps = self.steps[rows] if self.steps.dim() == 2 else self.steps
        first = number <= steps
        return PhaseStep(first == self.personal, torch.where(first, number, number - steps).double())

    def take(self, rows: Tensor) -> Phases:
        """Return those of these rows."""
        return self._replace(steps=self.steps[rows])


@dataclass(frozen=True)
class UpdateSums:
    """Weighted sums of updates, one for each chunk, for engines that add updates up without writing them out."""

    sums: dict[int, Tensor]  # by chunk, (parameters,): each begins where memory is aligned
    weights: Sequence[float]  # of each row
    places: Sequence[int]  # of each row in the order of adding

    def of(self, chunk: int, parameters: int) -> Tensor:
        """Return the sum of a chunk; zeros at first."""
        if chunk not in self.sums:
            self.sums[chunk] = torch.zeros(parameters)
        return self.sums[chunk]

    def take(self, rows: Sequence[int]) -> UpdateSums:
        """Return the same sums for these rows, in this order; they are still added in the order of their places."""
        return UpdateSums(self.sums, [self.weights[row] for row in rows], [self.places[row] for row in rows])


@dataclass(frozen=True)
class BatchPlan:
    """What is fixed of the trips of a chunk before the models arrive that they start from; one of each for every row.

    Enough for `Engine.prepare`.
    """

    clients: Sequence[int]
    steps: Sequence[int]
    works: Sequence[Workload]
    order: Sequence[NDArray[np.int64]]  # samples of all steps
    keys: Tensor  # (rows,) int64: names each row's dropout masks

    @property
    def longest_first(self) -> bool:
        """Whether no trip has more steps than the one before it, and the first one has any."""
        return bool(self.steps) and self.steps[0] > 0 and all(one >= other for one, other in pairwise(self.steps))


@dataclass(frozen=True)
class ClientBatch(BatchPlan):
    """The trips that an engine trains in one call, as rows.

    An engine must follow `starts`, `corrections`, `prox`, `lr` and `weight`; and `optimizer`, `state`, `clip`,
    `phases`, `second_loss` and `added_loss` where it supports them. The last four fields help engines that can use
    them: an engine may ignore `chunks`, `model_indices` and `prepared`, and `sums` is set only for engines with
    `sums_updates`.
    """

    starts: Tensor  # (rows, parameters): stride 0 along the rows where all start from one model
    corrections: Tensor | None  # (rows, parameters): added to every gradient
    prox: Tensor | float  # (rows, 1) where it is not the same for all
    lr: float
    optimizer: Optimizer = PLAIN
    state: Mapping[str, Tensor] = field(default_factory=lambda: NO_STATE)
    """Of the optimiser at the start of each trip, (rows, parameters)."""
    clip: Clip | None = None
    """Of the gradient of the loss, before corrections and the pull of `prox` are added to it."""
    phases: Phases | None = None
    """Which values move in which step; None if all of them do in all steps."""
    weight: float = 1.0
    """Of the loss: multiplies every gradient."""
    second_loss: SecondLoss | None = None
    added_loss: AddedLoss | None = None
    """What is added to the loss of each sample; set only for engines with `takes_added_loss`."""
    chunks: Sequence[int] = ()
    """Number of the chunk that each row belongs to; empty where all rows belong to one chunk."""
    model_indices: Sequence[int] = ()
    """Number of the model that each row starts from; empty where all rows start from one model."""
    sums_gradients: bool = False
    """Whether `BatchResult.gradients` is wanted; only for engines with `sums_gradients`, and with plain SGD."""
    sums: UpdateSums | None = None
    """Where the engine adds the updates up; it then returns no updates of single rows."""
    prepared: list[Any] = field(default_factory=list)
    """One object, the result of `Engine.prepare` for exactly these rows, or nothing. Emptied where memory lacks."""

    @property
    def plain_sgd(self) -> bool:
        """Whether steps are y <- y - lr g, without state, penalty, clipping or phases."""
        return self.optimizer.plain and self.clip is None and self.phases is None

    @property
    def pulled(self) -> bool:
        """Whether any row is pulled towards its start."""
        return isinstance(self.prox, Tensor) or bool(self.prox)

    def pull_of(self, row: int) -> float:
        """Return the `prox` of one row."""
        return float(self.prox[row]) if isinstance(self.prox, Tensor) else self.prox

    def first_step(self) -> ClientBatch:
        """Return the first step of each trip, with the rate 1, along the gradient of the model's loss as it is.

        The gradient is clipped, and has the penalty of plain SGD, as in the trip; an optimiser that does not follow it
        is left out.
        """
        sgd = self.optimizer if self.optimizer.follows_gradient else PLAIN
        alone = replace(self, corrections=None, prox=0.0, optimizer=sgd, state=NO_STATE, weight=1.0, second_loss=None)
        steps = [min(1, steps) for steps in self.steps]
        return replace(alone, added_loss=None, phases=None, sums_gradients=False, steps=steps, lr=1.0, prepared=[])

    def take(self, rows: Sequence[int]) -> ClientBatch:
        """Return these rows, in this order; nothing is prepared for them."""
        chosen = torch.tensor(rows, device=self.starts.device)
        second = self.second_loss
        columns: dict[str, Any] = {name: _picked(getattr(self, name), rows) for name in _COLUMNS}
        return replace(
            self,
            **columns,
            keys=self.keys[chosen],
            starts=_reordered(self.starts, chosen),
            corrections=None if self.corrections is None else self.corrections[chosen],
            prox=self.prox[chosen] if isinstance(self.prox, Tensor) else self.prox,
            state={name: _reordered(vectors, chosen) for name, vectors in self.state.items()},
            phases=None if self.phases is None else self.phases.take(chosen),
            second_loss=None if second is None else replace(second, samples=second.samples[chosen]),
            added_loss=None if self.added_loss is None else self.added_loss.take(chosen),
            sums=None if self.sums is None else self.sums.take(rows),
            prepared=[],
        )


_COLUMNS = ("clients", "steps", "works", "order", "chunks", "model_indices")  # one entry for each row, or empty


def _picked(column: Sequence[Any], rows: Sequence[int]) -> Sequence[Any]:
    """Return the entries of these rows; of an empty column, none."""
    return [column[row] for row in rows] if len(column) else column


def _reordered(rows: Tensor, chosen: Tensor) -> Tensor:
    """Return `rows[chosen]`; one vector that stands for all rows stays one in memory."""
    return rows[: len(chosen)] if rows.stride(0) == 0 else rows[chosen]


class BatchResult(NamedTuple):
    """What the trips of a `ClientBatch` gave."""

    deltas: Tensor  # (rows, parameters): y - x; (rows, 0) where they were added up
    losses: Tensor  # (rows, steps), 0 where no step was taken
    state: Mapping[str, Tensor]  # of the optimiser at the end of each trip, (rows, parameters)
    gradients: Tensor | None = None  # (rows, parameters): of each row's steps, the sum of the loss's; if it was wanted

    def take(self, rows: Tensor) -> BatchResult:
        """Return the results of these rows, in this order."""
        state = {name: vectors[rows] for name, vectors in self.state.items()}
        gradients = None if self.gradients is None else self.gradients[rows]
        return BatchResult(self.deltas[rows], self.losses[rows], state, gradients)

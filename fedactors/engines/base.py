"""The data of a host on its device, and the rows of a chunk ready to be trained there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedactors.engines.grams import Grams
from fedactors.models.layers import Model
from fedactors.models.losses import mean_loss
from fedactors.optim.client_optimizers import PLAIN, Optimizer
from fedactors.workload import Workload

NO_STATE: Mapping[str, Tensor] = MappingProxyType({})


@dataclass(frozen=True)
class DeviceDataset:
    """A host's samples on its device; moved once, gathered by index for every batch."""

    model: Model
    x: Tensor  # (n, *shape)
    y: Tensor  # (n,)
    grams: Grams | None = None  # of its clients, where the engine wants them and they do not change


@dataclass(frozen=True)
class SecondLoss:
    """A second loss in every step, on samples of its own: what clients were sent besides their model."""

    dataset: DeviceDataset  # whose model names the loss
    samples: Tensor  # (rows, steps, batch): which of them each step sees
    weight: float

    @property
    def terms(self) -> tuple[Model, float]:
        """The loss and its weight."""
        return self.dataset.model, self.weight

    def batches(self, rows: int, step: int) -> tuple[Tensor, Tensor]:
        """Return the samples and labels of one step of the first `rows` rows, each with a row axis."""
        chosen = self.samples[:rows, step]
        return self.dataset.x[chosen], self.dataset.y[chosen]

    def loss(self, tensors: Sequence[Tensor], row: int, step: int) -> Tensor:
        """Return the weighted mean loss of one step of a row."""
        chosen = self.samples[row, step]
        return mean_loss(self.dataset.model, tensors, self.dataset.x[chosen], self.dataset.y[chosen]) * self.weight


@dataclass(frozen=True)
class UpdateSums:
    """Where updates are added up, where nobody wants to see that of a single row."""

    sums: dict[int, Tensor]  # by part, (parameters,): each begins where memory is aligned
    weights: Sequence[float]  # of each row
    places: Sequence[int]  # in the order of adding

    def of(self, part: int, parameters: int) -> Tensor:
        """Return the sum of a part; zeros at first."""
        if part not in self.sums:
            self.sums[part] = torch.zeros(parameters)
        return self.sums[part]

    def take(self, rows: Sequence[int]) -> UpdateSums:
        """Return the same for these rows, in this order; they are still added in the order of their places."""
        return UpdateSums(self.sums, [self.weights[row] for row in rows], [self.places[row] for row in rows])


@dataclass(frozen=True)
class BatchPlan:
    """What is known of the trips of a chunk before the models are that they start from; one of each for every row."""

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
    """The trips of a chunk as rows."""

    starts: Tensor  # (rows, parameters)
    corrections: Tensor | None  # (rows, parameters)
    prox: float
    lr: float
    optimizer: Optimizer = PLAIN
    state: Mapping[str, Tensor] = field(default_factory=lambda: NO_STATE)
    """Of the optimiser at the start of each trip, (rows, parameters)."""
    parts: Sequence[int] = ()  # to which of several chunks each row belongs; nothing if there is one
    bases: Sequence[int] = ()  # from which of several models each row starts; nothing if there is one
    weight: float = 1.0  # of the loss: multiplies every gradient
    beside: SecondLoss | None = None
    total: UpdateSums | None = None  # takes the place of the updates, if the engine is one that adds them up
    ready: list[Any] = field(default_factory=list)  # what the engine has prepared for just these trips, if it has

    def take(self, rows: Sequence[int]) -> ClientBatch:
        """Return these rows, in this order."""
        chosen = torch.tensor(rows, device=self.starts.device)
        return replace(
            self,
            clients=[self.clients[row] for row in rows],
            steps=[self.steps[row] for row in rows],
            works=[self.works[row] for row in rows],
            order=[self.order[row] for row in rows],
            keys=self.keys[chosen],
            starts=_reordered(self.starts, chosen),
            corrections=None if self.corrections is None else self.corrections[chosen],
            state={name: _reordered(vectors, chosen) for name, vectors in self.state.items()},
            parts=[self.parts[row] for row in rows] if self.parts else (),
            bases=[self.bases[row] for row in rows] if self.bases else (),
            beside=None if self.beside is None else replace(self.beside, samples=self.beside.samples[chosen]),
            total=None if self.total is None else self.total.take(rows),
            ready=[],
        )


def _reordered(rows: Tensor, chosen: Tensor) -> Tensor:
    """Return `rows[chosen]`; the same vector for all stays one in memory."""
    return rows[: len(chosen)] if rows.stride(0) == 0 else rows[chosen]


class BatchResult(NamedTuple):
    """What came of rows."""

    deltas: Tensor  # (rows, parameters): y - x; (rows, 0) where they were added up
    losses: Tensor  # (rows, steps), 0 where none was done
    state: Mapping[str, Tensor]  # of the optimiser at the end of each trip, (rows, parameters)


Train = Callable[[DeviceDataset, ClientBatch], BatchResult]


def longest_first(train: Train) -> Train:
    """Return `train` for rows in any order, when it wants those with most steps first.

    Rows that still move are then always the first ones: a step works on a shrinking prefix, and nobody computes a step
    that is thrown away.
    """

    def sorted_train(dataset: DeviceDataset, rows: ClientBatch) -> BatchResult:
        by_length = sorted(range(len(rows.clients)), key=lambda row: -rows.steps[row])
        if not rows.steps or not rows.steps[by_length[0]]:
            return BatchResult(torch.zeros_like(rows.starts), rows.starts.new_zeros(len(rows.clients), 0), rows.state)
        if rows.longest_first:
            return train(dataset, rows)
        deltas, losses, state = train(dataset, rows.take(by_length))
        back = torch.tensor(by_length, device=rows.starts.device).argsort()
        return BatchResult(deltas[back], losses[back], {name: vectors[back] for name, vectors in state.items()})

    return sorted_train

"""The data of a host on its device, and the rows of a chunk ready to be trained there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedactors.learning.layers import Model
from fedactors.workload import Workload


@dataclass(frozen=True)
class Resident:
    """A host's samples on its device; moved once, gathered by index for every batch."""

    model: Model
    x: Tensor  # (n, *shape)
    y: Tensor  # (n,)


@dataclass(frozen=True)
class Rows:
    """The trips of a chunk as rows."""

    clients: Sequence[int]
    steps: Sequence[int]
    works: Sequence[Workload]
    order: Sequence[NDArray[np.int64]]  # samples of all steps, one array per row
    keys: Tensor  # (rows,) int64: names each row's dropout masks
    starts: Tensor  # (rows, parameters)
    corrections: Tensor | None  # (rows, parameters)
    prox: float
    lr: float

    def take(self, rows: Sequence[int]) -> Rows:
        """Return these rows in another order."""
        chosen = torch.tensor(rows, device=self.starts.device)
        return Rows(
            [self.clients[row] for row in rows],
            [self.steps[row] for row in rows],
            [self.works[row] for row in rows],
            [self.order[row] for row in rows],
            self.keys[chosen],
            self.starts if self.starts.stride(0) == 0 else self.starts[chosen],
            None if self.corrections is None else self.corrections[chosen],
            self.prox,
            self.lr,
        )


Train = Callable[[Resident, Rows], tuple[Tensor, Tensor]]  # -> updates (clients, parameters), losses (clients, steps)


def longest_first(train: Train) -> Train:
    """Return `train` for rows in any order, when it wants those with most steps first.

    Rows that still move are then always the first ones: a step works on a shrinking prefix, and nobody computes a step
    that is thrown away.
    """

    def sorted_train(resident: Resident, rows: Rows) -> tuple[Tensor, Tensor]:
        by_length = sorted(range(len(rows.clients)), key=lambda row: -rows.steps[row])
        if not rows.steps or not rows.steps[by_length[0]]:
            return torch.zeros_like(rows.starts), rows.starts.new_zeros(len(rows.clients), 0)
        if by_length == list(range(len(by_length))):
            return train(resident, rows)
        deltas, losses = train(resident, rows.take(by_length))
        back = torch.tensor(by_length, device=rows.starts.device).argsort()
        return deltas[back], losses[back]

    return sorted_train

"""The data of a host on its device, and the rows of a chunk ready to be trained there."""

from __future__ import annotations

from collections.abc import Sequence
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
            self.starts[chosen],
            None if self.corrections is None else self.corrections[chosen],
            self.prox,
            self.lr,
        )

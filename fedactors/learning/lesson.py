"""What a host is given to compute: a chunk of trips, and everything about the task that does not change.

A chunk is a run of consecutive clients of one Plan. It names clients, steps and weights; the models it starts from
arrive beside it. All of it is plain numbers, so that it travels cheaply and looks the same in every process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedactors.learning.deal import Split
from fedactors.learning.layers import Model
from fedactors.workload import Workload

if TYPE_CHECKING:
    from fedactors.learning.algorithm import Algorithm

Vectors = dict[str, NDArray[np.float32]]  # named vectors of a model's size, as they travel between processes


class Chunk(NamedTuple):
    """Trips of one Plan that are computed together; columns run over the trips, ascending by client."""

    version: int  # of the Plan
    clients: tuple[int, ...]
    bases: tuple[int, ...]  # index into the models that come with the chunk
    trips: tuple[int, ...]  # version at which each trip began: names its random streams
    steps: tuple[int, ...]
    weights: tuple[float, ...]
    lr: float

    @property
    def cost(self) -> int:
        """Local steps in the chunk."""
        return sum(self.steps)


class Learned(NamedTuple):
    """What a chunk gives back: weighted sums over its trips, whatever their number."""

    sums: Vectors
    loss: float  # sum over local steps of the batch's mean loss
    bad: tuple[tuple[int, int], ...] = ()  # (client, first bad local step) of updates with NaN or Inf


@dataclass(frozen=True)
class Lesson:
    """The task as a host knows it."""

    model: Model
    algorithm: Algorithm
    seed: int
    workloads: tuple[Workload, ...]  # one per client


@dataclass(frozen=True)
class Samples:
    """Training samples and who holds them."""

    x: NDArray[np.float32]  # (n, *shape)
    y: NDArray[np.int64]  # (n,)
    split: Split

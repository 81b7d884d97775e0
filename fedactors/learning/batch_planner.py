"""The plan of a chunk's local steps before its models arrive: samples in their order, and names of dropout masks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedactors.data import batches
from fedactors.data.holdings import Holdings
from fedactors.data.partitions.reassignment import ReassignedSplit
from fedactors.engines.client_batch import BatchPlan
from fedactors.learning.training_task import Chunk, TrainingData, TrainingTask
from fedactors.models import dropout
from fedactors.streams import Purpose, Streams
from fedactors.workload import Workload


class BatchPlanner:
    """Makes the `BatchPlan` of chunks of one task, from the random streams of its clients."""

    def __init__(self, task: TrainingTask, samples: TrainingData, device: torch.device) -> None:
        self._task = task
        self._split = samples.split
        self._variants = samples.variants
        self._device = device
        self._draws_masks = task.model.draws_masks

    def plan(self, chunk: Chunk) -> BatchPlan:
        """Return the plan of all trips of `chunk`."""
        return BatchPlan(chunk.clients, chunk.steps, self.works(chunk), self._order(chunk), self._keys(chunk))

    def works(self, chunk: Chunk) -> list[Workload]:
        """Return the workload of each client of `chunk`."""
        return [self._task.workloads[client] for client in chunk.clients]

    def first_batch(self, client: int, version: int) -> NDArray[np.int64]:
        """Return the samples of the first local step of a trip that begins at `version`."""
        return self._drawn([client], [version], [self._split.of(client)], [1])[0]

    def samples(self, clients: Sequence[int]) -> list[NDArray[np.int64]]:
        """Return the samples that each of some clients holds."""
        return [self._split.of(client) for client in clients]

    def held(self, chunk: Chunk) -> list[NDArray[np.int64]]:
        """Return the samples that each client of `chunk` has in its round."""
        split = self._split
        held: Holdings = split.among(chunk.version, chunk.active) if isinstance(split, ReassignedSplit) else split
        return [held.of(client) for client in chunk.clients]

    def _order(self, chunk: Chunk) -> list[NDArray[np.int64]]:
        """Return the samples of all steps of each trip."""
        return self._drawn(chunk.clients, chunk.base_versions, self.held(chunk), chunk.steps)

    def _drawn(
        self, clients: Sequence[int], trips: Sequence[int], held: Sequence[NDArray[np.int64]], steps: Sequence[int]
    ) -> list[NDArray[np.int64]]:
        """Return the samples of the first `steps` of each trip, in the variants that it sees; clients have `held`."""
        works = [self._task.workloads[client] for client in clients]
        found = batches.sequences(self._task.seed, clients, trips, held, works, steps)
        if self._variants is None:
            return found
        draws = Streams(self._task.seed, Purpose.VARIANT)
        named = zip(clients, trips, found, strict=True)
        return [batches.varied(draws.of(client, trip), order, *self._variants) for client, trip, order in named]

    def _keys(self, chunk: Chunk) -> Tensor:
        if not self._draws_masks:
            return torch.zeros(len(chunk.clients), dtype=torch.int64, device=self._device)
        trips = zip(chunk.clients, chunk.base_versions, strict=True)
        return torch.tensor([dropout.key(self._task.seed, *trip) for trip in trips], device=self._device)

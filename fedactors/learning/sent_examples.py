"""Samples of the server that clients are sent besides their models, where an algorithm has them learn from these."""

from __future__ import annotations

import numpy as np
import torch

from fedactors.data import batches
from fedactors.engines.client_batch import SecondLoss
from fedactors.learning.device_samples import dataset_of
from fedactors.learning.training_task import Chunk, ServerExamples, TrainingTask
from fedactors.streams import Purpose
from fedactors.workload import workload


class SentExamples:
    """Central samples that clients are sent besides their models: batches of their own for every step."""

    def __init__(self, task: TrainingTask, central: ServerExamples, device: torch.device) -> None:
        self._dataset, self._seed = dataset_of(task.central_model, central.samples, device), task.seed
        self._replaced = task.setting.with_replacement
        self._batch, self._weight = min(central.batch, len(central.samples.y)), task.algorithm.central_share

    def to(self, chunk: Chunk) -> SecondLoss:
        """Return what the clients of `chunk` are sent."""
        held, longest = np.arange(len(self._dataset.y), dtype=np.int64), max(chunk.steps)
        replaced = self._replaced
        work = workload(
            len(held), self._batch, epochs=None, steps=longest, drop_last=not replaced, with_replacement=replaced
        )
        number = len(chunk.clients)
        same = ([held] * number, [work] * number, [longest] * number)
        order = batches.sequences(self._seed, chunk.clients, chunk.base_versions, *same, Purpose.CENTRAL_BATCH)
        samples = torch.from_numpy(np.stack(order).reshape(len(order), longest, self._batch))
        return SecondLoss(self._dataset, samples.to(self._dataset.x.device), self._weight)

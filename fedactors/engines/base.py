"""The interface of engines: the methods that each one has, and the properties that it declares.

An engine is one class in one file, and one line in `fedactors.registry`. `engine_choice` picks the first one that
suits a run; a scenario may name one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

import torch
from torch import Tensor

from fedactors.data.holdings import Holdings
from fedactors.data.partitions.assignment import contiguous
from fedactors.engines import batch_invariance
from fedactors.engines.batch_invariance import Trial
from fedactors.engines.client_batch import BatchPlan, BatchResult, ClientBatch, DeviceDataset
from fedactors.engines.local_work import LocalWork
from fedactors.models.layers import Conv, Model
from fedactors.workload import Workload


class Engine(ABC):
    """Takes the local steps of clients, in one process on one device; made without arguments, one for each user."""

    accepts: ClassVar[str]
    """What the engine supports, as a phrase for error messages."""
    sums_gradients: ClassVar[bool] = False
    """Whether the engine can also give the sum of each client's gradients, where steps are plain SGD."""
    sums_updates: ClassVar[bool] = False
    """Whether the engine adds updates up where `ClientBatch.sums` is given."""

    takes_added_loss: ClassVar[bool] = False
    """Whether the engine follows `ClientBatch.added_loss`; others are never used where there is such a loss."""

    @abstractmethod
    def supports(self, work: LocalWork, device: str) -> bool:
        """Whether the engine can take these steps on a device type, "cpu" or "cuda"."""

    def suits(self, work: LocalWork, device: str) -> bool:
        """Whether it is to be used where no engine is named; called only for work that it supports."""
        return True

    def dataset(self, model: Model, x: Tensor, y: Tensor, split: Holdings | None, work: LocalWork) -> DeviceDataset:
        """Return a host's samples for this engine, with what it keeps of them from trip to trip.

        `split` says which samples each client holds; None where that changes from round to round.
        """
        return DeviceDataset(model, x, y)

    def prepare(self, dataset: DeviceDataset, plan: BatchPlan) -> Any | None:
        """Return what can be worked out for trips before their models arrive, for `ClientBatch.prepared`; or None."""
        return None

    @abstractmethod
    def train(self, dataset: DeviceDataset, rows: ClientBatch) -> BatchResult:
        """Train all rows. Each row's result depends on that row alone, up to rounding."""

    def max_rows(self, dataset: DeviceDataset) -> int:
        """Return how many rows of several chunks are trained in one call; 0 where each chunk has a call of its own."""
        return 0

    def batch_invariant(
        self, work: LocalWork, dataset: DeviceDataset, workload: Workload, steps: int | None = None
    ) -> bool:
        """Whether a row has the same bits whichever rows are trained with it, found out by trying on this processor.

        Rows of random samples do what `workload` asks for, or its first steps; so many `steps` if that is known to be
        the longest trip of the rows. Tried once in a process.
        """
        trial = Trial(
            replace(work, workloads=(workload,)),
            max_rows=self.max_rows(dataset),
            x_shape=tuple(dataset.x.shape[1:]),
            y_shape=tuple(dataset.y.shape[1:]),
            has_cache=dataset.cache is not None,
            threads=torch.get_num_threads(),
            steps=steps,
        )
        return _batch_invariant(type(self), trial)

    def parts_keep_bits(self, work: LocalWork, dataset: DeviceDataset, workload: Workload) -> bool:
        """Whether rows that do `workload`, trained in parts for lack of memory, have the bits that they have together.

        Optimisers other than SGD work on all rows at once, some elements in vectors and the rest alone, which round
        differently. Convolutions of many clients are one grouped convolution, whose kernel depends on their number. No
        GPU has been tried, and no loss that an algorithm adds.
        """
        untried = dataset.x.is_cuda or work.added_loss is not None
        together = any(isinstance(layer, Conv) for layer in work.model.layers)
        return work.plain_sgd and not untried and not together and self.batch_invariant(work, dataset, workload)


class LongestFirstEngine(Engine):
    """Base of engines that need the rows with most steps first.

    Rows that still move are then always the first ones: a step works on a shrinking prefix, and no step is computed
    that is not used.
    """

    def train(self, dataset: DeviceDataset, rows: ClientBatch) -> BatchResult:
        """Train all rows, in any order."""
        by_length = sorted(range(len(rows.clients)), key=lambda row: -rows.steps[row])
        if not rows.steps or not rows.steps[by_length[0]]:
            losses = rows.starts.new_zeros(len(rows.clients), 0)
            nothing = torch.zeros_like(rows.starts)
            return BatchResult(nothing, losses, rows.state, nothing if rows.sums_gradients else None)
        if rows.longest_first:
            return self.train_sorted(dataset, rows)
        found = self.train_sorted(dataset, rows.take(by_length))
        return found.take(torch.tensor(by_length, device=rows.starts.device).argsort())

    @abstractmethod
    def train_sorted(self, dataset: DeviceDataset, rows: ClientBatch) -> BatchResult:
        """Train all rows; no row has more steps than the one before it, and the first one has at least one."""


@lru_cache(maxsize=256)
def _batch_invariant(kind: type[Engine], trial: Trial) -> bool:
    probe = batch_invariance.probe(trial)
    if probe is None:
        return True
    engine = kind()
    split = contiguous(probe.sizes) if trial.has_cache else None
    dataset = engine.dataset(trial.work.model, probe.x, probe.y, split, trial.work)
    return batch_invariance.equal_bits(engine.train, dataset, probe)

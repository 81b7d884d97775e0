"""The server as a learner: its own data D_0 on its device, and local steps on them by the clients' engine.

Source: FSL journal, Algorithm 1, where the server continues from the aggregate; other algorithms use the same steps
before the first round (pretraining) or beside the clients (mixed federated learning). The server is one row of the
engine that trains clients.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedactors.data import batches
from fedactors.data.base import LabelledSamples
from fedactors.engines.client_batch import ClientBatch
from fedactors.engines.engine_choice import choose
from fedactors.engines.full_gradient import full_gradient, training_gradient
from fedactors.engines.local_work import LocalWork
from fedactors.learning.device_samples import dataset_of
from fedactors.models import dropout
from fedactors.models.layers import Model
from fedactors.models.precision import rounding
from fedactors.optim.server_optimizers import ServerOptimizer
from fedactors.streams import Purpose
from fedactors.workload import Workload

_ROUNDS = -1  # entities of random streams; clients are 0, 1, …
_BEFORE = -2


class CentralLearner:
    """Learns from `samples` on one device. Without data it leaves models as they are.

    Local steps are taken in a context that `around` returns: for measuring when they are taken.
    """

    def __init__(
        self,
        model: Model,
        seed: int,
        samples: LabelledSamples,
        device: str = "cpu",
        around: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._seed = seed
        self._device = torch.device(device)
        self._around = around
        self._dataset = dataset_of(model, samples, self._device)
        # corrections come and go from call to call, so the engine must be one that takes them
        self._engine = choose(LocalWork(model, corrects=True), device)

    def learn(
        self,
        x: Tensor,
        lr: float,
        work: Workload,
        version: int,
        *,
        weight: float = 1.0,
        correction: Tensor | None = None,
        optimizer: ServerOptimizer | None = None,
    ) -> Tensor:
        """Return LocalSGD(x, lr, K_0, D_0).y with the batches of round `version`; see `CentralData`."""
        if optimizer is None or not work.wanted:
            return self._descend(x, lr, work, _ROUNDS, version, weight, correction)[0]
        slots = optimizer.start(x)
        key = self._key(_ROUNDS, version)
        for step, rows in enumerate(self._batches(work, version, work.wanted)):
            gradient, written = self._trained(rows, x, key, step)
            gradient = weight * gradient
            x, slots = optimizer.step(x, gradient if correction is None else gradient + correction, slots)
            if len(written):
                x = torch.cat([x[: -len(written)], written])
        return x

    def learn_and_sum(
        self, x: Tensor, lr: float, work: Workload, version: int, *, weight: float, correction: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return what `learn` does, and the sum of its steps' weighted gradients, without the correction."""
        return self._descend(x, lr, work, _ROUNDS, version, weight, correction)

    def sample(self, x: Tensor, work: Workload, version: int) -> Tensor:
        """Return the gradient at x along which the first step of round `version` goes, `(parameters,)`.

        The model is in training: dropout with the masks of that step, BatchNorm by the statistics of the batch.
        """
        return self._trained(self._batches(work, version, 1)[0], x, self._key(_ROUNDS, version), 0)[0]

    def pretrain(self, x: Tensor, lr: float, work: Workload) -> Tensor:
        """Return LocalSGD(x, lr, K, D_0).y with batches of its own, before any round."""
        return self._descend(x, lr, work, _BEFORE, 0)[0]

    def train_alone(self, x: Tensor, lr: float, work: Workload, client: int, number: int) -> Tensor:
        """Return the model of `client`, which holds these data, after round `number` of training alone, from x."""
        return self._descend(x, lr, work, client, number, purpose=Purpose.LOCAL_OPTIMUM)[0]

    def fine_tune(self, x: Tensor, lr: float, work: Workload, client: int, version: int) -> Tensor:
        """Return the model of `client`, which holds these data, after steps of its own before an evaluation."""
        return self._descend(x, lr, work, client, version, purpose=Purpose.FINE_TUNING)[0]

    def gradient(self, x: Tensor) -> Tensor:
        """Return the gradient of the mean loss over all of D_0 at x, `(parameters,)`; dropout is off."""
        return self._gradient(torch.arange(len(self._dataset.y)), x)

    def first_batch_gradient(self, x: Tensor, work: Workload, version: int) -> Tensor:
        """Return what `gradient` does over the first batch of round `version`."""
        return self._gradient(self._batches(work, version, 1)[0], x)

    def _gradient(self, rows: Tensor, x: Tensor) -> Tensor:
        return full_gradient(self._dataset, rows, x.to(self._device)).to(x.device)

    def _trained(self, rows: Tensor, x: Tensor, key: Tensor, step: int) -> tuple[Tensor, Tensor]:
        """Return the gradient at x of a step of training, and the values of the buffers after it, `(values,)`."""
        if not self._dataset.model.draws_masks:
            return self._gradient(rows, x), x[:0]
        found, buffers = training_gradient(self._dataset, rows, x.to(self._device), key[0], step)
        written = torch.cat([found[:0], *(buffer.flatten() for buffer in buffers)])
        return found.to(x.device), written.to(x.device)

    def _key(self, entity: int, version: int) -> Tensor:
        """Return what names the dropout masks of a round, (1,)."""
        return torch.tensor([dropout.key(self._seed, entity, version)], device=self._device)

    def _batches(self, work: Workload, version: int, steps: int) -> list[Tensor]:
        """Return the samples of the first `steps` steps of a round, one tensor for each."""
        order = torch.from_numpy(self._order(work, _ROUNDS, version, steps))
        return [order[first:last] for first, last in batches.bounds(work, steps)]

    def _order(
        self, work: Workload, entity: int, version: int, steps: int, purpose: Purpose = Purpose.SERVER_BATCH
    ) -> NDArray[np.int64]:
        held = np.arange(len(self._dataset.y), dtype=np.int64)
        return batches.sequence(self._seed, entity, version, held, work, steps, purpose)

    def _descend(
        self,
        x: Tensor,
        lr: float,
        work: Workload,
        entity: int,
        version: int,
        weight: float = 1.0,
        correction: Tensor | None = None,
        purpose: Purpose = Purpose.SERVER_BATCH,
    ) -> tuple[Tensor, Tensor]:
        """Take `work.wanted` steps; return the model and the sum of the steps' gradients, where a correction is given.

        The model is x itself, bit for bit, if there is nothing to do.
        """
        with self._around():
            if not work.wanted or not lr:
                return x, torch.zeros_like(x)
            return self._steps(x, lr, work, entity, version, weight, correction, purpose)

    def _steps(
        self,
        x: Tensor,
        lr: float,
        work: Workload,
        entity: int,
        version: int,
        weight: float,
        correction: Tensor | None,
        purpose: Purpose,
    ) -> tuple[Tensor, Tensor]:
        order = self._order(work, entity, version, work.wanted, purpose)
        key = self._key(entity, version)
        start = x.to(self._device)[None]
        along = None if correction is None else correction.to(self._device)[None]
        row = ClientBatch(
            clients=(entity,),
            steps=(work.wanted,),
            works=(work,),
            order=(order,),
            keys=key,
            starts=start,
            corrections=along,
            prox=0.0,
            lr=lr,
            weight=weight,
            sums_gradients=along is not None,
        )
        with rounding(self._dataset.model.precision, self._dataset.device):
            found = self._engine.train(self._dataset, row)
        total = torch.zeros_like(x) if found.gradients is None else found.gradients[0]
        return (start[0] + found.deltas[0]).to(x.device), total.to(x.device)

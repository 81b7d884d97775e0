"""The server as a learner: its own data D_0 on its device, and local steps on them by the clients' engine.

Source: FSL journal, Algorithm 1, where the server continues from the aggregate; other algorithms use the same steps
before the first round (pretraining) or beside the clients. The server is one row of the engine that trains clients.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedactors.learning import batches, dropout
from fedactors.learning.full_gradient import full_gradient
from fedactors.learning.layers import Model
from fedactors.learning.resident import Resident, Rows
from fedactors.learning.trainer import engine
from fedactors.streams import Purpose
from fedactors.workload import Workload

_ROUNDS, _BEFORE = -1, -2  # entities of random streams; clients are 0, 1, …


class CentralLearner:
    """Learns from (x, y), `(n_0, *shape)` and `(n_0,)`, on one device. Without data it leaves models as they are."""

    def __init__(
        self, model: Model, seed: int, x: NDArray[np.float32], y: NDArray[np.int64], device: str = "cpu"
    ) -> None:
        self._seed, self._device = seed, torch.device(device)
        self._resident = Resident(model, torch.from_numpy(x).to(device), torch.from_numpy(y).to(device))
        self._train = engine(model, device)

    def learn(self, x: Tensor, lr: float, work: Workload, version: int) -> Tensor:
        """Return LocalSGD(x, lr, K_0, D_0).y with the batches of round `version`."""
        return self._descend(x, lr, work, _ROUNDS, version)

    def pretrain(self, x: Tensor, lr: float, work: Workload) -> Tensor:
        """Return LocalSGD(x, lr, K, D_0).y with batches of its own, before any round."""
        return self._descend(x, lr, work, _BEFORE, 0)

    def gradient(self, x: Tensor) -> Tensor:
        """Return the gradient of the mean loss over all of D_0 at x, `(parameters,)`; dropout is off."""
        return full_gradient(self._resident, torch.arange(len(self._resident.y)), x.to(self._device)).to(x.device)

    def _descend(self, x: Tensor, lr: float, work: Workload, entity: int, version: int) -> Tensor:
        """Take `work.wanted` steps; x itself, bit for bit, if there is nothing to do."""
        if not work.wanted or not lr:
            return x
        held = np.arange(len(self._resident.y), dtype=np.int64)
        order = batches.sequence(self._seed, entity, version, held, work, work.wanted, Purpose.SERVER_BATCH)
        key = torch.tensor([dropout.key(self._seed, entity, version)], device=self._device)
        start = x.to(self._device)[None]
        row = Rows((entity,), (work.wanted,), (work,), (order,), key, start, None, 0.0, lr)
        return (start[0] + self._train(self._resident, row).deltas[0]).to(x.device)

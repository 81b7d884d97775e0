"""Fine-tuning before an evaluation: each client takes a few steps on its own data, from the model that it would use.

    v_i <- LocalSGD(x or what the client keeps, lr, K, D_i).y

Nothing of it is kept or sent. Batches come from a stream of their own, so that runs are as they are without it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from fedactors.learning.central_learner import CentralLearner
from fedactors.learning.training_task import TrainingData, TrainingTask
from fedactors.workload import FineTuning, workload


class FineTuner(NamedTuple):
    """Fine-tunes models at clients."""

    task: TrainingTask
    samples: TrainingData
    options: FineTuning

    def tuned(self, version: int, client: int, flat: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the model `flat`, `(parameters,)`, after the steps of a client; as it is where it has no data.

        `version` is that of the model before the round that is evaluated; it names the batches.
        """
        mine = self.samples.of(client)
        if not len(mine.y):
            return flat
        options = self.options
        work = workload(len(mine.y), options.batch, epochs=options.epochs, steps=options.steps)
        learner = CentralLearner(self.task.model, self.task.seed, mine)
        return learner.fine_tune(torch.from_numpy(flat), options.lr, work, client, version).numpy()


def tuner_of(task: TrainingTask, samples: TrainingData | None) -> FineTuner | None:
    """Return what fine-tunes models in a run; None if nothing does."""
    fine = task.fine_tuning
    return None if fine is None or samples is None else FineTuner(task, samples, fine)

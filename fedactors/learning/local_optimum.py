"""The loss that a client reaches by training alone: an estimate, before it leaves, of what leaving costs it."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from fedactors.data.evaluation_set import EvaluationSet
from fedactors.learning.central_learner import CentralLearner
from fedactors.learning.evaluation import ModelEvaluator
from fedactors.learning.training_task import TrainingData, TrainingTask


def local_optimum(
    task: TrainingTask,
    samples: TrainingData,
    client: int,
    flat: NDArray[np.float32],
    lr: float,
    rounds: int,
    version: int,
) -> dict[str, float]:
    """Return the client's mean loss over its data at the model `flat`, and the least that it reaches from there.

    {"loss_device", "loss_alone", "loss_first"}, the last one after the first round. It trains alone for so many
    `rounds` of its usual work, from the rate `lr`; a round that does not lower the loss is taken back, and the rate
    halved. Samples with weights count by them, as in training.
    """
    mine = samples.of(client)
    if not len(mine.y):
        return {"loss_device": 0.0, "loss_alone": 0.0, "loss_first": 0.0}
    work = task.workloads[client]
    learner = CentralLearner(task.model, task.seed, mine)
    evaluator = ModelEvaluator(task.model, EvaluationSet(mine.x, mine.y, weights=mine.weights))
    model = torch.from_numpy(flat)
    before = evaluator.evaluate(flat)["loss"]
    least = first = before
    for number in range(rounds):
        further = learner.train_alone(model, lr, work, client, version * rounds + number)
        loss = evaluator.evaluate(further.numpy())["loss"]
        first = first if number else loss
        if loss < least:
            model = further
            least = loss
        else:
            lr /= 2
    return {"loss_device": before, "loss_alone": least, "loss_first": first}

"""A client that trains alone makes the loss small that it is trained for: samples with weights count by them."""

from dataclasses import replace

import numpy as np
import pytest

from fedactors.data.partitions.assignment import contiguous
from fedactors.learning.local_optimum import local_optimum
from fedactors.learning.training_task import TrainingData
from fedactors.models.network import initial
from fedactors.models.task_losses import CrossEntropyLoss
from fedactors.workload import workload
from tests.engines.test_engines import MODELS, samples, task


@pytest.mark.parametrize(
    "loss", [CrossEntropyLoss(label_smoothing=0.1), CrossEntropyLoss(class_weights=(1.0, 3.0, 0.5))]
)
def test_samples_that_count_nothing_are_as_if_they_were_not_there(loss):
    """Every second sample has weight 0, the others 2: the loss is that of the others, before and after training."""
    model = replace(MODELS["logistic"], loss=loss.describe())
    everything = samples(model)
    held = everything.split.of(2)
    weights = np.full(len(everything.y), 2.0, np.float32)
    weights[held[::2]] = 0.0
    others = held[1::2]
    some = TrainingData(everything.x[others], everything.y[others], contiguous(np.array([0, 0, len(others)])))
    whole = task(model, batch=100)  # one batch for all, so that both see the same samples
    works = (*whole.workloads[:2], workload(len(others), 100, epochs=2, steps=None))
    start = initial(model, 1)
    found = local_optimum(whole, replace(everything, weights=weights), 2, start, 0.5, 6, 0)
    fewer = local_optimum(replace(whole, workloads=works), some, 2, start, 0.5, 6, 0)
    assert found == pytest.approx(fewer, rel=1e-4)
    assert found["loss_alone"] < found["loss_device"]
    assert local_optimum(whole, everything, 2, start, 0.5, 6, 0)["loss_device"] != pytest.approx(
        found["loss_device"], rel=1e-3
    )

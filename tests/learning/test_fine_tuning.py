"""Fine-tuning before an evaluation trains as clients do."""

from dataclasses import replace

import numpy as np

from fedactors.data.partitions.assignment import contiguous
from fedactors.learning.fine_tuning import FineTuner
from fedactors.learning.training_task import TrainingData
from fedactors.models.loss_description import LossDescription
from fedactors.models.network import initial
from fedactors.workload import FineTuning
from tests.engines.test_engines import MODELS, samples, task


def test_samples_that_count_nothing_do_not_tune():
    model = replace(MODELS["logistic"], loss=LossDescription("cross_entropy", "class"))
    everything = samples(model)
    held = everything.split.of(0)
    counted = np.ones(len(everything.x), np.float32)
    counted[held[::2]] = 0.0
    some = TrainingData(everything.x[held[1::2]], everything.y[held[1::2]], contiguous(np.array([len(held[1::2])])))
    options = FineTuning(None, 1, 100, 0.5)
    start = initial(model, 1)
    fewer = FineTuner(task(model), some, options).tuned(0, 0, start)
    weighted = FineTuner(task(model), replace(everything, weights=counted), options).tuned(0, 0, start)
    plain = FineTuner(task(model), everything, options).tuned(0, 0, start)
    np.testing.assert_allclose(weighted, fewer, atol=1e-6)
    assert np.abs(plain - fewer).max() > 1e-3

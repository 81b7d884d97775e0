"""Whether a row has the same bits wherever it lies among others: found out on the processor that will train it.

Libraries treat matrices by their sizes, and some by where in memory they begin. Rows of a stack begin at every multiple
of their size, so for some sizes a client's bits would depend on who else is trained at once. No rule says for which.
"""

from __future__ import annotations

import numpy as np
import torch

from fedactors.data.partitions.assignment import contiguous
from fedactors.engines import conv_sequential
from fedactors.engines.base import ClientBatch, DeviceDataset, Train
from fedactors.engines.grams import Grams
from fedactors.learning.training_task import TrainingTask
from fedactors.workload import Workload

_PLACES = 20  # at every multiple of 4 bytes in a line of a cache, once at least
_TOGETHER = 3  # rows of a chunk: chunks begin at such places, too
_STEPS = 9  # odd, so that stacks of all samples of a trip begin at every such place, too


def steady(train: Train, task: TrainingTask, like: DeviceDataset, work: Workload) -> bool:
    """Whether an engine gives the same bits to equal rows in all places, and to two of them by themselves.

    The rows have random samples of the shape of those in `like`, and do what `work` asks for, or its first steps. Of
    `chain`, whose rows meet in one product only, that product is looked at.
    """
    if train is conv_sequential.train:
        return conv_sequential.steady(task.model)
    steps = min(_STEPS, work.wanted - 1 + work.wanted % 2)
    if steps < 1:
        return True
    draws, count = np.random.Generator(np.random.Philox(0)), work.samples(steps)
    labels, shape = task.model.output_shape[0], (count, *like.x.shape[1:])
    x = torch.from_numpy(draws.standard_normal(shape, dtype=np.float32))
    y = torch.from_numpy(draws.integers(0, labels, (count, *like.y.shape[1:])))
    order = np.arange(count, dtype=np.int64)
    kept = None if like.grams is None else Grams(x.flatten(1), contiguous(np.array([count])))
    start = torch.from_numpy(draws.standard_normal(task.model.parameters, dtype=np.float32)).mul_(0.1)
    equal = ClientBatch(
        clients=[0] * _PLACES,
        steps=[steps] * _PLACES,
        works=[work] * _PLACES,
        order=[order] * _PLACES,
        keys=torch.zeros(_PLACES, dtype=torch.int64),
        starts=start.expand(_PLACES, -1),
        corrections=None,
        prox=task.algorithm.prox,
        lr=0.1,
        parts=[place // _TOGETHER for place in range(_PLACES)],
    )
    dataset = DeviceDataset(task.model, x, y, kept)
    many, two = train(dataset, equal), train(dataset, equal.take([0, 1]))
    pairs = ((many.deltas, two.deltas), (many.losses, two.losses))
    return all(torch.equal(found, alone[:1].expand_as(found)) for found, alone in pairs)

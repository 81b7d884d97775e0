"""Puts the clients' samples on the device that trains them, as its engine wants them."""

from __future__ import annotations

from dataclasses import replace

import torch

from fedactors.data.on_demand import ROOM
from fedactors.data.partitions.reassignment import ReassignedSplit
from fedactors.engines.base import Engine
from fedactors.engines.client_batch import DeviceDataset
from fedactors.learning.training_task import TrainingData, TrainingTask


def on_device(samples: TrainingData, task: TrainingTask, engine: Engine, device: torch.device) -> DeviceDataset:
    """Return the samples on a device; the engine also gets the split, where it is the same in every round."""
    moves = isinstance(samples.split, ReassignedSplit) or samples.variants or samples.size_bytes > ROOM
    split = None if moves else samples.split
    x, y = (torch.from_numpy(part).to(device) for part in (samples.x, samples.y))
    dataset = engine.dataset(task.model, x, y, split, task.local_work)
    if samples.weights is None:
        return dataset
    return replace(dataset, weights=torch.from_numpy(samples.weights).to(device))

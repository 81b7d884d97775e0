"""Puts samples on the device that learns from them, as its engine wants them."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from fedactors.data.base import LabelledSamples
from fedactors.data.on_demand import ROOM
from fedactors.data.partitions.reassignment import ReassignedSplit
from fedactors.engines.base import Engine
from fedactors.engines.client_batch import DeviceDataset
from fedactors.learning.training_task import TrainingData, TrainingTask
from fedactors.models.layers import Model


def on_device(samples: TrainingData, task: TrainingTask, engine: Engine, device: torch.device) -> DeviceDataset:
    """Return the samples on a device; the engine also gets the split, where it is the same in every round."""
    moves = isinstance(samples.split, ReassignedSplit) or samples.variants or samples.size_bytes > ROOM
    split = None if moves else samples.split
    x, y, weights = _tensors(LabelledSamples(samples.x, samples.y, samples.weights), device)
    return replace(engine.dataset(task.model, x, y, split, task.local_work), weights=weights)


def dataset_of(model: Model, samples: LabelledSamples, device: torch.device) -> DeviceDataset:
    """Return the samples of one learner on a device."""
    x, y, weights = _tensors(samples, device)
    return DeviceDataset(model, x, y, weights=weights)


def _tensors(samples: LabelledSamples, device: torch.device) -> tuple[Tensor, Tensor, Tensor | None]:
    weights = None if samples.weights is None else torch.from_numpy(samples.weights).to(device)
    return torch.from_numpy(samples.x).to(device), torch.from_numpy(samples.y).to(device), weights

"""Gradients of clients at a model that all of them are given, as sums over clients."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fedactors.engines.client_batch import DeviceDataset
from fedactors.engines.full_gradient import full_gradient
from fedactors.learning.batch_planner import BatchPlanner
from fedactors.learning.dissimilarity import GradientSum, gradient_sum
from fedactors.learning.training_task import Vectors


class ClientGradients:
    """Computes gradients of the clients' mean losses; dropout is off."""

    def __init__(self, dataset: DeviceDataset, planner: BatchPlanner) -> None:
        self._dataset = dataset
        self._planner = planner

    def over_all(self, clients: Sequence[int], sent: Vectors) -> GradientSum:
        """Return sums over `clients` of the gradients over all their samples, at the model `sent`."""
        x = torch.from_numpy(sent["x"]).to(self._dataset.x.device)
        held = map(torch.from_numpy, self._planner.samples(clients))
        return gradient_sum(full_gradient(self._dataset, samples, x).cpu().numpy() for samples in held)

    def of_first_batches(self, clients: Sequence[int], version: int, sent: Vectors) -> GradientSum:
        """Return sums over `clients` of the gradients of their first batches of a trip that begins at `version`."""
        x = torch.from_numpy(sent["x"]).to(self._dataset.x.device)
        first = (torch.from_numpy(self._planner.first_batch(client, version)) for client in clients)
        return gradient_sum(full_gradient(self._dataset, samples, x).cpu().numpy() for samples in first)

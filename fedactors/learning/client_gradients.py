"""Gradients of clients at a model that all of them are given, as sums over clients; and their losses."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fedactors.engines.client_batch import DeviceDataset
from fedactors.engines.full_gradient import full_gradient, full_loss
from fedactors.learning.batch_planner import BatchPlanner
from fedactors.learning.dissimilarity import GradientSum, gradient_sum
from fedactors.learning.training_task import Chunk, Vectors


class ClientGradients:
    """Computes the clients' mean losses, and their gradients; dropout is off."""

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

    def start_losses(self, chunk: Chunk, starts: Tensor) -> Tensor:
        """Return the loss of all samples of each client of `chunk` at its row of `starts`, (clients, 1).

        `starts` are `(clients, parameters)`. Clients are evaluated one by one: no loss depends on its neighbours.
        """
        held = map(torch.from_numpy, self._planner.held(chunk))
        found = [full_loss(self._dataset, samples, x) for samples, x in zip(held, starts, strict=True)]
        return starts.new_tensor(found)[:, None]

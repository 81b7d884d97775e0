"""The inputs of local steps of `conv_sequential`: images and labels of their batches, and the masks of dropout.

None of them depends on a model, so a host can prepare them before the model arrives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor

from fedactors.data import batches
from fedactors.engines.client_batch import BatchPlan, DeviceDataset
from fedactors.models.dropout import Masks
from fedactors.models.layers import Dropout, Model, Shape
from fedactors.models.network import channels_last

_AHEAD = 2**20  # values that are prepared before a round: about what can be done while a model travels


class Batch(NamedTuple):
    """B samples of one client, for one step."""

    x: Tensor  # (B, *shape)
    y: Tensor  # (B,)
    masks: Mapping[int, Tensor]  # by the number of the layer, (B, *shape there): scaled

    @property
    def values(self) -> int:
        """How many numbers the batch holds."""
        return sum(tensor.numel() for tensor in (self.x, *self.masks.values()))


class Batches:
    """Makes the batches of trips, one after the other."""

    def __init__(self, dataset: DeviceDataset, trips: BatchPlan) -> None:
        self._dataset = dataset
        self._trips = trips
        self._masks = Masks()
        self._dropouts = _dropouts(dataset.model)

    def of(self, row: int, first: int = 0) -> Iterator[Batch]:
        """Yield the batches of a trip from step `first` on."""
        trips, dataset = self._trips, self._dataset
        order, key = torch.from_numpy(trips.order[row]), int(trips.keys[row])
        bounds = batches.bounds(trips.works[row], trips.steps[row])
        for step, (begin, end) in islice(enumerate(bounds), first, None):
            chosen = order[begin:end]
            masks = {
                number: self._masks.of((end - begin, *shape), rate, key, number, step)
                for number, rate, shape in self._dropouts
            }
            yield Batch(channels_last(dataset.x[chosen]), dataset.y[chosen], masks)


def prepare(dataset: DeviceDataset, trips: BatchPlan) -> list[list[Batch]]:
    """Return the first batches of each trip: those of the first rows, up to a limit of values."""
    made, values = Batches(dataset, trips), 0
    ready: list[list[Batch]] = [[] for _ in trips.clients]
    for mine, batch in ((mine, batch) for row, mine in enumerate(ready) for batch in made.of(row)):
        mine.append(batch)
        values += batch.values
        if values >= _AHEAD:
            break
    return ready


def _dropouts(model: Model) -> list[tuple[int, float, Shape]]:
    """Return the number, rate and shape of each layer of dropout."""
    found, shape = list[tuple[int, float, Shape]](), model.input_shape
    for number, layer in enumerate(model.layers):
        if isinstance(layer, Dropout):
            found.append((number, layer.rate, shape))
        shape = layer.output(shape)
    return found

"""Local steps of clients whose models are chains of convolutions and dense layers: who steps beside whom.

Clients take their steps one after the other, each as `chain_trip` says. Those who began with the same model and make
short trips share the weight of their first dense layer, and meet there in every step: see `shared_layer`. Whether they
do, the model and a client's own workload say, and whoever is there changes no bit of another: parts of a product have
memory of their own, and `steady` looks whether products round by the number of samples.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from math import prod
from typing import cast

import torch
from torch import Tensor

from fedactors.engines import shared_layer
from fedactors.engines.base import NO_STATE, BatchResult, ClientBatch, DeviceDataset
from fedactors.engines.conv_batches import Batch, Batches
from fedactors.engines.conv_model import ClientModel, Step, room, shareable
from fedactors.engines.shared_layer import SharedLayer
from fedactors.models.layers import Dense, Model
from fedactors.models.network import views

_BESIDE = 8  # trips side by side, at most
_KEPT = 2**24  # values that they keep for their backward passes, at most: 64 MB


def train(dataset: DeviceDataset, rows: ClientBatch) -> BatchResult:
    """Train all rows by plain SGD; see `BatchResult`."""
    model, total, made = dataset.model, rows.total, Batches(dataset, rows)
    deltas = torch.zeros(rows.starts.shape) if total is None else torch.empty(len(rows.clients), 0)
    losses = torch.zeros(len(rows.clients), max(rows.steps, default=0))
    (ready,) = rows.ready or [[[] for _ in rows.clients]]
    rooms, sharing = list[list[Tensor]](), _sharing(model, rows)
    for members in _companies(model, rows, sharing):
        rooms += [room(model) for _ in members[len(rooms) :]]
        company = _Company(model, rows, members, rooms, shares=sharing[members[0]])
        batches = [itertools.chain(ready[row], made.of(row, len(ready[row]))) for row in members]
        company.train(batches, losses)
        for place, row in enumerate(members):
            if total is None:
                company.add(place, deltas[row], 1.0)
            else:
                company.add(place, total.of(rows.parts[row], model.parameters), total.weights[row])
        del company  # what it keeps makes room for the next one
    return BatchResult(deltas, losses, NO_STATE)


class _Company:
    """Trips whose steps are taken side by side: several that share a layer, or one."""

    def __init__(
        self, model: Model, rows: ClientBatch, members: Sequence[int], rooms: Sequence[list[Tensor]], *, shares: bool
    ) -> None:
        self._model, self._members, self._steps = model, members, [rows.steps[row] for row in members]
        self._link = shareable(model) if shares else None
        self._trips = [
            ClientModel(model, rows, row, mine, self._link) for row, mine in zip(members, rooms, strict=False)
        ]
        if self._link:
            weight = views(model, rows.starts[members[0]])[self._link.tensor]
            samples = [rows.works[row].samples(rows.steps[row]) for row in members]
            self._layer = SharedLayer(weight, samples, rows.lr)

    def train(self, batches: Sequence[Iterator[Batch]], losses: Tensor) -> None:
        """Take all steps, and write the loss of each to `losses`, (rows, steps)."""
        for step in range(max(self._steps)):
            active = [place for place, steps in enumerate(self._steps) if step < steps]
            begun = [self._trips[place].step(next(batches[place])) for place in active]
            for place, loss in zip(active, self._taken(active, begun), strict=True):
                losses[self._members[place], step] = loss

    def add(self, place: int, out: Tensor, weight: float) -> None:
        """Add the update of the trip at `place`, times `weight`, to `out`, (parameters,)."""
        tensors = views(self._model, out)
        self._trips[place].add(tensors, weight)
        if self._link:
            self._layer.add(place, tensors[self._link.tensor], weight)

    def _taken(self, active: Sequence[int], begun: Sequence[Step]) -> list[Tensor]:
        """Let the active trips end the steps that they have begun, and return their losses."""
        if self._link is None:
            return [_ended(step) for step in begun]
        outputs = self._layer.outputs(active, [next(step) for step in begun])
        errors = [step.send(x) for step, x in zip(begun, outputs, strict=True)]
        return [_ended(step, below) for step, below in zip(begun, self._layer.learn(active, errors), strict=True)]


def _ended(step: Step, sent: Tensor | None = None) -> Tensor:
    try:
        step.send(sent)
    except StopIteration as end:
        loss: Tensor = end.value
        return loss
    raise RuntimeError("a step waits where no layer is shared")


def _sharing(model: Model, rows: ClientBatch) -> list[bool]:
    """Return which rows share a layer, be it with nobody."""
    if rows.corrections is not None or rows.prox:
        return [False] * len(rows.clients)
    layer = cast("Dense", shareable(model).layer)
    return [shared_layer.pays(layer, work.samples(work.wanted)) for work in rows.works]


def _companies(model: Model, rows: ClientBatch, sharing: Sequence[bool]) -> Iterator[list[int]]:
    """Yield rows that take their steps side by side: some that share a layer, or any other by itself."""
    moving, bases = [row for row, steps in enumerate(rows.steps) if steps], rows.bases or [0] * len(rows.clients)
    kept = max(work.batch for work in rows.works) * _outputs(model)
    for (shares, _), run in itertools.groupby(moving, lambda row: (sharing[row], bases[row])):
        company, most = list(run), max(1, min(_BESIDE, _KEPT // kept)) if shares else 1
        yield from (company[first : first + most] for first in range(0, len(company), most))


def _outputs(model: Model) -> int:
    """Return how many values all layers give for one sample: about what a backward pass needs."""
    shapes = itertools.accumulate(model.layers, lambda shape, layer: layer.output(shape), initial=model.input_shape)
    return sum(map(prod, shapes))


def steady(model: Model) -> bool:
    """Whether clients' bits do not depend on who shares a layer with them, on this processor."""
    return shared_layer.steady(cast("Dense", shareable(model).layer))

"""Local steps of clients whose models are chains of convolutions and dense layers, one client after the other.

The steps of one client are those of `conv_model`. Clients that began with the same model and make short trips take
their steps side by side and share the weight of their first dense layer: see `shared_layer`. Whether a client shares
it follows from the model and its own workload, and no bit of a client depends on which others share it: parts of a
product have memory of their own, and `shared_layer.batch_invariant` tries whether products round by the number of
samples.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from math import prod
from typing import cast

import torch
from torch import Tensor

from fedactors.engines import conv_batches, conv_model, shared_layer
from fedactors.engines.base import Engine
from fedactors.engines.client_batch import NO_STATE, BatchPlan, BatchResult, ClientBatch, DeviceDataset
from fedactors.engines.conv_batches import Batch, Batches
from fedactors.engines.conv_model import ClientModel, Step, room, shareable
from fedactors.engines.local_work import LocalWork
from fedactors.engines.shared_layer import SharedLayer
from fedactors.models.layers import Dense, Model
from fedactors.models.network import views
from fedactors.workload import Workload

_ROWS = 100  # of chunks that are trained together
_PREPARED = 2**24  # parameters of rows that are given and prepared at once
_BESIDE = 8  # trips side by side, at most
_KEPT = 2**24  # values that they keep for their backward passes, at most: 64 MB


class ConvSequentialEngine(Engine):
    """For softmax models of convolutions, then dense layers, trained by plain SGD on a CPU."""

    accepts = "convolutions before dense layers in fp32 or tf32, trained on a CPU by plain SGD without a second loss"
    sums_gradients = True
    sums_updates = True

    def supports(self, work: LocalWork, device: str) -> bool:
        """Plain SGD on a CPU, with corrections and proximal terms."""
        return device == "cpu" and work.plain_sgd and work.second_loss is None and conv_model.can(work.model)

    def prepare(self, dataset: DeviceDataset, plan: BatchPlan) -> list[list[Batch]]:
        """Return the first batches of each trip; see `conv_batches`."""
        return conv_batches.prepare(dataset, plan)

    def max_rows(self, dataset: DeviceDataset) -> int:
        """Return as many as may be prepared at once."""
        return min(_ROWS, _PREPARED // dataset.model.parameters)

    def batch_invariant(
        self, work: LocalWork, dataset: DeviceDataset, workload: Workload, steps: int | None = None
    ) -> bool:
        """Rows meet in the product of the shared layer only, so that product is tried."""
        return _batch_invariant(work.model)

    def parts_keep_bits(self, work: LocalWork, dataset: DeviceDataset, workload: Workload) -> bool:
        """As `batch_invariant`."""
        return _batch_invariant(work.model)

    def train(self, dataset: DeviceDataset, rows: ClientBatch) -> BatchResult:
        """Train all rows."""
        model = dataset.model
        total = rows.sums
        made = Batches(dataset, rows)
        deltas = torch.zeros(rows.starts.shape) if total is None else torch.empty(len(rows.clients), 0)
        losses = torch.zeros(len(rows.clients), max(rows.steps, default=0))
        gradients = torch.zeros(rows.starts.shape) if rows.sums_gradients else None
        (first,) = rows.prepared or [[[] for _ in rows.clients]]
        rooms = list[list[Tensor]]()
        sharing = _sharing(model, rows)
        for members in _groups(model, rows, sharing):
            rooms += [room(model) for _ in members[len(rooms) :]]
            group = _Group(model, rows, members, rooms, shares=sharing[members[0]], gradients=gradients)
            group.train([itertools.chain(first[row], made.of(row, len(first[row]))) for row in members], losses)
            for place, row in enumerate(members):
                if total is None:
                    group.add(place, deltas[row], 1.0)
                else:
                    group.add(place, total.of(rows.chunks[row], model.parameters), total.weights[row])
            del group  # frees its memory before the next one is made
        return BatchResult(deltas, losses, NO_STATE, gradients)


class _Group:
    """Trips whose steps are taken side by side: several that share a layer, or one."""

    def __init__(
        self,
        model: Model,
        rows: ClientBatch,
        members: Sequence[int],
        rooms: Sequence[list[Tensor]],
        *,
        shares: bool,
        gradients: Tensor | None,
    ) -> None:
        self._model = model
        self._members = members
        self._steps = [rows.steps[row] for row in members]
        self._link = shareable(model) if shares else None
        self._trips = [
            ClientModel(model, rows, row, mine, self._link, None if gradients is None else views(model, gradients[row]))
            for row, mine in zip(members, rooms, strict=False)
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
        """End the steps that the active trips have begun, and return their losses."""
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
    """Return which rows share a layer, also where no other row shares it."""
    if rows.corrections is not None or rows.pulled or rows.sums_gradients:
        return [False] * len(rows.clients)
    layer = cast("Dense", shareable(model).layer)
    return [shared_layer.pays(layer, work.samples(work.wanted)) for work in rows.works]


def _groups(model: Model, rows: ClientBatch, sharing: Sequence[bool]) -> Iterator[list[int]]:
    """Yield rows that take their steps side by side: some that share a layer, or any other by itself."""
    moving = [row for row, steps in enumerate(rows.steps) if steps]
    models = rows.model_indices or [0] * len(rows.clients)
    kept = max(work.batch for work in rows.works) * _outputs(model)
    for (shares, _), run in itertools.groupby(moving, lambda row: (sharing[row], models[row])):
        group = list(run)
        most = max(1, min(_BESIDE, _KEPT // kept)) if shares else 1
        yield from (group[first : first + most] for first in range(0, len(group), most))


def _outputs(model: Model) -> int:
    """Return how many values all layers give for one sample: about what a backward pass needs."""
    shapes = itertools.accumulate(model.layers, lambda shape, layer: layer.output(shape), initial=model.input_shape)
    return sum(map(prod, shapes))


def _batch_invariant(model: Model) -> bool:
    """Whether clients' bits do not depend on which clients share a layer with them, on this processor."""
    layer = cast("Dense", shareable(model).layer)
    return not shared_layer.pays(layer, 1) or shared_layer.batch_invariant(layer)

"""Local steps of many clients on a GPU with no work on the host between them: a step is recorded, and replayed.

A step of a small model is dozens of kernels of microseconds, which a host launches more slowly than they run. A CUDA
graph is launched as one, but does the same to the same addresses every time. So what differs from step to step and
from chunk to chunk lies in tensors that stay where they are: models, the samples of all steps, the learning rate, and
the number of the step, which the step itself advances. A row that is done sees zeros at rate 0 and does not move.

Rows come longest first. A graph is for a number of rows, which is rounded up so that few are recorded, and is replaced
by one for half as many when no more than these still move. The number follows from the chunk alone, and so do the bits.

The arithmetic is that of `dense_batched` for stacks of dense layers and of `vmap` for all others, with one rounding
more: the rate multiplies errors before they become gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedactors.data import batches
from fedactors.engines import dense_steps, vmap
from fedactors.engines.base import LongestFirstEngine
from fedactors.engines.client_batch import NO_STATE, BatchResult, ClientBatch, DeviceDataset
from fedactors.engines.graph_capture import WARM_UP, GraphCapture, Step
from fedactors.engines.graph_widths import LEAST, rounded, widths
from fedactors.engines.local_work import LocalWork
from fedactors.models.dense_stacks import blocks_of
from fedactors.models.layers import Model
from fedactors.models.module_layer import ModuleLayer
from fedactors.models.network import views
from fedactors.models.sequence_layers import Bag, Embedding

_KEPT = 4  # sets of tensors, for chunks that differ in more than their size

Record = Callable[[Step], Step]


def can(model: Model) -> bool:
    """Whether steps of `model` can be recorded.

    There is no module, no table, whose gradient the host helps to sort, and no loss with options from the host.
    """
    tables = any(isinstance(layer, Embedding | Bag | ModuleLayer) for layer in model.layers)
    return isinstance(model.loss, str) and not tables


class CudaGraphEngine(LongestFirstEngine):
    """For plain SGD on a GPU without a second loss, for models that `can` be recorded.

    Args:
        record: returns what is called in place of a step; by default a CUDA graph on a GPU, else the step itself.

    """

    sums_gradients = True
    accepts = "models without tables, trained on a GPU by plain SGD without a second loss, pulled alike if at all"

    def __init__(self, record: Record | None = None) -> None:
        self._record = record
        self._recorded_batches: dict[tuple[object, ...], _RecordedBatch] = {}

    def supports(self, work: LocalWork, device: str) -> bool:
        """Plain SGD on a GPU; steps that move the state of an optimiser are not recorded."""
        alike = work.second_loss is None and not work.scales_by_share
        return device == "cuda" and work.plain_sgd and alike and can(work.model)

    def train(self, dataset: DeviceDataset, rows: ClientBatch) -> BatchResult:
        """Train all rows."""
        try:
            return super().train(dataset, rows)
        except Exception:
            self._recorded_batches.clear()  # these may hold the memory that lacks
            raise

    def train_sorted(self, dataset: DeviceDataset, rows: ClientBatch) -> BatchResult:
        """Train all rows, longest first."""
        samples, weights = batches.table(rows.order, rows.works, rows.steps)
        recorded = self._recorded_batch(dataset, rows, samples.shape)
        stretches = [(recorded.step_of(width), times) for width, times in widths(rows.steps)]
        recorded.load(rows, samples, weights)
        for step, times in stretches:
            for _ in range(times):
                step()
        return recorded.result(rows, len(samples))

    def _recorded_batch(self, dataset: DeviceDataset, rows: ClientBatch, shape: tuple[int, ...]) -> _RecordedBatch:
        """Return tensors in which `rows` have room; those kept, if they are large enough."""
        steps, clients, batch = shape
        key = id(dataset), batch, rows.prox, rows.weight, rows.corrections is None, rows.sums_gradients
        recorded = self._recorded_batches.pop(key, None)
        if recorded is None or recorded.steps < steps or recorded.rows < clients:
            if recorded is not None:
                steps = max(steps, recorded.steps)
                clients = max(clients, recorded.rows)
            del recorded  # before its successor is made: both may not fit
            record = self._record or (GraphCapture() if dataset.x.is_cuda else lambda step: step)
            recorded = _RecordedBatch(dataset, rows, steps, clients, batch, record)
        self._recorded_batches[key] = recorded
        if len(self._recorded_batches) > _KEPT:
            del self._recorded_batches[next(iter(self._recorded_batches))]
        return recorded


class StepTensors(NamedTuple):
    """One step of some rows; all of it on the device."""

    tensors: Sequence[Tensor]  # of the models, each (rows, *shape): moved in place
    starts: Sequence[Tensor] | None  # x, for the proximal term
    corrections: Sequence[Tensor] | None
    summed: Sequence[Tensor] | None  # rates times gradients, of all steps so far
    x: Tensor  # (rows, batch, *shape)
    y: Tensor  # (rows, batch), or (rows, batch, places)
    weights: Tensor  # (rows, batch): of samples
    keys: Tensor  # (rows,): of dropout masks
    number: Tensor  # (): of the step, from 0
    rate: Tensor  # (rows,): eta_l, or 0

    def drift(self, prox: float, tensor: int) -> None:
        """y <- y - rate (corr + prox (y - x)) for one of the tensors: all of a step but the gradient."""
        mine = self.tensors[tensor]
        rate = self.rate.view(-1, *[1] * (mine.dim() - 1))
        if self.starts is not None:
            mine.lerp_(self.starts[tensor], rate * prox)
        if self.corrections is not None:
            mine.addcmul_(self.corrections[tensor], rate, value=-1.0)


Move = Callable[[StepTensors], Tensor]
"""Moves rows by one step, and returns their losses, (rows,)."""


def by_hand(model: Model, weight: float, prox: float) -> Move:
    """Return the step of `dense_batched`: gradients go into the models without being written out."""
    blocks = blocks_of(model)
    classes = model.output_shape[0]

    def move(given: StepTensors) -> Tensor:
        def accumulate(first: int, layer: Tensor, bias: Tensor, error: Tensor, inputs: Tensor) -> None:
            for tensor in (first, first + 1):
                given.drift(prox, tensor)
            layer.baddbmm_(error, inputs, alpha=-1.0)
            bias.sub_(error.sum(2))
            if given.summed is not None:
                given.summed[first].baddbmm_(error, inputs)
                given.summed[first + 1].add_(error.sum(2))

        hot = given.x.new_zeros(len(given.x), classes, given.x.shape[1]).scatter_(1, given.y[:, None], 1.0)
        inputs, slopes = dense_steps.forward(blocks, given.tensors, given.x.flatten(2), given.keys, given.number)
        logs, weights = dense_steps.log_probabilities(given.tensors, inputs[-1]), given.weights[:, None]
        losses, error = dense_steps.mean_losses(logs, hot, weights), dense_steps.errors(logs, hot, weights)
        error.mul_((given.rate * weight)[:, None, None])
        dense_steps.backward(given.tensors, inputs, slopes, error, accumulate)
        return losses

    return move


def by_vmap(model: Model, weight: float, prox: float) -> Move:
    """Return the step of `vmap`, for any model."""
    gradient = vmap.gradient_of(model, weight, None)

    def move(given: StepTensors) -> Tensor:
        losses: Tensor
        grads, (losses, _) = gradient(given.number, tuple(given.tensors), given.x, given.y, given.weights, given.keys)
        for number, (tensor, grad) in enumerate(zip(given.tensors, grads, strict=True)):
            given.drift(prox, number)
            rate = given.rate.view(-1, *[1] * (grad.dim() - 1))
            tensor.addcmul_(grad, rate, value=-1.0)
            if given.summed is not None:
                given.summed[number].addcmul_(grad, rate)
        return losses

    return move


class _RecordedBatch:
    """Tensors with room for `rows` rows of `steps` steps, at least, and the steps recorded over them."""

    def __init__(
        self, dataset: DeviceDataset, like: ClientBatch, steps: int, rows: int, batch: int, record: Record
    ) -> None:
        self._dataset = dataset
        self._record = record
        self._recorded = dict[int, Step]()
        # runs of a warm-up advance the number of the step, too: there is room for as many
        self.steps = 1 << max(WARM_UP, steps - 1).bit_length()
        self.rows = rounded(max(LEAST, rows))
        model = dataset.model
        new = like.starts.new_zeros
        self._samples = new(self.steps, self.rows, batch, dtype=torch.int64)
        self._weights = new(self.steps, self.rows, batch)
        self._losses = new(self.steps, self.rows)
        self._counts, self._keys = (new(self.rows, dtype=torch.int64) for _ in range(2))
        self._number = new(1, dtype=torch.int64)
        self._lr = new(())
        self._tensors = [new(self.rows, *spec.shape) for spec in model.tensors]
        self._summed = [torch.zeros_like(tensor) for tensor in self._tensors] if like.sums_gradients else None
        size = self.rows, model.parameters
        self._starts = new(size) if like.prox else None
        self._corrections = None if like.corrections is None else new(size)
        form = by_hand if blocks_of(model) else by_vmap
        assert not isinstance(like.prox, Tensor)  # see `supports`
        self._move = form(model, like.weight, like.prox)

    def step_of(self, width: int) -> Step:
        """Return the step of the first `width` rows; what is loaded is lost if it was not recorded before."""
        if width not in self._recorded:
            self._counts.zero_()
            self._number.zero_()
            self._recorded[width] = self._record(self._step(width))
        return self._recorded[width]

    def load(self, rows: ClientBatch, samples: NDArray[np.int64], weights: NDArray[np.float32]) -> None:
        """Put `rows` into place, before their first step."""
        steps, clients, _ = samples.shape
        _put(self._samples[:steps, :clients], samples)
        _put(self._weights[:steps, :clients], weights)
        self._counts.zero_()
        _put(self._counts[:clients], np.array(rows.steps))
        self._keys[:clients].copy_(rows.keys)
        self._number.zero_()
        self._lr.fill_(rows.lr)
        for tensor, start in zip(self._tensors, views(self._dataset.model, rows.starts), strict=True):
            tensor[:clients].copy_(start)
        for summed in self._summed or ():
            summed.zero_()
        for mine, given in ((self._starts, rows.starts), (self._corrections, rows.corrections)):
            if mine is not None and given is not None:
                mine[:clients].copy_(given)

    def result(self, rows: ClientBatch, steps: int) -> BatchResult:
        """Return the result of `rows`, in memory of its own."""
        clients = len(rows.clients)
        starts = views(self._dataset.model, rows.starts)
        deltas = [(tensor[:clients] - start).flatten(1) for tensor, start in zip(self._tensors, starts, strict=True)]
        losses = self._losses[:steps, :clients].T.clone()
        return BatchResult(torch.cat(deltas, 1), losses, NO_STATE, self._gradients(rows))

    def _gradients(self, rows: ClientBatch) -> Tensor | None:
        """Return the sum of each row's gradients, if it is wanted; the rate that multiplied each is divided out."""
        if self._summed is None:
            return None
        return torch.cat([tensor[: len(rows.clients)].flatten(1) for tensor in self._summed], 1) / rows.lr

    def _step(self, width: int) -> Step:
        dataset = self._dataset
        flat = dataset.x.flatten(1)
        tensors = [tensor[:width] for tensor in self._tensors]
        summed = None if self._summed is None else [tensor[:width] for tensor in self._summed]
        starts, corrections = (
            None if vectors is None else views(dataset.model, vectors[:width])
            for vectors in (self._starts, self._corrections)
        )

        def step() -> None:
            chosen, weights = (
                table[:, :width].index_select(0, self._number)[0] for table in (self._samples, self._weights)
            )
            done = self._counts[:width] <= self._number
            x = flat.index_select(0, chosen.flatten()).view(width, -1).masked_fill_(done[:, None], 0.0)
            given = StepTensors(
                tensors=tensors,
                starts=starts,
                corrections=corrections,
                summed=summed,
                x=x.view(*chosen.shape, *dataset.x.shape[1:]),
                y=dataset.y[chosen],
                weights=weights,
                keys=self._keys[:width],
                number=self._number[0],
                rate=self._lr.expand(width).masked_fill(done, 0.0),
            )
            losses = self._move(given).masked_fill(done, 0.0)
            self._losses[:, :width].index_copy_(0, self._number, losses[None])
            self._number.add_(1)

        return step


def _put(place: Tensor, array: NDArray[np.generic]) -> None:
    """Copy an array to a device without waiting for it, from memory that cannot be moved meanwhile."""
    found = torch.from_numpy(array)
    place.copy_(found.pin_memory() if place.is_cuda else found, non_blocking=True)

"""Local steps of dense stacks whose first layer is never written: it is its start plus a sum over the samples seen.

All the steps of a trip start from one W_0 and add products of errors and inputs to it, so after s samples
W_s = W_0 - lr * sum_j e_j x_j^T. Then the outputs of the first layer are X W_0^T, one large product over all samples of
the trip, less lr * (X X^T) E, in which a sample needs its inner products (the Gram matrix) with the samples before it.
The update, -lr * E^T X, is one large product again. Large products run half as fast again as those of single batches,
and no client has a first layer of its own that is copied and moved.

The arithmetic is that of `dense_batched` in another order. Shapes: C clients, T samples of a trip, B of them in a
batch, d inputs, h hidden units.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from fedactors.data import batches
from fedactors.data.holdings import Holdings
from fedactors.engines import grams, shared_layer
from fedactors.engines.base import LongestFirstEngine
from fedactors.engines.client_batch import NO_STATE, BatchPlan, BatchResult, ClientBatch, DeviceDataset, UpdateSums
from fedactors.engines.dense_steps import (
    PaddingRow,
    activate,
    backward,
    descending,
    errors,
    first_rows,
    forward,
    hot_labels,
    log_probabilities,
    mean_losses,
)
from fedactors.engines.grams import Grams
from fedactors.engines.local_work import LocalWork
from fedactors.models.dense_stacks import blocks_of
from fedactors.models.layers import Dense, Model
from fedactors.models.network import views
from fedactors.workload import Workload

_SMALL = 50_000  # weights of a first layer below which calls cost more than products
_ROWS = 20  # of chunks that are trained together
_TOGETHER = 2**24  # parameters of their models, at most: 64 MB
_ALONE = 16  # samples whose inner products are not worth dividing further, and products not worth sharing


def pays(model: Model, works: Iterable[Workload]) -> bool:
    """Whether trips are short enough for this engine to be quicker than `dense_batched` on a CPU.

    It saves 4 d h operations of a sample their lower speed, and costs T d / 2 and T h for the samples before it.
    """
    if len(blocks_of(model)) < 2:
        return False
    first = _first(model)
    inputs, hidden = first.inputs, first.outputs
    longest = max((work.samples(work.wanted) for work in set(works)), default=0)
    return inputs * hidden >= _SMALL and longest * (inputs + 2 * hidden) <= 2.4 * inputs * hidden


def _first(model: Model) -> Dense:
    return next(layer for layer in model.layers if isinstance(layer, Dense))


class DenseGramEngine(LongestFirstEngine):
    """For stacks of two or more dense layers, trained by plain SGD on a CPU, in short trips.

    The cache of its data sets is a `Grams`, or None where the products are computed anew in every trip.
    """

    accepts = (
        "two or more dense layers in fp32 or tf32, trained on a CPU by plain SGD without second loss, loss weight,"
        " correction or proximal term"
    )
    sums_updates = True

    def supports(self, work: LocalWork, device: str) -> bool:
        """Where only the gradient moves clients; a second loss of weight 0 is none."""
        plain = work.plain_sgd and not work.corrects and work.loss_weight == 1.0 and not work.second_loss
        return plain and device == "cpu" and len(blocks_of(work.model)) > 1

    def suits(self, work: LocalWork, device: str) -> bool:
        """Where trips are short and the first layer is large."""
        return pays(work.model, work.workloads)

    def dataset(self, model: Model, x: Tensor, y: Tensor, split: Holdings | None, work: LocalWork) -> DeviceDataset:
        """Return the samples, with the inner products of each client's samples if there is room for those of all."""
        kept = split is not None and grams.fit(work.workloads)
        return DeviceDataset(model, x, y, Grams(x.flatten(1), split) if split is not None and kept else None)

    def prepare(self, dataset: DeviceDataset, plan: BatchPlan) -> _TripSamples | None:
        """Return the samples of trips and their inner products; None unless the longest trip is first."""
        return _trip_samples(dataset, plan) if plan.longest_first else None

    def max_rows(self, dataset: DeviceDataset) -> int:
        """Products that are computed anew have the size of the longest trip of a call: each chunk has its own call."""
        return 0 if dataset.cache is None else min(_ROWS, _TOGETHER // dataset.model.parameters)

    def parts_keep_bits(self, work: LocalWork, dataset: DeviceDataset, workload: Workload) -> bool:
        """As long as no product has the size of a part's longest trip, or shared ones round alike in all sizes."""
        alone = workload.wanted * workload.batch < _ALONE or shared_layer.batch_invariant(_first(work.model))
        return dataset.cache is not None and alone and super().parts_keep_bits(work, dataset, workload)

    def train_sorted(self, dataset: DeviceDataset, rows: ClientBatch) -> BatchResult:
        """Train all rows, longest first."""
        weight, bias, *others = views(dataset.model, rows.starts)
        moving = [tensor.clone(memory_format=torch.contiguous_format) for tensor in others]
        (seen,) = rows.prepared or [_trip_samples(dataset, rows)]
        first = _FirstLayer(seen, weight, bias, rows.lr, rows.chunks)
        losses = _take_steps(dataset.model, rows, seen, first, moving)
        rest = [tensor.sub_(start).flatten(1) for tensor, start in zip(moving, others, strict=True)]
        if rows.sums is not None:
            _add_up(first, rest, rows.sums, rows.chunks)
            return BatchResult(rows.starts.new_empty(len(rows.clients), 0), losses, NO_STATE)
        deltas = rows.starts.new_empty(rows.starts.shape)
        for row, delta in enumerate(deltas):
            _add(first.add(row, delta, 1.0, new=True), rest, row, 1.0)
        return BatchResult(deltas, losses, NO_STATE)


def _take_steps(
    model: Model, rows: ClientBatch, seen: _TripSamples, first: _FirstLayer, moving: Sequence[Tensor]
) -> Tensor:
    """Move `first` and the tensors `moving` of the layers after it by all steps; return losses, (C, steps)."""
    block, *inner = blocks_of(model)
    padding = PaddingRow(moving)
    logs = torch.zeros_like(seen.hot)
    accumulate = descending(rows.lr)
    shorter = [-steps for steps in rows.steps]
    for step in range(max(rows.steps)):
        left = bisect.bisect_left(shorter, -step)  # rows with more than `step` steps
        active = padding.active_rows(left)
        mine = first_rows(moving, active)
        keys, hot, weights = first_rows((rows.keys, seen.hot[step], seen.weights[step]), active)
        x, slope = activate(first.outputs(step, active), block, keys, step)
        inputs, slopes = forward(inner, mine, x, keys, step, slope)
        found = log_probabilities(mine, inputs[-1], out=logs[step, :active])
        error = errors(found, hot, weights)
        if left < active:
            found[left:] = 0.0
        first.learn(step, active, backward(mine, inputs, slopes, error, accumulate))
    padding.restore()
    return mean_losses(logs, seen.hot, seen.weights).T


def _add_up(first: _FirstLayer, rest: Sequence[Tensor], total: UpdateSums, chunks: Sequence[int]) -> None:
    """Add the updates of the first layer and of those after it, `rest`, one row after the other to their sums."""
    for row in sorted(range(len(total.places)), key=total.places.__getitem__):
        chunk = chunks[row]
        share = total.weights[row]
        new = chunk not in total.sums
        if new:
            total.sums[chunk] = torch.empty(first.size + sum(part.shape[1] for part in rest))
        _add(first.add(row, total.sums[chunk], share, new=new), rest, row, share)


def _add(out: Tensor, updates: Sequence[Tensor], row: int, weight: float) -> None:
    """Add a row of `updates`, each (C, size), times `weight` to `out`, where they follow one another."""
    for part in updates:
        out[: part.shape[1]].add_(part[row], alpha=weight)
        out = out[part.shape[1] :]


class _TripSamples(NamedTuple):
    """The samples of trips."""

    counts: Sequence[int]  # of each trip
    x: Tensor  # (C, T, d)
    hot: Tensor  # (steps, C, classes, B): labels
    weights: Tensor  # (steps, C, 1, B)
    products: Tensor  # (C, T, T): <x_i, x_j> + 1 for every j in a batch before that of i


def _trip_samples(dataset: DeviceDataset, trips: BatchPlan) -> _TripSamples:
    table, weights = batches.table(trips.order, trips.works, trips.steps)
    samples = torch.from_numpy(table)
    steps, clients, batch = samples.shape
    counts = [count * batch for count in trips.steps]
    flat = dataset.x.flatten(1)
    by_client = samples.transpose(0, 1).flatten()
    x = flat.index_select(0, by_client).view(clients, steps * batch, -1)
    products = flat.new_zeros(clients, steps * batch, steps * batch)
    if dataset.cache is None:
        _before(x, products, batch)
    else:
        by_row = by_client.view(clients, -1).numpy()
        for row, (client, seen) in enumerate(zip(trips.clients, counts, strict=True)):
            dataset.cache.write(client, by_row[row, :seen], products[row, :seen, :seen])
    return _TripSamples(counts, x, hot_labels(dataset, samples), torch.from_numpy(weights)[:, :, None], products)


class _FirstLayer:
    """The first layer of all rows: its outputs at the start, the samples of the trips and the errors at its outputs."""

    def __init__(self, seen: _TripSamples, weight: Tensor, bias: Tensor, lr: float, chunks: Sequence[int]) -> None:
        self._seen = seen
        self._batch = seen.hot.shape[-1]
        self._lr = lr
        self._errors = seen.x.new_empty(*seen.x.shape[:2], weight.shape[1])  # (C, T, h)
        self._outputs = torch.empty_like(self._errors)
        one_start = weight.stride(0) == 0
        for first, last in _blocks(seen.counts, chunks) if one_start else pairwise(range(len(bias) + 1)):
            rows = slice(first, last)
            samples = slice(0, seen.counts[first])
            x, outputs = (one[rows, samples].flatten(0, 1) for one in (seen.x, self._outputs))
            torch.addmm(bias[first], x, weight[first].T, out=outputs)

    @property
    def size(self) -> int:
        """Number of the layer's parameters."""
        return self._errors.shape[2] * (self._seen.x.shape[2] + 1)

    def outputs(self, step: int, active: int) -> Tensor:
        """Return the layer's outputs for a batch, (C, B, h), after the steps before it."""
        before = slice(0, step * self._batch)
        now = slice(before.stop, before.stop + self._batch)
        outputs = self._outputs[:active, now]
        if not step:
            return outputs.clone()
        products = self._seen.products[:active, now, before]
        errors = self._errors[:active, before]
        return torch.baddbmm(outputs, products, errors, alpha=-self._lr)

    def learn(self, step: int, active: int, error: Tensor) -> None:
        """Take the errors of a batch at the layer's outputs, (C, h, B)."""
        self._errors[:active, step * self._batch : (step + 1) * self._batch] = error.mT

    def add(self, row: int, out: Tensor, weight: float, *, new: bool) -> Tensor:
        """Add the layer's update of a row, times `weight`, to the first elements of `out`; return those after them.

        If `out` is `new`, its old values are overwritten.
        """
        hidden = self._errors.shape[2]
        inputs = self._seen.x.shape[2]
        seen = self._seen.counts[row]
        size = hidden * inputs
        errors = self._errors[row, :seen]
        scale = -self._lr * weight
        out[:size].view(hidden, inputs).addmm_(errors.T, self._seen.x[row, :seen], alpha=scale, beta=1 - new)
        if new:
            out[size:] = 0.0
        out[size : size + hidden].add_(errors.sum(0), alpha=scale)
        return out[size + hidden :]


def _blocks(counts: Sequence[int], chunks: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield (first, last) of rows that share a product: those of a chunk with the longest trip, any other by itself.

    Large products are quicker. Which rows share one follows from the chunk alone. Products of a few samples round by
    their number, so short trips share none: a chunk that is cut for lack of memory has the same bits, too.
    """
    first = 0
    of = chunks or [0] * len(counts)
    whole = counts[0] if counts[0] >= _ALONE else -1
    for _, run in groupby(enumerate(counts), lambda one: of[one[0]] if one[1] == whole else (one[0],)):
        last = first + len(list(run))
        yield first, last
        first = last


def _before(x: Tensor, products: Tensor, batch: int) -> None:
    """Fill `products` (C, T, T) with <x_i, x_j> + 1 for every j in a batch before that of i; the 1 stands for the bias.

    The lower triangle is a square and two smaller triangles: half the products are never computed.
    """
    spans = [(0, x.shape[1])]
    ones = x.new_ones(1, 1, 1)
    while spans:
        first, last = spans.pop()
        rows = columns = slice(first, last)
        if last - first > max(_ALONE, 2 * batch):
            middle = first + (last - first) // batch // 2 * batch
            spans += [(first, middle), (middle, last)]
            rows, columns = slice(middle, last), slice(first, middle)
        products[:, rows, columns] = torch.baddbmm(ones, x[:, rows], x[:, columns].mT)

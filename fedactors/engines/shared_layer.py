"""A dense layer of several clients that began with the same weights and take their steps side by side, by plain SGD.

No client's weight is ever written out. After some steps it is the weight W they began with, less lr times the products
of the errors and inputs that the client has seen, E^T X: the outputs of the layer are x W^T - lr (x X^T) E, and the
errors below it are e W - lr (e E^T) X. So W is read once for all clients and never written; in short trips the rest is
small.

`dense_gram` does the same to the first layer of a model, whose inputs are known before a trip begins.

Shapes: W (outputs, inputs); of each client B samples a step, and T so far: X (T, inputs), E (T, outputs).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import pad

from fedactors.models.layers import Dense

_LARGE = 50_000  # weights below which calls cost more than they save
_FEW = 8  # samples below which products round differently
_SIZES = *range(_FEW, 3 * _FEW), 32, 50, 64, 100, 150, 200, 400  # samples that are tried; more behave as 400


def pays(layer: Dense, samples: int) -> bool:
    """Whether sharing is quicker: trips of so many samples are short enough, and the layer is large enough."""
    weights = layer.inputs * layer.outputs
    return weights >= _LARGE and 2 * samples * (layer.inputs + layer.outputs) <= weights


@cache
def batch_invariant(layer: Dense) -> bool:
    """Whether a sample has the same bits whichever samples are multiplied together with it, on this processor.

    Tried once in a process.
    """
    draws = torch.Generator().manual_seed(0)
    weight = torch.randn(layer.outputs, layer.inputs, generator=draws)
    for factor in (weight.T, weight):
        x = torch.randn(max(_SIZES), len(factor), generator=draws)
        whole = _product(x, factor)
        for size in _SIZES:
            for first in ((len(x) - size) // 2, len(x) - size):
                rows = slice(first, first + size)
                if not torch.equal(_product(x[rows].clone(), factor), whole[rows]):
                    return False
    return True


class SharedLayer:
    """The layer of several trips, which see `samples` each."""

    def __init__(self, weight: Tensor, samples: Sequence[int], lr: float) -> None:
        self._weight = weight.clone()  # begins where memory is aligned
        self._lr = lr
        self._inputs = [weight.new_empty(count, weight.shape[1]) for count in samples]
        self._errors = [weight.new_empty(count, weight.shape[0]) for count in samples]
        self._seen = [0] * len(samples)

    def outputs(self, trips: Sequence[int], x: Sequence[Tensor]) -> Iterator[Tensor]:
        """Yield the layer's outputs without bias, (B, outputs), for the inputs `x` of each trip, (B, inputs)."""
        for trip, mine, found in zip(trips, x, _products(x, self._weight.T), strict=True):
            seen = self._seen[trip]
            inputs = self._inputs[trip]
            if seen:
                found.addmm_(mine @ inputs[:seen].T, self._errors[trip][:seen], alpha=-self._lr)
            inputs[seen : seen + len(mine)] = mine
            yield found

    def learn(self, trips: Sequence[int], errors: Sequence[Tensor]) -> Iterator[Tensor]:
        """Take the errors at the outputs of the layer, and yield those at its inputs, (B, inputs)."""
        for trip, mine, below in zip(trips, errors, _products(errors, self._weight), strict=True):
            seen = self._seen[trip]
            before = self._errors[trip]
            if seen:
                below.addmm_(mine @ before[:seen].T, self._inputs[trip][:seen], alpha=-self._lr)
            before[seen : seen + len(mine)] = mine
            self._seen[trip] += len(mine)
            yield below

    def add(self, trip: int, out: Tensor, weight: float) -> None:
        """Add the update of a trip that has seen all its samples, times `weight`, to `out`, (outputs, inputs)."""
        out.addmm_(self._errors[trip].T, self._inputs[trip], alpha=-self._lr * weight)


def _products(parts: Sequence[Tensor], factor: Tensor) -> Sequence[Tensor]:
    """Return the product of each part with a factor, worked out together.

    Each has memory of its own: where a part begins in a product of all would change the bits of what follows.
    """
    sizes = [len(part) for part in parts]
    return [part.clone() for part in torch.split(_product(torch.cat(list(parts)), factor), sizes)]


def _product(x: Tensor, factor: Tensor) -> Tensor:
    samples = len(x)
    return (pad(x, (0, 0, 0, _FEW - samples)) if samples < _FEW else x).mm(factor)[:samples]

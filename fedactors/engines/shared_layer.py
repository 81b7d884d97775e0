"""A dense layer of several clients who began with the same weights and take their steps side by side, by plain SGD.

No client's weight is ever written out. After some steps it is the weight W they began with, less lr times the products
of the errors and inputs that the client has seen, E^T X: what leaves the layer is x W^T - lr (x X^T) E, and the errors
below it are e W - lr (e E^T) X. So W is read once for all and written by nobody; in short trips the rest is small.

`span` does the same to the first layer of all, whose inputs are known before a trip begins.

Shapes: W (outputs, inputs); of each client B samples a step, and T so far: X (T, inputs), E (T, outputs).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import pad

from fedactors.models.layers import Dense

_LARGE = 50_000  # weights below which calls cost more than what they save
_FEW = 8  # samples below which products round differently
_SIZES = *range(_FEW, 3 * _FEW), 32, 50, 64, 100, 150, 200, 400  # samples that are looked at; with more, as with 400


def pays(layer: Dense, samples: int) -> bool:
    """Whether trips of so many samples are short enough for it, and the layer is large enough."""
    weights = layer.inputs * layer.outputs
    return weights >= _LARGE and 2 * samples * (layer.inputs + layer.outputs) <= weights


@cache
def steady(layer: Dense) -> bool:
    """Whether a sample has the same bits whoever's samples are multiplied together with it, on this processor.

    Looked at once in a process, for layers that may be shared.
    """
    if not pays(layer, 1):
        return True
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
        self._weight, self._lr = weight.clone(), lr  # which begins where memory is aligned
        self._inputs = [weight.new_empty(count, weight.shape[1]) for count in samples]
        self._errors = [weight.new_empty(count, weight.shape[0]) for count in samples]
        self._seen = [0] * len(samples)

    def outputs(self, trips: Sequence[int], x: Sequence[Tensor]) -> Iterator[Tensor]:
        """Yield what leaves the layer without its bias, (B, outputs), when `x`, (B, inputs) for each trip, enters."""
        for trip, mine, found in zip(trips, x, _products(x, self._weight.T), strict=True):
            seen, inputs = self._seen[trip], self._inputs[trip]
            if seen:
                found.addmm_(mine @ inputs[:seen].T, self._errors[trip][:seen], alpha=-self._lr)
            inputs[seen : seen + len(mine)] = mine
            yield found

    def learn(self, trips: Sequence[int], errors: Sequence[Tensor]) -> Iterator[Tensor]:
        """Take the errors of what left the layer, and yield those of what entered it, (B, inputs)."""
        for trip, mine, below in zip(trips, errors, _products(errors, self._weight), strict=True):
            seen, before = self._seen[trip], self._errors[trip]
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

    Each has memory of its own: where in a product of all a part begins would change the bits of what is made of it.
    """
    sizes = [len(part) for part in parts]
    return [part.clone() for part in torch.split(_product(torch.cat(list(parts)), factor), sizes)]


def _product(x: Tensor, factor: Tensor) -> Tensor:
    samples = len(x)
    return (pad(x, (0, 0, 0, _FEW - samples)) if samples < _FEW else x).mm(factor)[:samples]

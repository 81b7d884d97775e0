"""What one vector is on the wire, and where its values lie in a model; without torch, so that the clock can know."""

from __future__ import annotations

from fnmatch import fnmatchcase
from math import ceil, log2, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedactors.errors import ScenarioError, suggestion
from fedactors.models.layers import Model, Shape
from fedactors.models.personal import tensor_names

FLOAT = 32  # bits


class Wire(NamedTuple):
    """The size of one vector as it travels."""

    values: int  # numbers that are sent
    bits: int = FLOAT  # of each
    extra: int = 0  # bits besides: places, scales
    factors: bool = False  # whether the numbers are factors of matrices, in place of entries of the vector
    counts: int = 0  # bits beside the vector, which the server adds up

    @property
    def bytes(self) -> int:
        """Return the whole bytes of one vector."""
        return ceil((self.values * self.bits + self.extra + self.counts) / 8)


def index_bits(size: int) -> int:
    """Return the bits that name one of `size` places."""
    return max(1, ceil(log2(max(2, size))))


def share_of(share: float, size: int) -> int:
    """Return a share of `size` places as a number, at least one."""
    return min(size, max(1, round(share * size)))


class TensorPart(NamedTuple):
    """A tensor of the model whose values travel."""

    name: str
    shape: Shape
    first: int  # position in the model's flat vector

    @property
    def size(self) -> int:
        """Return the number of its values."""
        return prod(self.shape)


class Layout(NamedTuple):
    """The tensors that transforms see, in the order of the flat vector of a model with so many `parameters`."""

    parts: tuple[TensorPart, ...]
    parameters: int

    @property
    def size(self) -> int:
        """Return the number of values."""
        return sum(part.size for part in self.parts)

    @property
    def whole(self) -> bool:
        """Whether they are all values of the model."""
        return self.size == self.parameters

    @property
    def positions(self) -> NDArray[np.int64]:
        """Return the positions of the values in the model's flat vector, ascending."""
        runs = [np.arange(part.first, part.first + part.size, dtype=np.int64) for part in self.parts]
        return np.concatenate([np.zeros(0, np.int64), *runs])

    def without(self, patterns: tuple[str, ...]) -> Layout:
        """Return the layout without the tensors whose names match. Raises ScenarioError if a pattern matches none."""
        names = [part.name for part in self.parts]
        if not names:
            raise ScenarioError("everything stays at the clients (accepted: none)")
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name in names):
                raise ScenarioError(f'no tensor matches "{pattern}"{suggestion(pattern, names)}')
        kept = [part for part in self.parts if not any(fnmatchcase(part.name, pattern) for pattern in patterns)]
        if not kept:
            raise ScenarioError("nothing would travel (accepted: patterns that leave some tensors)")
        return self._replace(parts=tuple(kept))


def layout_of(model: Model, personal: NDArray[np.int64]) -> Layout:
    """Return what transforms see of a model: its parameters, but for those that stay at clients and for buffers."""
    mine = set(personal.tolist())
    parts, first = [], 0
    for name, spec in zip(tensor_names(model), model.tensors, strict=True):
        size = prod(spec.shape)
        if size and not spec.buffer and first not in mine:
            parts.append(TensorPart(name, spec.shape, first))
        first += size
    return Layout(tuple(parts), first)

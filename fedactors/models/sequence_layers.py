"""Layers of models that read identifiers: characters of a text, movies that were seen.

A sample is a row of identifiers, `(places,)`, held as float32, which counts exactly up to 2^24. -1 is an empty place.
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override  # comes with pydantic and torch

from fedactors.models.layers import Dense, Layer, Maker, Shape, TensorSpec


@dataclass(frozen=True)
class _Table(Layer):
    """A table with a row of `width` values for each of `rows` identifiers."""

    rows: int
    width: int

    @override
    def problem(self, shape: Shape) -> str:
        return "" if len(shape) == 1 else "takes rows of identifiers, (places,)"

    @override
    def tensors(self) -> tuple[tuple[str, Shape], ...]:
        return (("weight", (self.rows, self.width)),)


@dataclass(frozen=True)
class Embedding(_Table):
    """The table's row of each place: (places,) to (places, width)."""

    @override
    def output(self, shape: Shape) -> Shape:
        return (*shape, self.width)


@dataclass(frozen=True)
class Bag(_Table):
    """The mean of the table's rows over all places that are not empty: (places,) to (width,)."""

    @override
    def output(self, shape: Shape) -> Shape:
        return (self.width,)


@dataclass(frozen=True)
class Gru(Layer):
    """One layer of gated recurrent units in PyTorch's layout: (places, inputs) to (places, units).

    With gates r, z and a candidate n from the input and the last state h, which begins at 0:

        r, z = sigmoid(W_i x + b_i + W_h h + b_h)   n = tanh(W_i x + b_i + r (W_h h + b_h))   h <- (1 - z) n + z h
    """

    inputs: int
    units: int

    @override
    def problem(self, shape: Shape) -> str:
        return _no_sequence(shape, self.inputs)

    @override
    def output(self, shape: Shape) -> Shape:
        return (shape[0], self.units)

    @override
    def tensors(self) -> tuple[tuple[str, Shape], ...]:
        gates = 3 * self.units
        return (
            ("weight_ih_l0", (gates, self.inputs)),
            ("weight_hh_l0", (gates, self.units)),
            ("bias_ih_l0", (gates,)),
            ("bias_hh_l0", (gates,)),
        )

    @override
    def specs(self) -> tuple[TensorSpec, ...]:
        return tuple(TensorSpec(name, shape, self.units) for name, shape in self.tensors())

    @override
    def flops(self, shape: Shape) -> int:
        return shape[0] * 2 * 3 * self.units * (self.inputs + self.units)


@dataclass(frozen=True)
class PlaceDense(Dense):
    """The same dense layer at every place: (places, inputs) to (places, outputs)."""

    @override
    def problem(self, shape: Shape) -> str:
        return _no_sequence(shape, self.inputs)

    @override
    def output(self, shape: Shape) -> Shape:
        return (shape[0], self.outputs)

    @override
    def flops(self, shape: Shape) -> int:
        return shape[0] * super().flops(shape)


def gru(units: int) -> Maker:
    """Return a maker of recurrent units with as many inputs as arrive."""
    return lambda shape: Gru(shape[-1], units)


def place_dense(outputs: int) -> Maker:
    """Return a maker of a dense layer at every place with as many inputs as arrive."""
    return lambda shape: PlaceDense(shape[-1], outputs)


def _no_sequence(shape: Shape, inputs: int) -> str:
    """Return what is wrong with a shape that should be (places, inputs); nothing if it is that."""
    fits = len(shape) == 2 and shape[1] == inputs
    return "" if fits else f"takes sequences of shape (places, {inputs})"

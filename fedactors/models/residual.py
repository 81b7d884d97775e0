"""Layers of deep convolutional models: group normalisation, and blocks whose input is added to their output."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override  # comes with pydantic and torch

from fedactors.models.layers import Dropout, Layer, Maker, Shape, TensorSpec, stack


@dataclass(frozen=True)
class GroupNorm(Layer):
    """Normalises groups of channels of each sample by itself, then scales and shifts every channel (Wu and He 2018).

    Nothing depends on the other samples of a batch and no statistics are kept, so that only parameters have to be
    averaged. Neither holds for BatchNorm; see `ResNet9.norm`.
    """

    channels: int
    groups: int

    @override
    def problem(self, shape: Shape) -> str:
        if len(shape) != 3 or shape[0] != self.channels:
            return f"takes samples of shape ({self.channels}, height, width)"
        fits = self.channels % self.groups == 0
        return "" if fits else f"{self.groups} groups of {self.channels} channels (accepted: a divisor)"

    @override
    def tensors(self) -> tuple[tuple[str, Shape], ...]:
        return ("weight", (self.channels,)), ("bias", (self.channels,))

    @override
    def specs(self) -> tuple[TensorSpec, ...]:
        return TensorSpec("weight", (self.channels,), 1, 1.0), TensorSpec("bias", (self.channels,), 1, 0.0)


@dataclass(frozen=True)
class Residual(Layer):
    """x + f(x), with f a chain of layers that keeps the shape."""

    layers: tuple[Layer, ...]

    @override
    def problem(self, shape: Shape) -> str:
        inner = shape
        for number, layer in enumerate(self.layers):
            if isinstance(layer, Dropout):
                return "dropout inside a residual block has no layer number of its own (accepted: outside)"
            if problem := layer.problem(inner):
                return f"inside, layer {number}: {problem}"
            inner = layer.output(inner)
        return "" if inner == shape else f"turns {shape} into {inner} (accepted: layers that keep the shape)"

    @override
    def tensors(self) -> tuple[tuple[str, Shape], ...]:
        return tuple((spec.name, spec.shape) for spec in self.specs())

    @override
    def specs(self) -> tuple[TensorSpec, ...]:
        return tuple(
            spec._replace(name=f"{number}.{spec.name}")
            for number, layer in enumerate(self.layers)
            for spec in layer.specs()
        )

    @override
    def flops(self, shape: Shape) -> int:
        total = 0
        for layer in self.layers:
            total, shape = total + layer.flops(shape), layer.output(shape)
        return total


def group_norm(groups: int) -> Maker:
    """Return a maker of a normalisation of as many channels as arrive."""
    return lambda shape: GroupNorm(shape[0], groups)


def residual(*makers: Maker | Layer) -> Maker:
    """Return a maker of a block of these layers. Raises DataError if they do not fit each other."""
    return lambda shape: Residual(stack("residual block", shape, *makers).layers)

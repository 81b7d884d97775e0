"""A model as data: a tuple of layer descriptions, with its shapes, its parameters and its cost.

Nothing here computes. The clock needs sizes and floating-point operations without importing torch; `network`
reads the same description and runs it. Shapes are those of one sample, `(channels, height, width)` or
`(features,)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from math import prod
from typing import ClassVar, Literal, NamedTuple

from typing_extensions import override  # comes with pydantic and torch

from fedactors.errors import DataError
from fedactors.models.loss_description import LossDescription

Shape = tuple[int, ...]
Padding = Literal["same", "valid"]
Precision = Literal["fp32", "tf32", "bf16"]  # of products and convolutions in training; see `precision`
Start = Literal["uniform", "glorot", "zeros"]  # what first values are drawn from; see `network.initial`
Loss = Literal["cross_entropy", "binary", "squared", "hinge", "spreadout"]  # see `losses`
REGULARISERS: frozenset[Loss | LossDescription] = frozenset({"spreadout"})  # functions of the model alone, of no sample


@dataclass(frozen=True)
class Layer:
    """A layer without parameters that leaves the shape as it is; the base of all others."""

    draws_masks: ClassVar[bool] = False
    """Whether training needs the keys of dropout masks."""

    def problem(self, shape: Shape) -> str:
        """Say why a sample of `shape` cannot enter, or nothing."""
        return ""

    def output(self, shape: Shape) -> Shape:
        """Return the shape of what leaves when `shape` enters."""
        return shape

    def tensors(self) -> tuple[tuple[str, Shape], ...]:
        """Return (name, shape) of each parameter tensor, in PyTorch's layout and order."""
        return ()

    def specs(self) -> tuple[TensorSpec, ...]:
        """Return each parameter tensor with what its first values are drawn from; the first one is the weight."""
        tensors = self.tensors()
        return tuple(TensorSpec(name, shape, prod(tensors[0][1][1:])) for name, shape in tensors)

    def flops(self, shape: Shape) -> int:
        """Return the floating-point operations of one forward pass: two for each multiply-add."""
        return 0


@dataclass(frozen=True)
class Relu(Layer):
    """max(x, 0)."""


@dataclass(frozen=True)
class Dropout(Layer):
    """Sets a share `rate` of the activations to zero in training and scales the others by 1 / (1 - rate)."""

    rate: float
    draws_masks: ClassVar[bool] = True

    @override
    def problem(self, shape: Shape) -> str:
        return "" if 0 <= self.rate < 1 else f"dropout rate {self.rate} (accepted: 0 <= rate < 1)"


@dataclass(frozen=True)
class Flatten(Layer):
    """Any shape to (features,)."""

    @override
    def output(self, shape: Shape) -> Shape:
        return (prod(shape),)


@dataclass(frozen=True)
class Dense(Layer):
    """x W^T + b, with W of shape (outputs, inputs)."""

    inputs: int
    outputs: int

    @override
    def problem(self, shape: Shape) -> str:
        return "" if shape == (self.inputs,) else f"takes samples of shape {(self.inputs,)}"

    @override
    def output(self, shape: Shape) -> Shape:
        return (self.outputs,)

    @override
    def tensors(self) -> tuple[tuple[str, Shape], ...]:
        return ("weight", (self.outputs, self.inputs)), ("bias", (self.outputs,))

    @override
    def flops(self, shape: Shape) -> int:
        return 2 * self.inputs * self.outputs


@dataclass(frozen=True)
class Conv(Layer):
    """Two-dimensional convolution with stride 1 and a bias; "same" keeps height and width."""

    inputs: int
    outputs: int
    kernel: int
    padding: Padding = "valid"

    @property
    def border(self) -> int:
        """Zeros added on each side."""
        return self.kernel // 2 if self.padding == "same" else 0

    @override
    def problem(self, shape: Shape) -> str:
        if self.padding == "same" and self.kernel % 2 == 0:
            return f'padding "same" with the even kernel {self.kernel} (accepted: an odd kernel)'
        if len(shape) != 3 or shape[0] != self.inputs:
            return f"takes samples of shape ({self.inputs}, height, width)"
        fits = min(shape[1:]) + 2 * self.border >= self.kernel
        return "" if fits else f"takes images of at least {self.kernel} x {self.kernel}"

    @override
    def output(self, shape: Shape) -> Shape:
        shrink = 2 * self.border - self.kernel + 1
        return (self.outputs, shape[1] + shrink, shape[2] + shrink)

    @override
    def tensors(self) -> tuple[tuple[str, Shape], ...]:
        kernel = (self.outputs, self.inputs, self.kernel, self.kernel)
        return ("weight", kernel), ("bias", (self.outputs,))

    @override
    def flops(self, shape: Shape) -> int:
        return 2 * self.inputs * self.kernel**2 * prod(self.output(shape))


@dataclass(frozen=True)
class Pool(Layer):
    """Maximum over windows of `size` x `size`; what is left at the far edges is dropped."""

    size: int = 2

    @override
    def problem(self, shape: Shape) -> str:
        fits = len(shape) == 3 and min(shape[1:]) >= self.size
        return "" if fits else f"takes images of at least {self.size} x {self.size}"

    @override
    def output(self, shape: Shape) -> Shape:
        return (shape[0], shape[1] // self.size, shape[2] // self.size)


class TensorSpec(NamedTuple):
    """One parameter tensor of a model: its place in the flat vector is the order of `Model.tensors`."""

    name: str  # as in the equivalent torch.nn.Sequential: "3.weight"
    shape: Shape
    fan_in: int  # inputs that one output of the layer sees
    fill: float | None = None  # what it starts from, if it is not drawn
    buffer: bool = False  # whether it is state that a forward pass writes, such as BatchNorm's statistics


class Layers(NamedTuple):
    """Lengths of the runs of a flat parameter vector that count as layers, in order; empty if it is all one."""

    tensor: tuple[int, ...] = ()  # one for each parameter tensor
    module: tuple[int, ...] = ()  # one for each layer that has parameters: its weight and bias together


@dataclass(frozen=True)
class Model:
    """A chain of layers for samples of `input_shape`.

    Tensors carry the names they have in the equivalent `torch.nn.Sequential`, so saved weights load there.
    Two models are equal when they are the same description. Raises DataError if a layer cannot take its
    inputs.
    """

    name: str
    input_shape: Shape
    layers: tuple[Layer, ...]
    start: Start = "uniform"
    loss: Loss | LossDescription = "cross_entropy"  # minimised by training
    precision: Precision = "fp32"  # of training; a model is always evaluated in float32
    origin: Layer | None = None  # the module of the user whose chain of layers this is, and whose first values it has

    def __post_init__(self) -> None:
        for _ in self._traced():
            pass

    def _traced(self) -> Iterator[tuple[Layer, Shape]]:
        """Yield each layer with the shape that enters it."""
        shape = self.input_shape
        for number, layer in enumerate(self.layers):
            problem = layer.problem(shape)
            if problem:
                raise DataError(f'model "{self.name}", layer {number} ({layer}): {problem}, found {shape}')
            yield layer, shape
            shape = layer.output(shape)

    @cached_property
    def output_shape(self) -> Shape:
        """Shape of the model's answer to one sample."""
        shape = self.input_shape
        for layer in self.layers:
            shape = layer.output(shape)
        return shape

    @cached_property
    def tensors(self) -> tuple[TensorSpec, ...]:
        """Every parameter tensor, in the order of the flat parameter vector."""
        return tuple(
            spec._replace(name=f"{number}.{spec.name}")
            for number, layer in enumerate(self.layers)
            for spec in layer.specs()
        )

    @cached_property
    def runs(self) -> Layers:
        """Where its layers lie in the flat parameter vector; buffers are apart from the parameters of their layer."""
        modules = groupby(self.tensors, lambda tensor: (tensor.buffer, tensor.name.rpartition(".")[0]))
        each = tuple(prod(tensor.shape) for tensor in self.tensors)
        return Layers(each, tuple(sum(prod(tensor.shape) for tensor in tensors) for _, tensors in modules))

    @cached_property
    def parameters(self) -> int:
        """Number of trained values."""
        return sum(prod(tensor.shape) for tensor in self.tensors)

    @cached_property
    def buffers(self) -> tuple[TensorSpec, ...]:
        """The last tensors, which forward passes in training write and no gradient moves; most models have none."""
        return tuple(spec for spec in self.tensors if spec.buffer)

    @cached_property
    def buffer_values(self) -> int:
        """Number of values at the end of the flat vector that are buffers."""
        return sum(prod(spec.shape) for spec in self.buffers)

    @cached_property
    def draws_masks(self) -> bool:
        """Whether what it does in training depends on the key of its dropout masks."""
        return any(layer.draws_masks for layer in self.layers)

    @cached_property
    def forward_flops(self) -> int:
        """Floating-point operations of one forward pass over one sample; only multiply-adds count, as two."""
        return sum(layer.flops(shape) for layer, shape in self._traced())

    @cached_property
    def flops(self) -> int:
        """Floating-point operations of forward and backward pass over one sample.

        The backward pass costs a forward pass for the gradient of the weights and another one for the
        gradient of the input, which the first layer with weights need not compute.
        """
        first = next((layer.flops(shape) for layer, shape in self._traced() if layer.tensors()), 0)
        return 3 * self.forward_flops - first


Maker = Callable[[Shape], Layer]  # makes a layer that takes the shape it is given


def conv(outputs: int, kernel: int, padding: Padding) -> Maker:
    """Return a maker of a convolution with as many input channels as arrive."""
    return lambda shape: Conv(shape[0], outputs, kernel, padding)


def dense(outputs: int) -> Maker:
    """Return a maker of a dense layer with as many inputs as arrive."""
    return lambda shape: Dense(shape[0], outputs)


def stack(
    name: str, input_shape: Shape, *makers: Maker | Layer, start: Start = "uniform", loss: Loss = "cross_entropy"
) -> Model:
    """Return the model of these layers, each made to fit what the one before it gives.

    Raises DataError if a layer cannot be made to fit `input_shape`.
    """
    layers: list[Layer] = []
    shape = input_shape
    for maker in makers:
        layer = maker if isinstance(maker, Layer) else maker(shape)
        layers.append(layer)
        if layer.problem(shape):
            break  # which the model reports, with the layer's place
        shape = layer.output(shape)
    return Model(name, input_shape, tuple(layers), start, loss)

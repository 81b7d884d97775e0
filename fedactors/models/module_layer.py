"""A `torch.nn.Module` of the user as one layer of a model: its parameters are the model's tensors.

Here is the description only, without torch, so that it travels and compares like every other layer; `torch_modules`
makes and runs the module. The flat parameter vector holds the module's trainable parameters in the order of
`named_parameters`, then its floating-point buffers. Frozen parameters (`requires_grad=False`) are constants of the
description, and so are buffers that no pass changes: they neither travel nor count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from fedactors.models.layers import Layer, Model, Shape, TensorSpec
from fedactors.own_code.user_code import Reference

BufferPolicy = Literal["average", "keep_global", "local"]

scenario_seed: ContextVar[int] = ContextVar("scenario_seed", default=0)
"""The seed of the scenario whose model is described: a module draws what is never trained by it, too."""


class InputSpec(NamedTuple):
    """One input of a module: the shape of a sample's part of it, and whether it holds identifiers."""

    name: str  # keyword of `forward`; empty for a positional argument
    shape: Shape
    integer: bool = False

    @property
    def size(self) -> int:
        """Values of one sample."""
        return prod(self.shape)


class ModuleConstants:
    """Named arrays that belong to a description; two are equal when they hold the same values."""

    def __init__(self, arrays: Mapping[str, NDArray[np.generic]]) -> None:
        self.arrays = dict(arrays)
        digest = hashlib.sha256()
        for name, array in self.arrays.items():
            digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        self.digest = digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ModuleConstants) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"ModuleConstants({len(self.arrays)} arrays, {self.digest[:12]})"


@dataclass(frozen=True)
class ModuleMaker:
    """How a module is made: something callable, and its keyword arguments as JSON."""

    factory: Reference
    arguments: str = "{}"

    def __str__(self) -> str:
        return str(self.factory)


@dataclass(frozen=True)
class ModuleLayer(Layer):
    """A module; see the head of this file for what its tensors are."""

    maker: ModuleMaker
    inputs: tuple[InputSpec, ...]
    trainable: tuple[TensorSpec, ...]
    buffers: tuple[TensorSpec, ...]
    output_shape: Shape
    cost: int  # floating-point operations of one forward pass over one sample
    constants: ModuleConstants  # whatever else it holds, and all first values if weights were given
    policy: BufferPolicy = "average"
    vmappable: bool = True  # whether gradients of many clients can be computed at once by torch.func.vmap
    mixes: bool = False  # whether a sample's output depends on the others of its batch, as under BatchNorm
    convolves: bool = False  # whether it has convolutions, which gain nothing from vmap on a CPU
    fixed: tuple[
        str, ...
    ] = ()  # constants that are saved buffers of floats: forward has not changed them, but it might
    draws_masks: ClassVar[bool] = True

    def __repr__(self) -> str:
        return f"ModuleLayer({self.maker})"

    @cached_property
    def trained(self) -> frozenset[str]:
        """Names of the parameters that are trained."""
        return frozenset(spec.name for spec in self.trainable)

    @cached_property
    def moved(self) -> frozenset[str]:
        """Names of all tensors that training changes."""
        return frozenset(spec.name for spec in self.specs())

    @override
    def problem(self, shape: Shape) -> str:
        accepted = self.inputs[0].shape if len(self.inputs) == 1 else (sum(part.size for part in self.inputs),)
        return "" if shape == accepted else f"takes samples of shape {accepted}"

    @override
    def output(self, shape: Shape) -> Shape:
        return self.output_shape

    @override
    def tensors(self) -> tuple[tuple[str, Shape], ...]:
        return tuple((spec.name, spec.shape) for spec in self.specs())

    @override
    def specs(self) -> tuple[TensorSpec, ...]:
        return (*self.trainable, *self.buffers)

    @override
    def flops(self, shape: Shape) -> int:
        return self.cost


def module_of(model: Model) -> ModuleLayer | None:
    """Return the module of the user that a model is; None if it is a model of fedactors."""
    layers = (model.origin,) if model.origin is not None else model.layers
    return layers[0] if len(layers) == 1 and isinstance(layers[0], ModuleLayer) else None

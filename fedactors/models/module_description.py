"""Looks at a module of the user once: its parameters, its output, its cost, and whether vmap can run it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.utils.flop_counter import FlopCounterMode

from fedactors.errors import DataError, suggestion
from fedactors.models.layers import Model, Shape, TensorSpec
from fedactors.models.module_layer import BufferPolicy, InputSpec, ModuleConstants, ModuleLayer, ModuleMaker
from fedactors.models.recognised import Chain, chain_of
from fedactors.models.torch_modules import (
    MaskStep,
    adapted,
    applied,
    arguments_of,
    as_taken,
    current_step,
    initial,
    made,
    raw_module,
    user_code_of,
)

_PROBED = 2  # samples of the batch by which a module is looked at


def described(
    maker: ModuleMaker,
    inputs: tuple[InputSpec, ...],
    *,
    weights: Path | None = None,
    policy: BufferPolicy = "average",
    trainable: Sequence[str] = (),
) -> Model:
    """Return the model of a module: the chain of known layers that it is, or else the module as one layer.

    Raises what `describe` raises.
    """
    layer = describe(maker, inputs, weights=weights, policy=policy, trainable=trainable)
    shape = _shape(inputs)
    return _as_chain(layer, shape) or Model(str(maker), shape, (layer,))


def _shape(inputs: tuple[InputSpec, ...]) -> Shape:
    """Return the shape of a sample; several parts lie one after the other in a flat one."""
    return inputs[0].shape if len(inputs) == 1 else (sum(part.size for part in inputs),)


def _as_chain(layer: ModuleLayer, shape: Shape) -> Model | None:
    """Return the model as a chain of known layers, whose first values are the module's; None if it is no such."""
    if not _may_be_chain(layer):
        return None
    known = {spec.name: spec for spec in layer.trainable}
    chain = chain_of(made(layer)) or []
    names = _tensor_names(chain)
    if sorted(names) != sorted(known):
        return None
    ordered = replace(layer, trainable=tuple(known[name] for name in names))
    try:
        return Model(str(layer.maker), shape, tuple(one for one, _ in chain), origin=ordered)
    except DataError:  # a dense layer over the last axis of images, say
        return None


def _tensor_names(chain: Chain) -> list[str]:
    """Return what the module calls the tensors of the layers, in their order."""
    return [f"{place}.{name}" if place else name for layer, place in chain for name, _ in layer.tensors()]


def _may_be_chain(layer: ModuleLayer) -> bool:
    """Whether a module has one input of floats, and holds nothing but what it trains."""
    trained = {spec.name for spec in layer.trainable}
    frozen = layer.constants.arrays.keys() - trained
    return not (layer.buffers or frozen or len(layer.inputs) > 1 or layer.inputs[0].integer)


def describe(
    maker: ModuleMaker,
    inputs: tuple[InputSpec, ...],
    *,
    weights: Path | None = None,
    policy: BufferPolicy = "average",
    trainable: Sequence[str] = (),
) -> ModuleLayer:
    """Make a module, look at it once, and return its description.

    Raises DataError, with the line of the user's code, if it cannot be made, has nothing to train, or does not take a
    batch of such samples.
    """
    module = raw_module(maker, 0)
    inputs = as_taken(module, inputs)
    _refuse_lazy(module, maker)
    if weights is not None:
        _load(module, maker, weights)
    module = adapted(module, maker)
    parameters = dict(module.named_parameters())
    _freeze(maker, parameters, trainable)
    _refuse_untrainable(maker, parameters)
    moved = tuple(_spec(name, value) for name, value in parameters.items() if value.requires_grad)
    buffers = _buffers(module)
    drawn = {spec.name for spec in (*moved, *buffers)} if weights is None else set[str]()
    constants = _constants(module, drawn)
    output, cost = _probe(module, maker, inputs)
    least = 2 * sum(value.numel() for value in parameters.values())  # recurrences are not counted by torch
    draft = ModuleLayer(maker, inputs, moved, buffers, output, max(cost, least), constants, policy)
    draws = _draws(draft)
    return replace(
        draft,
        draws=draws,
        vmappable=not draws and _vmappable(draft),
        mixes=_mixes(draft),
        convolves=any(isinstance(part, nn.modules.conv._ConvNd) for part in module.modules()),
    )


def _refuse_lazy(module: nn.Module, maker: ModuleMaker) -> None:
    """Raise DataError if a part of a module takes its shape from the first batch."""
    parts = module.named_modules()
    lazy = next((name for name, part in parts if isinstance(part, nn.modules.lazy.LazyModuleMixin)), None)
    if lazy is not None:
        found = type(module.get_submodule(lazy)).__name__
        raise DataError(f"{maker}: {lazy or 'it'} is a {found}, without a shape yet (accepted: a layer with its sizes)")


def _refuse_untrainable(maker: ModuleMaker, parameters: Mapping[str, nn.Parameter]) -> None:
    """Raise DataError if no parameter is trained, or one has another type than float32."""
    if not any(parameter.requires_grad for parameter in parameters.values()):
        raise DataError(f"{maker}: has no parameters to train (accepted: at least one with requires_grad)")
    for name, parameter in parameters.items():
        if parameter.dtype != torch.float32:
            raise DataError(f"{maker}: parameter {name} is {parameter.dtype} (accepted: torch.float32)")


def _buffers(module: nn.Module) -> tuple[TensorSpec, ...]:
    """Return the buffers that training changes: those of floating-point numbers that are saved with the module."""
    saved = module.state_dict().keys()
    named = module.named_buffers()
    return tuple(
        _spec(name, value)._replace(buffer=True) for name, value in named if value.is_floating_point() and name in saved
    )


def _constants(module: nn.Module, drawn: Collection[str]) -> ModuleConstants:
    """Return the values of all parameters and buffers but those that are drawn anew for every run."""
    named = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    return ModuleConstants({name: value.detach().numpy().copy() for name, value in named.items() if name not in drawn})


def _freeze(maker: ModuleMaker, parameters: dict[str, nn.Parameter], trainable: Sequence[str]) -> None:
    """Freeze what no pattern of `trainable` names, if there is any. Raises DataError if a pattern names nothing."""
    for pattern in trainable:
        if not any(fnmatchcase(name, pattern) for name in parameters):
            raise DataError(f'{maker}: trainable: no parameter is called "{pattern}"{suggestion(pattern, parameters)}')
    for name, parameter in parameters.items():
        parameter.requires_grad_(
            parameter.requires_grad if not trainable else any(fnmatchcase(name, pattern) for pattern in trainable)
        )


def _spec(name: str, value: Tensor) -> TensorSpec:
    return TensorSpec(name, tuple(value.shape), max(1, value.shape[1:].numel() if value.dim() > 1 else 1))


def _samples(inputs: tuple[InputSpec, ...], count: int) -> Tensor:
    """Return made-up samples that fit: zeros for identifiers, else normal values."""
    generator = torch.Generator().manual_seed(0)
    parts = [
        torch.zeros(count, *spec.shape) if spec.integer else torch.randn(count, *spec.shape, generator=generator)
        for spec in inputs
    ]
    return parts[0] if len(parts) == 1 else torch.cat([part.reshape(len(part), -1) for part in parts], 1)


def _probe(module: nn.Module, maker: ModuleMaker, inputs: tuple[InputSpec, ...]) -> tuple[Shape, int]:
    """Return the shape of the output for one sample, and the operations of its forward pass."""
    args, kwargs = arguments_of(inputs, _samples(inputs, _PROBED))
    shapes = ", ".join(str((_PROBED, *spec.shape)) for spec in inputs)
    module.eval()
    with (
        torch.no_grad(),
        user_code_of(maker, f"forward on a batch of shape {shapes} raised"),
        FlopCounterMode(display=False) as counter,
    ):
        output = module(*args, **kwargs)
    if not isinstance(output, Tensor):
        raise DataError(f"{maker}: forward returned {type(output).__name__} (accepted: a tensor)")
    if output.dim() < 2 or output.shape[0] != _PROBED:
        raise DataError(
            f"{maker}: forward returned shape {tuple(output.shape)} for {_PROBED} samples"
            f" (accepted: ({_PROBED}, outputs) or ({_PROBED}, places, outputs))"
        )
    return tuple(output.shape[1:]), counter.get_total_flops() // _PROBED


def _draws(layer: ModuleLayer) -> bool:
    """Whether two forward passes in training mode differ though the keys of dropout are the same."""
    x = _samples(layer.inputs, _PROBED)
    return not torch.equal(_trained_output(layer, x, seed=0), _trained_output(layer, x, seed=1))


def _mixes(layer: ModuleLayer) -> bool:
    """Whether the first sample's output in training mode changes when the other sample of its batch does."""
    x = _samples(layer.inputs, 3)
    one, other = (_trained_output(layer, x[rows], seed=0)[0] for rows in ([0, 1], [0, 2]))
    return not torch.allclose(one, other, rtol=1e-4, atol=1e-6)


def _trained_output(layer: ModuleLayer, x: Tensor, seed: int) -> Tensor:
    """Return the output of a batch in training mode, torch's generator seeded. Raises DataError as `describe` does."""
    module = made(layer)
    tensors = [torch.from_numpy(part) for part in _split(layer, initial(layer, 0))]
    args, kwargs = arguments_of(layer.inputs, x)
    module.train()
    named = {spec.name: tensor.clone() for spec, tensor in zip(layer.specs(), tensors, strict=True)}
    token = current_step.set(MaskStep(torch.tensor(0), 0, 0))
    try:
        with (
            torch.random.fork_rng(devices=[]),
            torch.no_grad(),
            user_code_of(layer.maker, f"forward in training mode on a batch of {len(x)} samples raised"),
        ):
            torch.manual_seed(seed)
            output: Tensor = functional_call(module, named, args, kwargs)
            return output
    finally:
        current_step.reset(token)


def _vmappable(layer: ModuleLayer) -> bool:
    """Whether gradients of two clients at once are those of each, and are computed at once: tried once.

    torch warns where vmap can only compute one client after the other, as with LSTMs: that is slower than to do so.
    """
    made(layer)
    flat = torch.from_numpy(initial(layer, 0)).expand(2, -1).clone()
    x = _samples(layer.inputs, 2 * _PROBED).view(2, _PROBED, *_shape(layer.inputs))

    def total(flat: Tensor, x: Tensor, key: Tensor) -> Tensor:
        return applied(layer, _views(layer, flat), x, key, 0, 0).square().mean()

    keys = torch.zeros(2, dtype=torch.int64)
    gradient: Callable[..., Any] = grad(total)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            together = vmap(gradient)(flat, x, keys)
        alone = torch.stack([gradient(flat[row], x[row], keys[row]) for row in range(2)])
    except Exception:
        return False
    return not any("batching rule" in str(one.message) for one in warned) and bool(
        torch.allclose(together, alone, rtol=1e-3, atol=1e-5)
    )


def _split(layer: ModuleLayer, flat: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    ends = np.cumsum([prod(spec.shape) for spec in layer.specs()])[:-1]
    return [part.reshape(spec.shape) for spec, part in zip(layer.specs(), np.split(flat, ends), strict=True)]


def _views(layer: ModuleLayer, flat: Tensor) -> list[Tensor]:
    parts = torch.split(flat, [prod(spec.shape) for spec in layer.specs()], -1)
    return [part.reshape(*part.shape[:-1], *spec.shape) for spec, part in zip(layer.specs(), parts, strict=True)]


def _load(module: nn.Module, maker: ModuleMaker, weights: Path) -> None:
    """Load saved weights. Raises DataError if the file cannot be read, or has other names or shapes."""
    try:
        if weights.suffix == ".safetensors":
            from safetensors.torch import load_file

            state = load_file(weights)
        else:
            state = torch.load(weights, weights_only=True, map_location="cpu")
    except FileNotFoundError:
        raise DataError(f"{maker}: no file of weights {weights}") from None
    except Exception as error:
        found = type(error).__name__
        raise DataError(
            f"{weights}: no weights: {found} (accepted: safetensors, or torch.save of a state_dict)"
        ) from None
    try:
        module.load_state_dict(state)
    except (RuntimeError, AttributeError, TypeError) as error:
        text = " ".join(str(error).split())[:400]
        raise DataError(f"{weights}: does not fit {maker}: {text}") from None

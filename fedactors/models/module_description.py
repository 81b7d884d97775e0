"""Looks at a module of the user once: its parameters and buffers, and by `module_probe` how it can be run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import torch
from torch import Tensor, nn

from fedactors.errors import DataError, suggestion
from fedactors.models import module_probe
from fedactors.models.layers import Model, Shape, TensorSpec
from fedactors.models.module_layer import (
    BufferPolicy,
    InputSpec,
    ModuleConstants,
    ModuleLayer,
    ModuleMaker,
    scenario_seed,
)
from fedactors.models.recognised import Chain, chain_of
from fedactors.models.torch_modules import adapted, as_taken, first_seed, made, raw_module
from fedactors.models.trained_weights import load_weights


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
        model = Model(str(layer.maker), shape, tuple(one for one, _ in chain), origin=ordered)
    except DataError:  # a dense layer over the last axis of images, say
        return None
    x = module_probe.made_up(made(layer), layer.inputs)
    return model if module_probe.same_as_module(model, ordered, x) else None


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
    """Make a module, look at it once, and return its description; what it does not train is of the `scenario_seed`.

    Raises DataError, with the line of the user's code, if it cannot be made, has nothing to train, or does not take a
    batch of such samples.
    """
    module = raw_module(maker, first_seed(scenario_seed.get()))
    inputs = as_taken(module, inputs)
    _refuse_lazy(module, maker)
    if weights is not None:
        load_weights(module, maker, weights)
    module = adapted(module, maker)
    parameters = dict(module.named_parameters())
    _freeze(maker, parameters, trainable)
    _refuse_untrainable(maker, parameters)
    moved = tuple(_spec(name, value) for name, value in parameters.items() if value.requires_grad)
    buffers = _buffers(module)
    drawn = {spec.name for spec in (*moved, *buffers)} if weights is None else set[str]()
    constants = _constants(module, drawn)
    x = module_probe.made_up(module, inputs)
    output, cost = module_probe.output_and_cost(module, maker, inputs, x)
    least = 2 * sum(value.numel() for value in parameters.values())  # recurrences are not counted by torch
    draft = ModuleLayer(maker, inputs, moved, buffers, output, max(cost, least), constants, policy)
    left = module_probe.refuse_memory(draft, x).left
    draft = _with_fixed(draft, module, module_probe.fixed_buffers(draft, module, left))
    return replace(
        draft,
        vmappable=module_probe.vmappable(draft),
        mixes=module_probe.mixes(draft, x),
        convolves=any(isinstance(part, nn.modules.conv._ConvNd) for part in module.modules()),
    )


def _with_fixed(layer: ModuleLayer, module: nn.Module, fixed: tuple[str, ...]) -> ModuleLayer:
    """Return the layer with buffers that no pass changes, `fixed`, among its constants.

    Raises DataError if another buffer holds what no average can: it travels with the model.
    """
    moved = tuple(spec for spec in layer.buffers if spec.name not in fixed)
    for spec in moved:
        value = module.get_buffer(spec.name)
        if not value.isfinite().all():
            bad = value[~value.isfinite()][0].item()
            raise DataError(
                f"{layer.maker}: the buffer {spec.name} holds {bad} (accepted: finite numbers, as they are averaged; or"
                " register_buffer(..., persistent=False))"
            )
    arrays = {**layer.constants.arrays, **{name: module.get_buffer(name).numpy().copy() for name in fixed}}
    return replace(layer, buffers=moved, constants=ModuleConstants(arrays), fixed=fixed)


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

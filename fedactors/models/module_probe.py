"""Runs a module of the user on a few made-up samples: what it answers, what it costs, and how it can be run.

A module is run as a function of its tensors. So it may keep nothing from one batch for the next but buffers of floats
that are saved with it: those travel with the model, all else would depend on which clients a process trains.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.utils.flop_counter import FlopCounterMode

from fedactors.errors import DataError
from fedactors.models import network
from fedactors.models.dropout import MaskStep, current_step
from fedactors.models.layers import Model, Shape
from fedactors.models.module_layer import InputSpec, ModuleLayer, ModuleMaker
from fedactors.models.torch_modules import (
    applied,
    arguments_of,
    initial,
    loaded,
    made,
    user_code_of,
)
from fedactors.own_code.held_values import first_difference, held_by_module

_SAMPLES = 4  # made up: batches of two for two clients
_IDENTIFIERS = " of integers, which are identifiers (accepted: integers: values in the data set, for floats)"
PROBED = 2  # samples of the batch whose output is looked at
_NORMALISING = nn.modules.batchnorm._BatchNorm


def made_up(module: nn.Module, inputs: tuple[InputSpec, ...]) -> Tensor:
    """Return made-up samples `(_SAMPLES, …)` that fit: normal values; as identifiers 0 and 1, or 0 if there is no 1."""
    x = _drawn(inputs, 1)
    if any(spec.integer for spec in inputs):
        args, kwargs = arguments_of(inputs, x)
        try:
            with torch.no_grad():
                module.eval()(*args, **kwargs)
        except Exception:  # a table of one row, say; what else is wrong is told of the samples returned
            return _drawn(inputs, 0)
    return x


def _drawn(inputs: tuple[InputSpec, ...], largest: int) -> Tensor:
    """Return samples with identifiers up to `largest`, for which nothing is drawn if that is 0."""
    generator = torch.Generator().manual_seed(0)
    parts = [_part(spec, largest, generator) for spec in inputs]
    return parts[0] if len(parts) == 1 else torch.cat([part.reshape(len(part), -1) for part in parts], 1)


def _part(spec: InputSpec, largest: int, generator: torch.Generator) -> Tensor:
    shape = (_SAMPLES, *spec.shape)
    if not spec.integer:
        return torch.randn(shape, generator=generator)
    return torch.randint(largest + 1, shape, generator=generator).float() if largest else torch.zeros(shape)


def output_and_cost(
    module: nn.Module, maker: ModuleMaker, inputs: tuple[InputSpec, ...], x: Tensor
) -> tuple[Shape, int]:
    """Return the shape of the output for one sample, and the operations of its forward pass.

    Raises DataError if the module does not take a batch of such samples, or returns no tensor of outputs for each.
    """
    args, kwargs = arguments_of(inputs, x[:PROBED])
    shapes = ", ".join(f"{(PROBED, *spec.shape)}{_IDENTIFIERS * spec.integer}" for spec in inputs)
    module.eval()
    with (
        torch.no_grad(),
        user_code_of(maker, f"forward on a batch of shape {shapes} raised"),
        FlopCounterMode(display=False) as counter,
    ):
        output = module(*args, **kwargs)
    if not isinstance(output, Tensor):
        wrapped = "; a module around it may return its logits" if isinstance(output, Mapping) else ""
        raise DataError(f"{maker}: forward returned {type(output).__name__} (accepted: a tensor{wrapped})")
    if output.dim() < 2 or output.shape[0] != PROBED:
        raise DataError(
            f"{maker}: forward returned shape {tuple(output.shape)} for {PROBED} samples"
            f" (accepted: ({PROBED}, outputs) or ({PROBED}, places, outputs))"
        )
    return tuple(output.shape[1:]), counter.get_total_flops() // PROBED


def refuse_memory(layer: ModuleLayer, x: Tensor) -> Pass:
    """Return what a pass over one batch in training leaves; a second one over the same batch leaves the same.

    Raises DataError if the second one, in training or in evaluation, changes what the layer's tensors do not hold, or
    returns something else; in evaluation also from another seed of torch's generator.
    """
    module, x = loaded(layer), x[:PROBED]
    first = passed(layer, module, x)
    before = _state(layer, module)
    _refuse_replaced(layer, first)
    second = passed(layer, module, x)
    _refuse_change(layer, before, _state(layer, module))
    if not _alike(first.output, second.output):
        raise DataError(
            f"{layer.maker}: forward in training mode returns something else when it is called again with the same"
            " batch (accepted: random numbers of torch's own generator, and buffers of floats for what it keeps)"
        )
    seen = passed(layer, module, x, training=False)
    before = _state(layer, module)
    again = passed(layer, module, x, training=False, seed=1)
    _refuse_change(layer, before, _state(layer, module))
    if not _alike(seen.output, again.output):
        raise DataError(
            f"{layer.maker}: forward in evaluation returns something else when it is called again with the same batch"
            " (accepted: random numbers in training mode only, such as F.dropout(x, p, training=self.training))"
        )
    return first


def fixed_buffers(layer: ModuleLayer, module: nn.Module, left: Mapping[str, Tensor]) -> tuple[str, ...]:
    """Return which buffers no pass changes, from what a pass in training has `left`.

    None, if it changes one that is no statistic of a normalisation: that may count passes, and others may change later.
    """
    first = _named(layer)
    changed = [spec.name for spec in layer.buffers if not torch.equal(first[spec.name], left[spec.name])]
    places = {name.rpartition(".")[0] for name in changed}
    if not all(isinstance(module.get_submodule(place), nn.modules.batchnorm._NormBase) for place in places):
        return ()
    return tuple(spec.name for spec in layer.buffers if spec.name.rpartition(".")[0] not in places)


def _refuse_replaced(layer: ModuleLayer, found: Pass) -> None:
    """Raise DataError if a pass has put another tensor in the place of a buffer: it would not leave the pass."""
    for spec in layer.buffers:
        one, other = found.given[spec.name], found.left[spec.name]
        if one is not other and not torch.equal(one, other):
            raise DataError(
                f"{layer.maker}: forward replaces the buffer {spec.name} by another tensor (accepted: a change in"
                f" place, such as self.{spec.name}.copy_(...))"
            )


def _alike(one: Tensor, other: Tensor) -> bool:
    return torch.allclose(one, other, rtol=1e-4, atol=1e-6, equal_nan=True)


def _refuse_change(layer: ModuleLayer, before: Mapping[str, object], after: Mapping[str, object]) -> None:
    """Raise DataError if two states of a module differ."""
    changed = first_difference(before, after)
    if changed is not None:
        raise DataError(
            f"{layer.maker}: forward changes {changed}, which is neither a parameter nor a saved buffer of floats"
            " (accepted: register_buffer of a float tensor)"
        )


def _state(layer: ModuleLayer, module: nn.Module) -> dict[str, object]:
    return held_by_module(module, layer.moved, layer.maker.factory.module)


def mixes(layer: ModuleLayer, x: Tensor) -> bool:
    """Whether the first sample's output in training mode depends on the other samples of its batch."""
    module = made(layer).train()
    norms = [part for part in module.modules() if isinstance(part, _NORMALISING)]
    if any(norm.training or norm.running_mean is None for norm in norms):
        return True
    one, other = (_trained_output(layer, module, x[rows])[0] for rows in ([0, 1], [0, 2]))
    return not torch.allclose(one, other, rtol=1e-4, atol=1e-6)


def _trained_output(layer: ModuleLayer, module: nn.Module, x: Tensor) -> Tensor:
    return passed(layer, module, x).output


class Pass(NamedTuple):
    """What a pass over a batch leaves."""

    output: Tensor
    given: dict[str, Tensor]  # the layer's tensors, by name
    left: dict[str, Tensor]  # what the module has in their places: the same, or what it has replaced them by


def passed(layer: ModuleLayer, module: nn.Module, x: Tensor, *, training: bool = True, seed: int = 0) -> Pass:
    """Pass a batch from the layer's first values, torch's generator being seeded.

    Raises DataError if the module raises something, or returns no tensor of the shape that it has in evaluation.
    """
    args, kwargs = arguments_of(layer.inputs, x.clone())  # it may change them
    left = _named(layer)
    given = dict(left)
    mode = "training mode" if training else "evaluation"
    token = current_step.set(MaskStep(torch.tensor(0), 0, 0) if training else None)
    try:
        with (
            torch.random.fork_rng(devices=[]),
            torch.no_grad(),
            user_code_of(layer.maker, f"forward in {mode} on a batch of {len(x)} samples raised"),
        ):
            torch.manual_seed(seed)
            output: object = functional_call(module.train(training), left, args, kwargs)
    finally:
        current_step.reset(token)
    expected = (len(x), *layer.output_shape)
    if isinstance(output, Tensor) and output.shape == expected:
        return Pass(output, given, left)
    found = f"shape {tuple(output.shape)}" if isinstance(output, Tensor) else type(output).__name__
    raise DataError(
        f"{layer.maker}: forward in {mode} returned {found} (accepted: a tensor of shape {expected}, as in"
        " evaluation; some models of torchvision: arguments: {aux_logits: false})"
    )


def _named(layer: ModuleLayer) -> dict[str, Tensor]:
    """Return the layer's first values by name."""
    return {spec.name: tensor for spec, tensor in zip(layer.specs(), _first(layer), strict=True)}


def _first(layer: ModuleLayer) -> list[Tensor]:
    return _views(layer, torch.from_numpy(initial(layer, 0)).clone())


def _views(layer: ModuleLayer, flat: Tensor) -> list[Tensor]:
    """Return the layer's tensors as views of a flat vector."""
    parts = torch.split(flat, [prod(spec.shape) for spec in layer.specs()], -1)
    return [part.reshape((*part.shape[:-1], *spec.shape)) for spec, part in zip(layer.specs(), parts, strict=True)]


def vmappable(layer: ModuleLayer) -> bool:
    """Whether gradients of two clients at once are those of each, and are computed at once: tried once.

    It draws no random numbers of torch, then. torch warns where vmap can only compute one client after the other, as
    with LSTMs: that is slower than to do so. Identifiers are 0: how large chunks are follows from what is found here,
    so it is part of the bits of results.
    """
    made(layer)
    flat = torch.from_numpy(initial(layer, 0)).expand(2, -1).clone()
    x = _drawn(layer.inputs, 0)
    x = x.reshape(2, PROBED, *x.shape[1:])

    def total(flat: Tensor, x: Tensor, key: Tensor) -> Tensor:
        return applied(layer, _views(layer, flat), x, key, 0, 0).square().mean()

    keys = torch.zeros(2, dtype=torch.int64)
    gradient: Callable[..., Any] = grad(total)
    try:
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            together = vmap(gradient)(flat, x, keys)
            before = torch.get_rng_state()
            alone = torch.stack([gradient(flat[row], x[row], keys[row]) for row in range(2)])
            draws = not torch.equal(before, torch.get_rng_state())
    except Exception:
        return False
    at_once = not draws and not any("batching rule" in str(one.message) for one in warned)
    return at_once and bool(torch.allclose(together, alone, rtol=1e-3, atol=1e-5))


def same_as_module(chain: Model, layer: ModuleLayer, x: Tensor) -> bool:
    """Whether a chain of known layers has a module's outputs and gradients, in training and evaluation.

    Dropout aside. What acts in evaluation only, or by a hook, is in no trace of the module.
    """
    module = made(layer)
    first = [tensor.requires_grad_() for tensor in _first(layer)]
    named = {spec.name: tensor for spec, tensor in zip(layer.specs(), first, strict=True)}
    found = _output_and_gradient(network.forward(chain, first, x), first)
    for training in (True, False):
        with torch.random.fork_rng(devices=[]):
            args, kwargs = arguments_of(layer.inputs, x)
            theirs = _output_and_gradient(functional_call(module.train(training), named, args, kwargs), first)
        if not all(torch.allclose(a, b, rtol=1e-3, atol=1e-5) for a, b in zip(found, theirs, strict=True)):
            return False
    return True


def _output_and_gradient(output: Tensor, of: list[Tensor]) -> list[Tensor]:
    return [output, *torch.autograd.grad(output.square().mean(), of, materialize_grads=True)]

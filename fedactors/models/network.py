"""Runs a model's description as pure functions of its tensors.

The same code serves one client and, under `torch.func.vmap`, many: nothing here uses a batch dimension
that vmap hides, and there is no module, no state and no random number generator.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod, sqrt

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from fedactors.models import torch_modules
from fedactors.models.dropout import dropped
from fedactors.models.layers import Conv, Dense, Dropout, Flatten, Layer, Model, Pool, Relu, TensorSpec
from fedactors.models.module_layer import ModuleLayer
from fedactors.models.residual import GroupNorm, Residual
from fedactors.models.sequence_layers import Bag, Embedding, Gru
from fedactors.streams import Purpose, stream


def forward(
    model: Model,
    tensors: Sequence[Tensor],
    x: Tensor,
    keys: Tensor | None = None,
    step: int | Tensor = 0,
) -> Tensor:
    """Return the logits `(batch, classes)` of samples `x`, `(batch, *input_shape)`.

    `tensors` are the model's, in the order of `model.tensors`. Dropout acts only if `keys` is given: one
    int64 key of shape () for all of `x`, and the number of the local `step`. Under vmap all four may carry a
    leading client dimension.
    """
    taken = 0
    for number, layer in _ordered(model.layers):
        if isinstance(layer, Dropout):
            x = x if keys is None else dropped(x, layer.rate, keys, number, step)
        else:
            count = len(layer.tensors())
            mine = tensors[taken : taken + count]
            if isinstance(layer, ModuleLayer):
                x = torch_modules.applied(layer, mine, x, keys, number, step)
            else:
                x = _applied(layer, mine, x)
            taken += count
    return x


def placed(model: Model, x: Tensor) -> Tensor:
    """Return samples in the order in memory in which they are run fastest on a CPU: images have their channels last.

    A user's modules get images as a loop by hand has them: ResNet-18 with GroupNorm takes 1.7 times as long otherwise.
    """
    return x if any(isinstance(layer, ModuleLayer) for layer in model.layers) else channels_last(x)


def channels_last(x: Tensor) -> Tensor:
    """Return images and kernels, of four dimensions, with the channels last in memory; anything else as it is."""
    return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x


@cache
def _ordered(layers: tuple[Layer, ...]) -> tuple[tuple[int, Layer], ...]:
    """Return (number, layer) with the maxima of windows before a ReLU that precedes them.

    The two commute, to the bit, and so do their gradients; the ReLU then has a quarter of the work.
    """
    order = list(enumerate(layers))
    for at in range(len(order) - 1):
        if isinstance(order[at][1], Relu) and isinstance(order[at + 1][1], Pool):
            order[at : at + 2] = order[at + 1], order[at]
    return tuple(order)


def _applied(layer: Layer, weights: Sequence[Tensor], x: Tensor) -> Tensor:
    match layer:
        case Dense():
            return functional.linear(x, weights[0], weights[1])
        case Conv():
            return functional.conv2d(x, weights[0], weights[1], padding=layer.border)
        case Pool():
            return functional.max_pool2d(x, layer.size)
        case Relu():
            return functional.relu(x)
        case Flatten():
            return x.flatten(1)
        case GroupNorm():
            return functional.group_norm(x, layer.groups, weights[0], weights[1])
        case Residual():
            inner, taken = x, 0
            for part in layer.layers:
                count = len(part.tensors())
                inner, taken = _applied(part, weights[taken : taken + count], inner), taken + count
            return x + inner
        case Embedding() | Bag() | Gru():
            return _read(layer, weights, x)
    raise NotImplementedError(f"no rule to run {layer}")


def _read(layer: Embedding | Bag | Gru, weights: Sequence[Tensor], x: Tensor) -> Tensor:
    match layer:
        case Embedding():
            return functional.embedding(x.long(), weights[0])
        case Bag():
            return bag(x, weights[0])
        case Gru():
            return recurrent(x, weights)


def bag(x: Tensor, table: Tensor) -> Tensor:
    """Return the mean of the rows of `table` that `x`, `(batch, places)`, names; zeros where all places are empty."""
    there = (x >= 0).to(table.dtype).unsqueeze(-1)
    rows = functional.embedding(x.clamp(min=0).long(), table)
    return (rows * there).sum(-2) / there.sum(-2).clamp(min=1)


def recurrent(x: Tensor, weights: Sequence[Tensor]) -> Tensor:
    """Return the states `(batch, places, units)` of gated recurrent units after each place of `x`; see `Gru`."""
    of_input, of_state, input_bias, state_bias = weights
    inputs = functional.linear(x, of_input, input_bias)
    h, states = inputs.new_zeros(*inputs.shape[:-2], of_state.shape[1]), []
    for place in range(x.shape[-2]):
        reset, update, new = inputs[..., place, :].chunk(3, -1)
        old_reset, old_update, old_new = functional.linear(h, of_state, state_bias).chunk(3, -1)
        z = (update + old_update).sigmoid()
        h = z * h + (1 - z) * (new + (reset + old_reset).sigmoid() * old_new).tanh()
        states.append(h)
    return torch.stack(states, -2)


def views(model: Model, flat: Tensor) -> list[Tensor]:
    """Return the model's tensors as views of a flat vector `(parameters,)`: what is written there shows here.

    For `flat` of shape `(clients, parameters)` each view has the shape `(clients, *shape)`.
    """
    result, begin = [], 0
    for tensor in model.tensors:
        end = begin + prod(tensor.shape)
        result.append(flat[..., begin:end].view((*flat.shape[:-1], *tensor.shape)))
        begin = end
    return result


def initial(model: Model, seed: int) -> NDArray[np.float32]:
    """Return the initial parameters `(parameters,)` of a run with this `seed`.

    By `model.start`, weights and biases are uniform on (-1/sqrt(fan_in), 1/sqrt(fan_in)), PyTorch's default for these
    layers; or weights are uniform between -/+ sqrt(6 / (fan_in + fan_out)) and biases zero (Glorot and Bengio 2010,
    equation 16), as Keras has it by default; or all is zero. Scales of a normalisation are 1, its shifts 0.
    """
    if model.start == "zeros":
        return np.zeros(model.parameters, dtype=np.float32)
    module = model.origin or next((layer for layer in model.layers if isinstance(layer, ModuleLayer)), None)
    if isinstance(module, ModuleLayer):
        return torch_modules.initial(module, seed)
    draws = stream(seed, Purpose.INIT)
    first = _glorot if model.start == "glorot" else _uniform
    return np.concatenate([_first(spec, draws, first(spec)) for spec in model.tensors]).astype(np.float32)


def _first(spec: TensorSpec, draws: np.random.Generator, bound: float) -> NDArray[np.float64]:
    size = prod(spec.shape)
    return draws.uniform(-bound, bound, size) if spec.fill is None else np.full(size, spec.fill)


def _uniform(spec: TensorSpec) -> float:
    return 1 / sqrt(spec.fan_in)


def _glorot(spec: TensorSpec) -> float:
    """Return the largest first value of a weight `(outputs, inputs, ...)`; 0 of a bias `(outputs,)`."""
    if len(spec.shape) == 1:
        return 0.0
    outputs, inputs, *kernel = spec.shape
    return sqrt(6 / ((inputs + outputs) * prod(kernel)))

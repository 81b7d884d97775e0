"""Makes and runs modules of the user: `applied` runs one as a function of its tensors, `initial` has its first values.

What a module draws at random in training comes from the streams of the run: each `nn.Dropout` is replaced by one whose
masks depend on client, round, layer, step and element only (see `dropout`). Where a module draws in another way,
torch's generator is seeded by client, round and step, and clients are computed one after the other.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from fedactors.errors import DataError
from fedactors.models.dropout import dropped
from fedactors.models.module_layer import InputSpec, ModuleConstants, ModuleLayer, ModuleMaker
from fedactors.streams import Purpose, stream

_PROBED = 2  # samples of the batch by which a module is looked at
_ODD = 0x9E3779B97F4A7C15 - 2**64  # keys of the masks of one pass are multiples of it apart, modulo 2^64
Arrays = dict[str, NDArray[np.generic]]


@dataclass
class MaskStep:
    """What names the masks of one forward pass: see `dropout.dropped`. Those of one pass are numbered as they come."""

    key: Tensor
    layer: int
    step: int | Tensor
    masks: int = 0

    def next_key(self) -> Tensor:
        """Return the key of the next mask."""
        self.masks += 1
        return self.key + ((self.masks * _ODD + 2**63) % 2**64 - 2**63)


current_step: ContextVar[MaskStep | None] = ContextVar("current_step", default=None)
_written: ContextVar[list[Tensor] | None] = ContextVar("_written", default=None)


class StreamDropout(nn.Module):
    """`nn.Dropout` whose masks come from the streams of the run."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.p = rate

    def forward(self, x: Tensor) -> Tensor:
        """Return `x` with a share `p` of its values set to zero, in training."""
        now = current_step.get()
        if not self.training or now is None or not self.p:
            return x
        return dropped(x, self.p, now.next_key(), now.layer, now.step)


@contextmanager
def written_buffers() -> Iterator[list[Tensor]]:
    """Collect the buffers that forward passes in the context write, in the order of the model's tensors."""
    found: list[Tensor] = []
    token = _written.set(found)
    try:
        yield found
    finally:
        _written.reset(token)


def applied(
    layer: ModuleLayer, tensors: Sequence[Tensor], x: Tensor, key: Tensor | None, number: int, step: int | Tensor
) -> Tensor:
    """Return the module's output for a batch `x`, `(batch, *input_shape)`; in training mode if a `key` is given.

    `tensors` are the layer's, parameters and then buffers; `key`, `number` and `step` name the masks of dropout.
    Under vmap all but `number` may carry a leading client dimension.
    """
    module = made(layer)
    module.train(key is not None)
    parameters = len(layer.trainable)
    given = {spec.name: tensor for spec, tensor in zip(layer.trainable, tensors, strict=False)}
    buffers = {
        spec.name: tensor.detach().clone() if key is not None else tensor.detach()
        for spec, tensor in zip(layer.buffers, tensors[parameters:], strict=True)
    }
    args, kwargs = arguments_of(layer.inputs, x)
    token = current_step.set(None if key is None else MaskStep(key, number, step))
    try:
        with _seeded(layer, key, step):
            output: Tensor = functional_call(module, {**given, **buffers}, args, kwargs, tie_weights=True)
    finally:
        current_step.reset(token)
    if (written := _written.get()) is not None:
        written += [buffers[spec.name].detach() for spec in layer.buffers]
    return output


def made(layer: ModuleLayer) -> nn.Module:
    """Return the module of a description, made once in each process; not under vmap, where nothing may be drawn."""
    return _made(layer.maker, layer.constants)


@lru_cache(maxsize=8)
def _made(maker: ModuleMaker, constants: ModuleConstants) -> nn.Module:
    module = new_module(maker, 0)
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        if name in constants.arrays:
            with torch.no_grad():
                tensor.copy_(torch.from_numpy(np.array(constants.arrays[name])))
        tensor.requires_grad_(False)
    return module


def initial(layer: ModuleLayer, seed: int) -> NDArray[np.float32]:
    """Return the first values of the layer's tensors: those given as weights, else those that the module draws itself.

    Its generator is seeded from the stream of initial models.
    """
    known = layer.constants.arrays
    if not all(spec.name in known for spec in layer.specs()):
        module = new_module(layer.maker, int(stream(seed, Purpose.INIT).integers(2**63)))
        drawn = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        known = {name: tensor.detach().float().numpy() for name, tensor in drawn.items()} | known
    parts = [np.asarray(known[spec.name], np.float32).ravel() for spec in layer.specs()]
    return np.concatenate(parts) if parts else np.zeros(0, np.float32)


def new_module(maker: ModuleMaker, seed: int) -> nn.Module:
    """Return a new module as it is run here: see `adapted`. Raises DataError if there is none."""
    return adapted(raw_module(maker, seed), maker)


def raw_module(maker: ModuleMaker, seed: int) -> nn.Module:
    """Return a new module as the user made it, its own draws seeded. Raises DataError if there is none."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        with user_code_of(maker, "raised"):
            module = maker.factory.load()(**json.loads(maker.arguments))
    if not isinstance(module, nn.Module):
        found = type(module).__name__
        raise DataError(f"{maker}: returned {found} (accepted: a torch.nn.Module, or a class of one)")
    return module


def adapted(module: nn.Module, maker: ModuleMaker) -> nn.Module:
    """Return the module with dropout that draws from the streams of the run, and without counters of batches.

    Raises DataError if it normalises by all batches so far, which no vector of averages can say.
    """
    for part in list(module.modules()):
        for name, child in part.named_children():
            if type(child) is nn.Dropout:
                setattr(part, name, StreamDropout(child.p))
        if isinstance(part, nn.modules.batchnorm._NormBase) and part.track_running_stats:
            if part.momentum is None:
                raise DataError(f"{maker}: BatchNorm with momentum=None (accepted: a number, such as 0.1)")
            part.num_batches_tracked = None  # counts for nothing but momentum=None
    return module


@contextmanager
def user_code_of(maker: ModuleMaker, what: str) -> Iterator[None]:
    """Turn what the user's code raises into one message, with the last line of it that ran."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:
        source = maker.factory.source
        frames = traceback.extract_tb(error.__traceback__)
        mine = [frame for frame in frames if source is not None and frame.filename == source.file]
        if isinstance(error, SyntaxError) and error.lineno:
            where = f", line {error.lineno}"
        else:
            where = f", line {mine[-1].lineno} ({mine[-1].line})" if mine else ""
        text = " ".join(str(error).split())[:300]
        raise DataError(f"{maker}{where}: {what} {type(error).__name__}: {text}") from error


def arguments_of(inputs: tuple[InputSpec, ...], x: Tensor) -> tuple[tuple[Tensor, ...], dict[str, Tensor]]:
    """Return what `forward` is called with, from a batch of samples; parts lie one after the other in flat samples."""
    if len(inputs) == 1:
        only = x.long() if inputs[0].integer else x
        return ((), {inputs[0].name: only}) if inputs[0].name else ((only,), {})
    parts = torch.split(x, [part.size for part in inputs], dim=-1)
    shaped = [
        (part.long() if spec.integer else part).reshape(*part.shape[:-1], *spec.shape)
        for spec, part in zip(inputs, parts, strict=True)
    ]
    positional = tuple(part for spec, part in zip(inputs, shaped, strict=True) if not spec.name)
    return positional, {spec.name: part for spec, part in zip(inputs, shaped, strict=True) if spec.name}


@contextmanager
def _seeded(layer: ModuleLayer, key: Tensor | None, step: int | Tensor) -> Iterator[None]:
    """Seed torch's generator by client, round and step, for modules that draw by it; the old state comes back."""
    if not layer.draws or key is None:
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed((int(key) * 1_000_003 + int(step)) % 2**63)
        yield

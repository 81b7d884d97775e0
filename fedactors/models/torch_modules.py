"""Makes and runs modules of the user: `applied` runs one as a function of its tensors, `initial` has its first values.

What a module draws at random in training comes from the streams of the run: each `nn.Dropout` is replaced by one whose
masks depend on client, round, layer, step and element only (see `dropout`). For what it draws in another way, torch's
generator is seeded by client, round and step, but under vmap, which lets nothing be drawn.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

from fedactors.errors import DataError
from fedactors.models.dropout import MaskStep, StreamDropout, current_step
from fedactors.models.layers import Model
from fedactors.models.module_layer import InputSpec, ModuleConstants, ModuleLayer, ModuleMaker
from fedactors.own_code.held_values import WatchedModule
from fedactors.own_code.user_code import telling
from fedactors.streams import Purpose, stream

Arrays = dict[str, NDArray[np.generic]]


_written: ContextVar[list[Tensor] | None] = ContextVar("_written", default=None)
_held: ContextVar[list[Tensor] | None] = ContextVar("_held", default=None)  # buffers of a module that holds its tensors
_AT_ONCE = nullcontext()
_CPU = torch.device("cpu")


@contextmanager
def given_tensors() -> Iterator[None]:
    """Run modules in the context with the tensors that they are given, whatever they hold, and collect no buffers."""
    tokens = _held.set(None), _written.set(None)
    try:
        yield
    finally:
        _held.reset(tokens[0])
        _written.reset(tokens[1])


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
    module = made(layer, x.device)
    if module.training != (key is not None):
        module.train(key is not None)
    args, kwargs = arguments_of(layer.inputs, x)
    token = current_step.set(None if key is None else MaskStep(key, number, step))
    buffers = _held.get()
    by_vmap = layer.vmappable and buffers is None  # perhaps: then the key is no number, and whoever draws is an error
    try:
        with _AT_ONCE if key is None or by_vmap else _seeded(key, step):
            if buffers is not None:
                output: Tensor = module(*args, **kwargs)
            else:
                given, buffers = _given(layer, tensors, copy=key is not None)
                output = functional_call(module, given, args, kwargs)
                _refuse_changed(layer)
    finally:
        current_step.reset(token)
    if (written := _written.get()) is not None:
        written += buffers
    return output


def held(model: Model, tensors: Sequence[Tensor], work: Callable[[], None]) -> None:
    """Do some work while the module of `model`, if it is one, holds `tensors`: quicker than an exchange in every step.

    For one client in training, as vmap cannot see into a module that holds tensors.
    """
    layer = next((layer for layer in model.layers if isinstance(layer, ModuleLayer)), None)
    if layer is None:
        work()
        return
    given, buffers = _given(layer, tensors, copy=True)
    holder = _Holder(made(layer, tensors[0].device))
    token = _held.set(buffers)
    try:
        functional_call(holder, {f"module.{name}": tensor for name, tensor in given.items()}, (work,))
    finally:
        _held.reset(token)
    _refuse_changed(layer)


class _Holder(nn.Module):
    """A module whose forward pass is any work with the module in it."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, work: Callable[[], None]) -> None:
        """Do the work."""
        work()


def _given(layer: ModuleLayer, tensors: Sequence[Tensor], *, copy: bool) -> tuple[dict[str, Tensor], list[Tensor]]:
    """Return the tensors of a layer by name, and its buffers once more; these as copies, if they will be written."""
    parameters = len(layer.trainable)
    buffers = [tensor.detach().clone() if copy else tensor.detach() for tensor in tensors[parameters:]]
    given = {spec.name: tensor for spec, tensor in zip(layer.specs(), (*tensors[:parameters], *buffers), strict=True)}
    return given, buffers


def ready(model: Model, device: torch.device) -> None:
    """Make the modules of a model before vmap runs them: under vmap nothing may be drawn."""
    for layer in model.layers:
        if isinstance(layer, ModuleLayer):
            made(layer, device)


def made(layer: ModuleLayer, device: torch.device = _CPU) -> nn.Module:
    """Return the module of a description, made once in each process, with its constants on `device`."""
    found = _known(layer)
    found.move(device)
    module: nn.Module = found.module
    return module


def _known(layer: ModuleLayer) -> WatchedModule:
    return _made(layer.maker, layer.constants, layer.trained, layer.fixed)


@lru_cache(maxsize=8)
def _made(
    maker: ModuleMaker, constants: ModuleConstants, trained: frozenset[str], fixed: tuple[str, ...]
) -> WatchedModule:
    return WatchedModule(_loaded(maker, constants, trained), fixed)


def _refuse_changed(layer: ModuleLayer) -> None:
    """Raise DataError if a pass has changed a buffer that was a constant when the module was looked at."""
    for name, now in _known(layer).touched():
        then = torch.from_numpy(np.array(layer.constants.arrays[name]))
        if not torch.equal(now.cpu(), then):
            raise DataError(
                f"{layer.maker}: forward changes the buffer {name}, which it did not change when it was looked at"
                " (accepted: a buffer of floats that every pass in training mode changes, or none)"
            )


def loaded(layer: ModuleLayer) -> nn.Module:
    """Return a new module of a description, in training mode."""
    return _loaded(layer.maker, layer.constants, layer.trained)


def _loaded(maker: ModuleMaker, constants: ModuleConstants, trained: frozenset[str]) -> nn.Module:
    """Return a new module in training mode; what is frozen says so, as its `train` may ask for that."""
    module = _with_constants(new_module(maker, 0), constants)
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        tensor.requires_grad_(name in trained)
    return module.train()


def as_written(layer: ModuleLayer) -> nn.Module:
    """Return a new module of a description as the user's code makes it, with its own dropout and counters."""
    return _with_constants(raw_module(layer.maker, 0), layer.constants)


def _with_constants(module: nn.Module, constants: ModuleConstants) -> nn.Module:
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        if name in constants.arrays:
            with torch.no_grad():
                tensor.copy_(torch.from_numpy(np.array(constants.arrays[name])))
    return module


def initial(layer: ModuleLayer, seed: int) -> NDArray[np.float32]:
    """Return the first values of the layer's tensors: those given as weights, else those that its module draws."""
    known = layer.constants.arrays
    if not all(spec.name in known for spec in layer.specs()):
        module = new_module(layer.maker, first_seed(seed))
        drawn = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        known = {name: tensor.detach().float().numpy() for name, tensor in drawn.items()} | known
    parts = [np.asarray(known[spec.name], np.float32).ravel() for spec in layer.specs()]
    return np.concatenate(parts) if parts else np.zeros(0, np.float32)


def first_seed(seed: int) -> int:
    """Return the seed of torch's generator for what a module draws at first, in a scenario with this `seed`."""
    return int(stream(seed, Purpose.INIT).integers(2**63))


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
    with telling(maker.factory, what, DataError):
        yield


def arguments_of(inputs: tuple[InputSpec, ...], x: Tensor) -> tuple[tuple[Tensor, ...], dict[str, Tensor]]:
    """Return what `forward` is called with, from a batch of samples; parts lie one after the other in flat samples."""
    shaped = [x] if len(inputs) == 1 else _shaped(inputs, x)
    shaped = [part.long() if spec.integer else part for spec, part in zip(inputs, shaped, strict=True)]
    positional = tuple(part for spec, part in zip(inputs, shaped, strict=True) if not spec.name)
    return positional, {spec.name: part for spec, part in zip(inputs, shaped, strict=True) if spec.name}


def as_taken(module: nn.Module, inputs: tuple[InputSpec, ...]) -> tuple[InputSpec, ...]:
    """Return the inputs, an only one by position unless `forward` has a parameter of its name."""
    if len(inputs) > 1 or not inputs[0].name:
        return inputs
    parameters = inspect.signature(module.forward).parameters.values()
    by_name = any(one.name == inputs[0].name or one.kind is one.VAR_KEYWORD for one in parameters)
    return inputs if by_name else (inputs[0]._replace(name=""),)


def _shaped(inputs: tuple[InputSpec, ...], x: Tensor) -> list[Tensor]:
    """Return the parts of flat samples `(batch, values)`, each in its own shape."""
    parts = torch.split(x, [part.size for part in inputs], dim=-1)
    return [part.reshape((*part.shape[:-1], *spec.shape)) for spec, part in zip(inputs, parts, strict=True)]


@contextmanager
def _seeded(key: Tensor, step: int | Tensor) -> Iterator[None]:
    """Seed torch's generator by client, round and step, for a module that may draw by it; the old state comes back."""
    seed = (int(key) * 1_000_003 + int(step)) % 2**63
    before = torch.default_generator.get_state()
    torch.default_generator.manual_seed(seed)  # torch.manual_seed looks at all devices, for longer than a step takes
    if key.is_cuda:
        torch.cuda.manual_seed_all(seed)
    try:
        yield
    finally:
        torch.default_generator.set_state(before)

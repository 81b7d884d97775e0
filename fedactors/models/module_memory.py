"""What a module of the user holds besides its layer's tensors: to compare before and after a pass, and to watch.

A module is run as a function of its tensors. So it may keep nothing but buffers of floats that are saved with it: those
travel with the model, all else would depend on which clients a process trains.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from fedactors.own_code.held_values import content, globals_of

_OF_TORCH = frozenset(vars(nn.Module()))  # attributes that every module has


def state(module: nn.Module, moved: Collection[str], file: str) -> dict[str, object]:
    """Return what a module holds besides the tensors that are `moved`, by name.

    So do its classes, and the globals of their files and of `file`, the module of Python that makes it.
    """
    tensors = (*module.named_parameters(), *module.named_buffers())
    found = {name: content(tensor) for name, tensor in tensors if name not in moved}
    kinds = {type(part): None for part in module.modules() if not type(part).__module__.startswith("torch.")}
    for place, part in module.named_modules():
        for name, value in vars(part).items():
            if name not in _OF_TORCH:
                found[f"{place}.{name}" if place else name] = content(value)
    for kind in kinds:
        found |= {f"{kind.__name__}.{name}": content(value) for name, value in vars(kind).items()}
    return found | globals_of({file: None} | {kind.__module__: None for kind in kinds})


class _Buffer(NamedTuple):
    """A buffer as it was when a module was made."""

    name: str
    part: nn.Module  # that has it
    tensor: Tensor
    version: int  # by which torch counts what is written to it


class MadeModule:
    """A module, and the buffers of it that no pass is to change: `fixed`."""

    def __init__(self, module: nn.Module, fixed: Sequence[str]) -> None:
        self.module = module
        self._device = torch.device("cpu")
        self._fixed = [_buffer(module, name) for name in fixed]

    def move(self, device: torch.device) -> None:
        """Have all tensors of the module on `device`."""
        if device != self._device:
            self.module.to(device)
            self._device = device
            self._fixed = [_buffer(self.module, one.name) for one in self._fixed]

    def touched(self) -> Iterator[tuple[str, Tensor]]:
        """Yield name and value of each of the buffers that has been written or replaced, though perhaps by the same."""
        for one in self._fixed:
            now = one.part._buffers[one.name.rpartition(".")[2]]
            if now is not None and (now is not one.tensor or now._version != one.version):
                yield one.name, now


def _buffer(module: nn.Module, name: str) -> _Buffer:
    part = module.get_submodule(name.rpartition(".")[0])
    tensor = module.get_buffer(name)
    return _Buffer(name, part, tensor, tensor._version)

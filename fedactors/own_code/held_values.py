"""What the user's code holds: to compare before and after a call, and buffers of modules to watch.

Looked at are plain values, arrays, tensors, and containers of them. What is of another kind, such as a file or an
object of a class of the user's, shows its type only. torch is imported by whoever has modules, not here.
"""

from __future__ import annotations

import hashlib
import sys
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

_VALUES = 2**18  # of an array that are looked at, at even distances
_ITEMS = 1_000  # of a container that are looked at
_DEEPEST = 6  # containers in one another
_PLAIN = (type(None), bool, int, float, complex, str, bytes)


def content(value: Any, depth: int = 0) -> object:
    """Return what a value holds, as something that can be compared with `==`."""
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, np.ndarray | np.generic) or _is_tensor(value):
        return _of_array(value)
    return _of_container(value, depth) if depth < _DEEPEST else type(value).__name__


def _of_container(value: Any, depth: int) -> object:
    if isinstance(value, Mapping):
        return len(value), [(repr(key), content(one, depth + 1)) for key, one in islice(value.items(), _ITEMS)]
    if isinstance(value, list | tuple | deque):
        return len(value), [content(one, depth + 1) for one in islice(value, _ITEMS)]
    if isinstance(value, set | frozenset):
        return len(value), {repr(one) for one in islice(value, _ITEMS)}
    return type(value).__name__


def _is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of torch, which is not imported here."""
    return hasattr(type(value), "detach") and hasattr(type(value), "dtype")


def _of_array(value: Any) -> object:
    """Return type, shape and values of an array or a tensor; no values where it has none of its own."""
    kind = str(value.dtype), str(value.shape)
    try:
        flat = value.detach().reshape(-1) if _is_tensor(value) else np.asarray(value).reshape(-1)
        some: Any = flat[:: max(1, len(flat) // _VALUES)]
        if _is_tensor(some):
            some = some.cpu()
            some = (some.double() if some.is_floating_point() else some).numpy()  # which has no bfloat16
        return *kind, repr(some.tolist()) if some.dtype.hasobject else hashlib.sha256(some.tobytes()).digest()
    except (RuntimeError, TypeError, NotImplementedError):  # a tensor of vmap, say, or a sparse one
        return kind


def globals_of(modules: Iterable[str]) -> dict[str, object]:
    """Return what the globals of imported modules hold, by name, without Python's own."""
    return {
        f"the global {name}": content(value)
        for module in modules
        if module in sys.modules
        for name, value in vars(sys.modules[module]).items()
        if not name.startswith("__")
    }


def first_difference(before: Mapping[str, object], after: Mapping[str, object]) -> str | None:
    """Return the first name in `after` with another content than in `before`; None if there is none."""
    return next((name for name, held in after.items() if name not in before or before[name] != held), None)


def held_by_module(module: Any, moved: Collection[str], file: str) -> dict[str, object]:
    """Return what a torch module holds besides the tensors that are `moved`, by name.

    So do its classes, and the globals of their files and of `file`, the module of Python that makes it.
    """
    tensors = (*module.named_parameters(), *module.named_buffers())
    found = {name: content(tensor) for name, tensor in tensors if name not in moved}
    for place, part in module.named_modules():
        found |= _attributes(place, part)
    kinds = {type(part): None for part in module.modules() if not type(part).__module__.startswith("torch.")}
    for kind in kinds:
        found |= {f"{kind.__name__}.{name}": content(value) for name, value in vars(kind).items()}
    return found | globals_of({file: None} | {kind.__module__: None for kind in kinds})


def _attributes(place: str, part: Any) -> dict[str, object]:
    """Return what the attributes of a module hold that is called `place`, but those that every module has."""
    base = next(kind for kind in type(part).__mro__ if kind.__module__ == "torch.nn.modules.module")
    of_all = vars(base())
    own = [name for name in vars(part) if name not in of_all]
    return {f"{place}.{name}" if place else name: content(vars(part)[name]) for name in own}


class _Buffer(NamedTuple):
    """A buffer as it was when a module was made."""

    name: str
    part: Any  # the module that has it
    tensor: Any
    version: int  # by which torch counts what is written to it


class WatchedModule:
    """A torch module, and the buffers of it that no pass is to change: `fixed`."""

    def __init__(self, module: Any, fixed: Sequence[str]) -> None:
        self.module = module
        self._device = "cpu"
        self._fixed = [_buffer(module, name) for name in fixed]

    def move(self, device: Any) -> None:
        """Have all tensors of the module on `device`, a device of torch."""
        if str(device) != self._device:
            self.module.to(device)
            self._device = str(device)
            self._fixed = [_buffer(self.module, one.name) for one in self._fixed]

    def touched(self) -> Iterator[tuple[str, Any]]:
        """Yield name and tensor of each of the buffers that was written or replaced, though perhaps by the same."""
        for one in self._fixed:
            now = one.part._buffers[one.name.rpartition(".")[2]]
            if now is not None and (now is not one.tensor or now._version != one.version):
                yield one.name, now


def _buffer(module: Any, name: str) -> _Buffer:
    part = module.get_submodule(name.rpartition(".")[0])
    tensor = module.get_buffer(name)
    return _Buffer(name, part, tensor, tensor._version)

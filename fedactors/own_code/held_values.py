"""What values of the user's code hold, as something to compare: plain values, arrays, tensors, and containers of them.

Two values with one content are alike. What is of another kind, such as a file or an object of a class of the user's,
shows its type only.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import numpy as np

_VALUES = 2**20  # of an array that are looked at, at even distances
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
        if _is_tensor(value):
            value = value.detach().cpu()
            value = (value.double() if value.is_floating_point() else value).numpy()  # which has no bfloat16
        flat = np.asarray(value).reshape(-1)
        some = flat[:: max(1, flat.size // _VALUES)]
        return *kind, repr(some.tolist()) if some.dtype.hasobject else some.tobytes()
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

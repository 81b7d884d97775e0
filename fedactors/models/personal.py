"""Which values of a model stay at the clients: parameters by name, and the buffers of a module that are `local`."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from math import prod

import numpy as np
from numpy.typing import NDArray

from fedactors.errors import ScenarioError, suggestion
from fedactors.models.layers import Model
from fedactors.models.module_layer import ModuleLayer, module_of

PERSONAL = "personal"  # the name under which a client keeps the values that stay with it


def tensor_names(model: Model) -> tuple[str, ...]:
    """Return the name of each tensor of a model, in the order of the flat vector: a module's own, or "3.weight"."""
    module = module_of(model)
    return tuple(spec.name for spec in (model.tensors if module is None else module.specs()))


def personal_positions(model: Model, patterns: Sequence[str]) -> NDArray[np.int64]:
    """Return the positions in the flat vector of what stays at the clients, ascending.

    `patterns` (fnmatch) are of tensors' names. Raises ScenarioError if one matches nothing.
    """
    names = tensor_names(model)
    for number, pattern in enumerate(patterns):
        if not any(fnmatchcase(name, pattern) for name in names):
            raise ScenarioError(f'server.personal.{number}: no tensor matches "{pattern}"{suggestion(pattern, names)}')
    parts, first = [np.zeros(0, np.int64)], 0
    for name, spec in zip(names, model.tensors, strict=True):
        size = prod(spec.shape)
        local = spec.buffer and _keeps_buffers(model)
        if local or any(fnmatchcase(name, pattern) for pattern in patterns):
            parts.append(np.arange(first, first + size, dtype=np.int64))
        first += size
    return np.concatenate(parts)


def _keeps_buffers(model: Model) -> bool:
    return any(isinstance(layer, ModuleLayer) and layer.policy == "local" for layer in model.layers)

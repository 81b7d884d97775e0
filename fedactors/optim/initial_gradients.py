"""Mean gradients that a user gives 2-way gradient transfer to begin with: vectors gc and gf of a safetensors file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fedactors.errors import ScenarioError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_KEY = "server.algorithm.initial_gradients"
_NAMES = ("gc", "gf")


def read(path: Path, parameters: int) -> dict[str, NDArray[np.float32]]:
    """Return gc and gf, `(parameters,)` each, of a file that holds one or both.

    The file `checkpoint/model.safetensors` of a run of the algorithm is one. Raises ScenarioError if the file is not
    there, cannot be read, has neither, or has one of another shape, type, or with NaN or Inf.
    """
    import numpy as np
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        tensors = load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise ScenarioError(f"{_KEY}: {path}: {error} (accepted: a safetensors file with gc, gf or both)") from None
    found = {name: tensors[name] for name in _NAMES if name in tensors}
    if not found:
        names = ", ".join(sorted(tensors)[:5]) or "nothing"
        raise ScenarioError(f"{_KEY}: {path}: holds {names} (accepted: gc, gf or both)")
    for name, vector in found.items():
        wanted = f"{parameters} numbers of float32, in the order of the model's parameters"
        if vector.shape != (parameters,) or vector.dtype != np.float32:
            shape = list(vector.shape)
            raise ScenarioError(f"{_KEY}: {path}: {name} is {vector.dtype} of shape {shape} (accepted: {wanted})")
        if not np.isfinite(vector).all():
            raise ScenarioError(f"{_KEY}: {path}: {name} holds NaN or Inf (accepted: {wanted})")
    return found

"""Files of named tensors in a run folder (safetensors)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedactors.run_files.files import damaged, refuse_other_kinds


def shapes_of(path: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return type and shape of each tensor of a file by name; no tensor is read.

    Raises RunFolderError if the file cannot be read.
    """
    from safetensors import SafetensorError, safe_open

    refuse_other_kinds(path)
    try:
        with safe_open(path, framework="np") as file:
            parts = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
            return {name: (part.get_dtype(), tuple(part.get_shape())) for name, part in parts.items()}
    except (SafetensorError, OSError, ValueError) as error:
        raise damaged(path, str(error)) from None


def tensors_of(path: Path) -> dict[str, NDArray[np.float32]]:
    """Return the tensors of a file by name. Raises RunFolderError if it cannot be read."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    refuse_other_kinds(path)
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise damaged(path, str(error)) from None

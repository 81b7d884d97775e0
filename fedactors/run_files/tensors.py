"""Files of named tensors in a run folder (safetensors)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedactors.run_files.files import damaged, refuse_other_kinds


def tensors_of(path: Path) -> dict[str, NDArray[np.float32]]:
    """Return the tensors of a file by name. Raises RunFolderError if it cannot be read."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    refuse_other_kinds(path)
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise damaged(path, str(error)) from None

"""The best model of a run, in a file of its own beside the last one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedactors.run_files.files import CHECKPOINT
from fedactors.run_files.writing import inner_folder, write

BEST = f"{CHECKPOINT}/best.safetensors"


class BestModel:
    """The file checkpoint/best.safetensors of the run folder `run`; it says in its header which round it is of."""

    def __init__(self, run: Path) -> None:
        self._run = run

    def write(self, state: Mapping[str, Any], round: int) -> None:
        """Replace the file by the server's `state` after a round."""
        from safetensors.numpy import save

        inner_folder(self._run / CHECKPOINT)
        tensors = {name: np.ascontiguousarray(value) for name, value in state.items()}
        write(self._run / BEST, save(tensors, {"round": str(round)}))

    def keep_only(self, round: int | None) -> None:
        """Remove the file if it is of another round: of one that a run which goes on has not done yet."""
        path = self._run / BEST
        if path.is_file() and not path.is_symlink() and not self.is_of(round):
            path.unlink()

    def is_of(self, round: int | None) -> bool:
        """Say whether the file is there, and that of a round."""
        return round is not None and self._round(self._run / BEST) == round

    def _round(self, path: Path) -> int | None:
        from safetensors import SafetensorError, safe_open

        if not path.is_file():
            return None
        try:
            with safe_open(path, "numpy") as file:
                return int((file.metadata() or {}).get("round", ""))
        except (SafetensorError, ValueError, OSError):
            return None

"""Logs to Weights & Biases, or to files that `wandb sync` uploads later."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedactors.errors import UsageError
from fedactors.extras import needed
from fedactors.simulation.tracking.base import Figures


class WeightsAndBiases:
    """A run of a project, with its files in `folder`. With WANDB_MODE=offline nothing leaves this machine.

    Raises UsageError if wandb is not installed, or if nobody has logged in.
    """

    name = "Weights & Biases"

    def __init__(self, project: str, folder: Path, parameters: Mapping[str, Any]) -> None:
        self._wandb = needed("wandb", "wandb")
        self._options = {"project": project, "name": folder.name, "dir": str(folder), "config": dict(parameters)}
        self._run: Any = None
        if self._wandb.Settings().mode != "online":
            return
        try:
            self._wandb.login()
        except Exception as error:
            raise UsageError(
                f"--wandb {project}: {' '.join(str(error).split())} (accepted: `wandb login` first, or the variable "
                "WANDB_MODE=offline)"
            ) from None

    def begin(self) -> None:
        """Begin a run."""
        self._run = self._wandb.init(**self._options, settings=self._wandb.Settings(silent=True, console="off"))

    def log(self, round: int, figures: Figures) -> None:
        """Log the figures of a round."""
        self._run.log(dict(figures), step=round)

    def close(self) -> None:
        """Write what is left."""
        self._run.finish()

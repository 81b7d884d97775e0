"""Logs to Weights & Biases, or to files that `wandb sync` uploads later."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedactors.errors import UsageError
from fedactors.extras import needed
from fedactors.simulation.tracking.base import Figures
from fedactors.simulation.tracking.run_ids import RunIds


class WeightsAndBiases:
    """A run of a project, with its files in `folder`. With WANDB_MODE=offline nothing leaves this machine.

    A run in `folder` that goes on is the one that it was there, of which rounds that are logged already are left out.
    Raises UsageError if wandb is not installed, or if nobody has logged in.
    """

    name = "Weights & Biases"

    def __init__(self, project: str, folder: Path, parameters: Mapping[str, Any]) -> None:
        self._wandb = needed("wandb", "wandb")
        self._options = {"project": project, "name": folder.name, "dir": str(folder), "config": dict(parameters)}
        self._ids = RunIds(folder)
        self._run: Any = None
        self._logged = 0  # rounds that are there already
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
        """Begin a run, or go on with it."""
        options = {**self._options, "id": self._ids.of(self.name) or None, "resume": "allow"}
        self._run = self._wandb.init(**options, settings=self._wandb.Settings(silent=True, console="off"))
        self._ids.keep(self.name, self._run.id)
        self._logged = self._run.step - 1  # where it is known: not offline

    def log(self, round: int, figures: Figures) -> None:
        """Log the figures of a round."""
        if round <= self._logged:
            return
        self._run.log(dict(figures), step=round)

    def close(self) -> None:
        """Write what is left."""
        self._run.finish()

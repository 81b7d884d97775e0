"""Logs to event files that TensorBoard reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedactors.extras import needed
from fedactors.simulation.tracking.base import Figures


class TensorBoard:
    """Event files in `folder`, for `tensorboard --logdir`. Raises UsageError if tensorboard is not installed.

    Of a run that goes on, what older files say of its rounds from there on counts no more.
    """

    name = "TensorBoard"

    def __init__(self, folder: Path) -> None:
        needed("tensorboard", "tensorboard")
        self._folder = folder
        self._make: Any = None
        self._writer: Any = None

    def begin(self) -> None:
        """Import what is needed: a file begins with its first round."""
        self._make = needed("torch.utils.tensorboard", "tensorboard").SummaryWriter

    def log(self, round: int, figures: Figures) -> None:
        """Log the figures of a round."""
        if self._writer is None:
            self._writer = self._make(str(self._folder), purge_step=round)
        for name, value in figures.items():
            self._writer.add_scalar(name, value, round)

    def close(self) -> None:
        """Write what is left."""
        if self._writer is not None:
            self._writer.close()

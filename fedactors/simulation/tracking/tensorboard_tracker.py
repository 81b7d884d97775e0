"""Logs to event files that TensorBoard reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedactors.extras import needed
from fedactors.simulation.tracking.base import Figures


class TensorBoard:
    """Event files in `folder`, for `tensorboard --logdir`. Raises UsageError if tensorboard is not installed."""

    name = "TensorBoard"

    def __init__(self, folder: Path) -> None:
        needed("tensorboard", "tensorboard")
        self._folder = folder
        self._writer: Any = None

    def begin(self) -> None:
        """Begin a file."""
        self._writer = needed("torch.utils.tensorboard", "tensorboard").SummaryWriter(str(self._folder))

    def log(self, round: int, figures: Figures) -> None:
        """Log the figures of a round."""
        for name, value in figures.items():
            self._writer.add_scalar(name, value, round)

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()

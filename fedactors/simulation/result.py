"""What a run returns to Python code."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedactors.report.notebook import RunPlots
from fedactors.simulation.record.metric_rows import MetricRows


@dataclass(frozen=True)
class Result(RunPlots):
    """What a run leaves: its folder, its summary, its rows of metrics and the final state; frames and pictures."""

    folder: Path | None
    summary: dict[str, Any]
    rows: MetricRows
    """The rows of metrics, read from the folder one after the other by each loop over them."""
    state: dict[str, NDArray[np.float32]]

    @cached_property
    def metrics(self) -> list[dict[str, Any]]:
        """All rows of metrics, read from the folder when they are first asked for.

        Raises RunFolderError if the folder is not there any more.
        """
        return list(self.rows)

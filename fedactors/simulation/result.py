"""What a run returns to Python code."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedactors.scenario.model import Scenario
from fedactors.simulation.record.metric_rows import MetricRows
from fedactors.simulation.record.trained_run import TrainedRun


@dataclass(frozen=True)
class Result(TrainedRun):
    """What a run leaves: its folder, summary, rows of metrics and final state; frames, pictures, the trained model."""

    folder: Path | None
    summary: dict[str, Any]
    rows: MetricRows
    """The rows of metrics, read from the folder one after the other by each loop over them."""
    state: dict[str, NDArray[np.float32]]
    scenario: Scenario = field(repr=False)

    @cached_property
    def metrics(self) -> list[dict[str, Any]]:
        """All rows of metrics, read from the folder when they are first asked for.

        Raises RunFolderError if the folder is not there any more.
        """
        return list(self.rows)

"""What a run returns to Python code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedactors.report.notebook import RunPlots


@dataclass(frozen=True)
class Result(RunPlots):
    """What a run leaves: its folder, its summary, its rows of metrics and the final state; frames and pictures."""

    folder: Path | None
    summary: dict[str, Any]
    metrics: list[dict[str, Any]]
    state: dict[str, NDArray[np.float32]]

"""Means of a measure over two axes of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fedactors.report.measures import Floats
from fedactors.study.study_cells import Label, StudyAxis


@dataclass(frozen=True)
class HeatMap:
    """Means of a measure over seeds, `(len(up), len(across))`, NaN where no run has it."""

    at: Mapping[str, Label]  # where the map stands on the axes that it does not show
    across: StudyAxis
    up: StudyAxis
    values: Floats

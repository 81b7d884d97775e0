"""Runs as pandas frames. pandas is an extra: `pip install fedactors[notebook]`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedactors.extras import needed
from fedactors.study.run_figures import StudyRow, figures


def frame(rows: Sequence[StudyRow], target: float | None, window: int | None) -> Any:
    """Return a DataFrame with a row for each run: its labels, its seed, its figures and its folder."""
    pandas = needed("pandas", "notebook")
    return pandas.DataFrame(
        [{**one.labels, "seed": one.seed, **figures(one, target, window), "folder": str(one.folder)} for one in rows]
    )

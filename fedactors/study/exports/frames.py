"""Runs as pandas frames. pandas is an extra: `pip install fedactors[notebook]`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedactors.extras import needed
from fedactors.study.run_figures import StudyRow, figures, validated


def frame(rows: Sequence[StudyRow], target: float | None, window: int | None) -> Any:
    """Return a DataFrame with a row for each run: its labels, its seed, its figures and its folder."""
    pandas = needed("pandas", "notebook")
    by = validated(rows)
    found = [figures(one, target, window, by_validation=by) for one in rows]
    return pandas.DataFrame(
        [
            {**one.labels, "seed": one.seed, **values, "folder": str(one.folder)}
            for one, values in zip(rows, found, strict=True)
        ]
    )

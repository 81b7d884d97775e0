"""Reads back for how long devices were on in each stage of their trips."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from fedactors.plan import Plan, StageTimes
from fedactors.run_files.files import STAGES, damaged
from fedactors.run_files.tables import STAGE_COLUMNS, rows_of


def with_stages(run: Path, plans: Iterable[Plan]) -> Iterator[Plan]:
    """Yield the `plans` of a run folder with the times of their stages.

    Raises RunFolderError if they cannot be read, or are not those of the same trips.
    """
    path = run / STAGES
    rows = rows_of(path, STAGE_COLUMNS)
    for plan in plans:
        mine = np.array(list(islice(rows, len(plan.orders))), np.int64).reshape(-1, len(STAGE_COLUMNS))
        trips = np.column_stack([np.full(len(plan.orders), plan.version), plan.orders.client])
        if not np.array_equal(mine[:, :2], trips):
            raise damaged(path, f"other trips in round {plan.version + 1} than in orders.parquet")
        yield replace(plan, stages=StageTimes(*mine[:, 2:].T))

"""SHA-256 over what must not change with the machines: plans, metrics and the model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from fedactors.plan import Plan
from fedactors.run_files.files import damaged

WALL = frozenset(
    {"wall_seconds", "cost", "bytes_reduced"}
)  # keys of a metrics row that tell the machine's time, not the simulation's

Row = TypeVar("Row", bound=Mapping[str, object])


class Digests:
    """Running digests of one run."""

    def __init__(self) -> None:
        self._plans, self._metrics = hashlib.sha256(), hashlib.sha256()

    def plan(self, plan: Plan) -> None:
        """Take in a plan: its times, who came and left, every number of its orders, and its tier if it has one.

        Left out is what follows from these and the scenario: the oldest version that is kept, moves, times of stages.
        """
        head = [plan.version, plan.opened, plan.closed, plan.ready, len(plan.orders)]
        self._plans.update(repr((head, plan.arrived, plan.departed)).encode())
        for column in plan.orders.columns:
            self._plans.update(column.astype("<i8", copy=False).tobytes())
        if plan.tier is not None:
            mixed = [(int(model), float(share)) for model, share in plan.tier.mixed]
            self._plans.update(repr((plan.tier.edge, mixed, plan.tier.moved, plan.tier.number)).encode())

    def metrics(self, row: Mapping[str, object]) -> None:
        """Add a row of metrics, without its columns of real (wall-clock) time."""
        kept = {key: value for key, value in row.items() if key not in WALL}
        self._metrics.update(json.dumps(kept, sort_keys=True).encode() + b"\n")

    def values(self) -> dict[str, str]:
        """Return the digests of the plans and the metrics so far."""
        return {"plans": self._plans.hexdigest(), "metrics": self._metrics.hexdigest()}


def refuse_odd_times(path: Path, rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows of metrics, from the first line on.

    Raises RunFolderError if one has a column of real time, which no digest covers, that is no number.
    """
    for number, row in enumerate(rows, 1):
        for key in sorted(WALL & row.keys()):
            value = row[key]
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
                raise damaged(path, f"{key} {json.dumps(value)[:40]}", "a number from 0 on", number)
        yield row


def model_digest(state: Mapping[str, NDArray[np.float32]]) -> str:
    """Return the digest of the server's state: names, shapes and bits."""
    digest = hashlib.sha256()
    for name in sorted(state):
        value = np.ascontiguousarray(state[name])
        digest.update(f"{name} {value.shape} {value.dtype.str}\n".encode() + value.tobytes())
    return digest.hexdigest()

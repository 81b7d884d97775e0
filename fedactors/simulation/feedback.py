"""Feedback to the clock: the losses by which some policies select clients.

They are written into the rows of metrics, so that a resumed run and a replay give the clock the same feedback.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedactors.clock.availability import Int64
from fedactors.clock.clock import Clock
from fedactors.clock.selections.base import Loss
from fedactors.plan import Plan
from fedactors.run_files.files import METRICS, damaged, objects_in, problem, reading

Losses = Mapping[int, Loss]
Feedback = Callable[[Plan], Losses]


def noted(losses: Iterable[tuple[int, float, float]]) -> dict[str, Any]:
    """Return losses as a row of metrics holds them; what is not finite says nothing."""
    found = {str(client): [mean, square] for client, mean, square in losses if math.isfinite(mean + square)}
    return {"losses": found}


def losses_in(row: Mapping[str, Any]) -> Losses:
    """Return the losses that a row of metrics holds."""
    return {int(client): Loss(*values) for client, values in row.get("losses", {}).items()}


def nothing(plan: Plan) -> Losses:
    """Return the losses of a plan of which nothing was learned."""
    return {}


def heeding(clock: Clock, feedback: Feedback = nothing) -> Iterator[Plan]:
    """Yield the plans of a clock, which receives the `feedback` on each plan if it selects by losses."""
    for plan in clock:
        yield plan
        if clock.steered:
            clock.feedback(plan.version, feedback(plan))


def losses_of(run: Path) -> Feedback:
    """Return the feedback that a run has recorded. Raises RunFolderError if it cannot be read, or lacks the plan."""
    path = run / METRICS
    try:
        found = _losses_by_plan(path)
    except (ValueError, OverflowError, KeyError, TypeError, AttributeError):
        raise damaged(path, "not lines of JSON with the losses of a run") from None

    def of(plan: Plan) -> Losses:
        if plan.version not in found:
            raise problem(path, f"holds no losses of round {plan.version + 1}", "--rounds, or a run")
        clients, values = found[plan.version]
        return {client: Loss(*pair) for client, pair in zip(clients.tolist(), values.tolist(), strict=True)}

    return of


def _losses_by_plan(path: Path) -> dict[int, tuple[Int64, NDArray[np.float64]]]:
    """Return the clients, `(clients,)`, and the losses, `(clients, 2)`, of each plan, which take 24 bytes each."""
    found = {}
    with reading(path) as file:
        for row in objects_in(path, file):
            if "losses" in row:
                losses = losses_in(row)
                columns = np.array(list(losses), np.int64), np.array(list(losses.values()), np.float64).reshape(-1, 2)
                found[row["round"] - 1] = columns
    return found

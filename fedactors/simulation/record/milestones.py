"""What it took to get to an accuracy: rounds, virtual time, bytes, joules, wall time and money.

An accuracy is reached in the first round whose evaluation shows at least as much; between evaluations nobody knows.
Energy and bytes count everything that was spent until then, heard or not, and what was sent before the first round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from fedactors.metric_names import chooser, is_validated

NOTHING: Mapping[str, float] = MappingProxyType({})
LEVELS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
_SUMS = (
    "bytes_down",
    "bytes_up",
    "bytes_backhaul",
    "joules",
    "co2_grams",
)  # of each round; other columns count from the beginning


def milestones(
    rows: Iterable[Mapping[str, Any]], levels: Sequence[float] = LEVELS, ahead: Mapping[str, float] = NOTHING
) -> list[dict[str, Any]]:
    """Return a line for each of the ascending `levels` of accuracy that was reached, in the columns of metrics.

    The accuracy is that of the samples for validation, where there are some; then its value stands in the line, too.
    `ahead` was spent before the first round.
    """
    found: list[dict[str, Any]] = []
    sums: dict[str, float] = dict(ahead)
    for row in rows:
        for column in _SUMS:
            if column in row:
                sums[column] = sums.get(column, 0) + row[column]
        column = chooser("accuracy", validated=is_validated(row))
        value = {} if column == "accuracy" else {column: row.get(column)}
        while len(found) < len(levels) and (row.get(column) or 0.0) >= levels[len(found)]:
            found.append({"accuracy": levels[len(found)], **value, **_line(row), **_rounded(sums)})
    return found


def _rounded(sums: Mapping[str, float]) -> dict[str, float]:
    return {column: round(amount, 6) for column, amount in sums.items()}


def _line(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: row[key] for key in ("round", "virtual_seconds", "wall_seconds", "cost") if key in row}

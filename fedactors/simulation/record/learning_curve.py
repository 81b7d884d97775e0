"""How fast, how far and how steadily a run learned: pure functions of its test accuracies.

Source: FSL journal and conference papers. `rounds` and `accuracy` are what was evaluated, ascending and counted from 1;
the first model, before any round, is not among them. Where not every round is evaluated, windows still span rounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

WINDOW = 20  # rounds
RISEN = 0.9  # share of the final accuracy


def rolling(rounds: Sequence[int], accuracy: Sequence[float], window: int = WINDOW) -> Floats:
    """Return A_t, the mean accuracy over rounds t - window < s <= t, one per evaluated round; shorter at the start.

    Each mean is that of its window alone: where the window holds one value only, it is that value to the last bit.
    """
    at, values = np.asarray(rounds), np.asarray(accuracy, dtype=np.float64).tolist()
    first = np.searchsorted(at, at - window, side="right").tolist()
    return np.array([_mean(values[begin : end + 1]) for end, begin in enumerate(first)], dtype=np.float64)


def _mean(values: Sequence[float]) -> float:
    """Return the mean of values, which rounding does not move beyond the least or the greatest of them."""
    return min(max(math.fsum(values) / len(values), min(values)), max(values))


def final(rounds: Sequence[int], accuracy: Sequence[float], window: int = WINDOW) -> float:
    """Return A_T, the mean accuracy of the last `window` rounds."""
    return float(rolling(rounds, accuracy, window)[-1])


def rise_time(rounds: Sequence[int], accuracy: Sequence[float], share: float = RISEN, window: int = WINDOW) -> int:
    """Return T90 = min {t : A_t >= 0.9 A_T}: the first round at `share` of the final accuracy. Never after the last."""
    means = rolling(rounds, accuracy, window)
    return int(rounds[int(np.argmax(means >= share * means[-1]))])


def rounds_to(
    level: float, rounds: Sequence[int], accuracy: Sequence[float], window: int | None = WINDOW
) -> int | None:
    """Return T_q, the first round whose rolling accuracy is at least `level`; raw with `window=None`; None if never."""
    first = first_at(level, rounds, accuracy, window)
    return None if first is None else int(rounds[first])


def first_at(level: float, rounds: Sequence[int], accuracy: Sequence[float], window: int | None) -> int | None:
    """Return the position among `rounds` of the round that `rounds_to` returns; None if there is none."""
    means = np.asarray(accuracy) if window is None else rolling(rounds, accuracy, window)
    reached = np.flatnonzero(means >= level)
    return int(reached[0]) if len(reached) else None


def stability(rounds: Sequence[int], accuracy: Sequence[float], window: int = WINDOW) -> float:
    """Return the standard deviation of the accuracy over the last `window` rounds."""
    at = np.asarray(rounds)
    return float(np.asarray(accuracy, dtype=np.float64)[at > at[-1] - window].std())


def summary(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the measures of a run from the rows of its metrics; None if nothing was evaluated."""
    evaluated = [(row["round"], row["accuracy"]) for row in rows if "accuracy" in row]
    if not evaluated:
        return None
    curve = [at for at, _ in evaluated], [accuracy for _, accuracy in evaluated]
    return {
        "rolling_accuracy": final(*curve),
        "rise_round": rise_time(*curve),
        "rounds_to_half": rounds_to(0.5, *curve),
        "last_deviation": stability(*curve),
    }

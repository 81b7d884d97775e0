"""How fast, how far and how steadily a run learned: pure functions of its test accuracies.

Source: FSL journal and conference papers. `rounds` and `accuracy` are what was evaluated, ascending and counted from 1;
the first model, before any round, is not among them. Where not every round is evaluated, windows still span rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

WINDOW = 20  # rounds
RISEN = 0.9  # share of the final accuracy


def rolling(rounds: Sequence[int], accuracy: Sequence[float], window: int = WINDOW) -> Floats:
    """Return A_t, the mean accuracy over rounds t - window < s <= t, one per evaluated round; shorter at the start."""
    at, values = np.asarray(rounds), np.asarray(accuracy, dtype=np.float64)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    first = np.searchsorted(at, at - window, side="right")
    last = np.arange(1, len(at) + 1)
    means: Floats = (sums[last] - sums[first]) / (last - first)
    return means


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
    means = np.asarray(accuracy) if window is None else rolling(rounds, accuracy, window)
    reached = np.flatnonzero(means >= level)
    return int(rounds[int(reached[0])]) if len(reached) else None


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

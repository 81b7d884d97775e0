"""Means, differences in pairs, and their confidence intervals by Student's t."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import mean, stdev
from typing import NamedTuple


class Interval(NamedTuple):
    """A mean of `n` values and its confidence interval; of one value the interval is unknown."""

    n: int
    mean: float
    half: float | None  # half its width

    @property
    def low(self) -> float | None:
        """The lower end."""
        return None if self.half is None else self.mean - self.half

    @property
    def high(self) -> float | None:
        """The upper end."""
        return None if self.half is None else self.mean + self.half

    @property
    def apart(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.half is not None and abs(self.mean) > self.half


def interval(values: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """Return mean and interval: mean ± t_{n-1, (1 + confidence) / 2} s / sqrt(n); None of no values."""
    if not values:
        return None
    if len(values) == 1:
        return Interval(1, values[0], None)
    return Interval(len(values), mean(values), _t(len(values) - 1, confidence) * stdev(values) / sqrt(len(values)))


def paired(
    values: Sequence[float | None], baseline: Sequence[float | None], confidence: float = 0.95
) -> Interval | None:
    """Return the interval of `values - baseline`, pair by pair; pairs of which one is missing are left out."""
    pairs = zip(values, baseline, strict=True)
    return interval([a - b for a, b in pairs if a is not None and b is not None], confidence)


def _t(freedom: int, confidence: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + confidence) / 2))

"""Means, differences in pairs, and their confidence intervals by Student's t; those of shares stay within 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt, tanh
from statistics import mean, stdev
from typing import NamedTuple


class Interval(NamedTuple):
    """A mean of `n` values and its confidence interval; of one value the interval is unknown.

    `half` is half the width. The interval of a share is longer on the side of 1/2, others are as long on both sides.
    """

    n: int
    mean: float
    half: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def apart(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.half is not None and abs(self.mean) > self.half


class Proportion(NamedTuple):
    """The interval of a probability."""

    low: float
    high: float


def interval(values: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """Return mean and interval: mean ± t_{n-1, (1 + confidence) / 2} s / sqrt(n); None of no values."""
    if not values:
        return None
    if len(values) == 1:
        return Interval(1, values[0])
    middle = mean(values)
    half = _t(len(values) - 1, confidence) * stdev(values) / sqrt(len(values))
    return Interval(len(values), middle, half, middle - half, middle + half)


def share_interval(values: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """Return mean and interval of shares: Student's t on the scale of logits, around the mean of the shares.

    The ends are expit(logit(m) ± h / (m (1 - m))), where m ± h is the interval of `interval`: the delta method, as for
    `svyciprop(method = "logit")` of R's package `survey`. Values outside 0 to 1 are no shares, and treated as others.
    """
    found = interval(values, confidence)
    if found is None or found.half is None or not 0 < found.mean < 1 or min(values) < 0 or max(values) > 1:
        return found
    middle = log(found.mean / (1 - found.mean))
    reach = found.half / (found.mean * (1 - found.mean))
    low = _expit(middle - reach)
    high = _expit(middle + reach)
    return Interval(found.n, found.mean, (high - low) / 2, low, high)


def proportion_interval(count: int, of: int, confidence: float = 0.95) -> Proportion:
    """Return the exact interval of a probability, of `count` successes in `of` > 0 trials (Clopper, Pearson 1934)."""
    from scipy.special import betaincinv

    tail = (1 - confidence) / 2
    low = float(betaincinv(count, of - count + 1, tail)) if count else 0.0
    high = float(betaincinv(count + 1, of - count, 1 - tail)) if count < of else 1.0
    return Proportion(low, high)


def paired(
    values: Sequence[float | None], baseline: Sequence[float | None], confidence: float = 0.95
) -> Interval | None:
    """Return the interval of `values - baseline`, pair by pair; pairs of which one is missing are left out."""
    pairs = zip(values, baseline, strict=True)
    return interval([a - b for a, b in pairs if a is not None and b is not None], confidence)


def _t(freedom: int, confidence: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + confidence) / 2))


def _expit(x: float) -> float:
    return (1 + tanh(x / 2)) / 2

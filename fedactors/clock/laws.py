"""Laws with the moments of Ruan et al. (AISTATS 2021), Table 2: which share of the required epochs a device submits.

The paper prints the mean and the standard deviation of each trace, no more. On the grid z = s / E, s = 1 … E, the law
of maximum entropy with these moments is p_s ~ exp(a z + b z^2). Three traces also have rounds in which nothing
arrives: mass q at s = 0, for which moments of all rounds fix those of the active ones,

    m1 = m / (1 - q),   v1 = (m^2 + v) / (1 - q) - m1^2.

q itself is our choice; the paper does not print it, and no q above v / (m^2 + v) is possible.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedactors.errors import ScenarioError

Float64 = NDArray[np.float64]
_PRECISION = 1e-12
_STEPS = 200


class Moments(NamedTuple):
    """What Table 2 prints, as shares of 1, and the share of rounds without any epoch."""

    mean: float
    sd: float
    inactive: float = 0.0


TABLE_2 = {
    "T0": Moments(1.0, 0.0),
    "T30": Moments(0.753, 0.148),
    "T50": Moments(0.672, 0.113),
    "T70": Moments(0.572, 0.117),
    "T90": Moments(0.563, 0.148),
    "Thi": Moments(0.825, 0.233, 0.05),
    "Tmi": Moments(0.741, 0.223, 0.06),
    "Tlo": Moments(0.512, 0.183, 0.08),
}


@cache
def law(trace: str, levels: int) -> tuple[float, ...]:
    """Return P(s) for s = 0 … `levels` epochs of a trace of Table 2.

    Raises ScenarioError if so few levels cannot have its moments.
    """
    mean, sd, inactive = TABLE_2[trace]
    if not sd:
        return (*[0.0] * levels, 1.0)
    m1 = mean / (1 - inactive)
    v1 = (mean**2 + sd**2) / (1 - inactive) - m1**2
    active = _entropic(np.arange(1, levels + 1) / levels, m1, v1)
    if active is None:
        moments = f"mean {mean:.1%} and deviation {sd:.1%}"
        problem = f"{trace} has {moments}, which {levels} level{'s' * (levels > 1)} cannot give"
        raise ScenarioError(f"{problem} (accepted: 5 or more)")
    return (inactive, *((1 - inactive) * active).tolist())


def _entropic(z: Float64, mean: float, variance: float) -> Float64 | None:
    """Return p ~ exp(a z + b z^2) with this mean and variance, by Newton's method; None if there is none."""
    wanted = np.array([mean, variance + mean**2])
    powers = np.stack([z, z**2])
    point = np.zeros(2)  # (a, b)
    for _ in range(_STEPS):
        p = _softmax(point @ powers)
        miss = powers @ p - wanted
        if np.abs(miss).max() < _PRECISION:
            return p
        slope = (powers * p) @ powers.T - np.outer(powers @ p, powers @ p)
        step = np.linalg.lstsq(slope, miss, rcond=None)[0]
        length = float(np.abs(step).max())
        if not length:
            return None  # no step comes closer, as where there is one level
        point = point - step * min(1.0, 50.0 / length)  # far from the root, small steps
    return None


def _softmax(logits: Float64) -> Float64:
    weights: Float64 = np.exp(logits - logits.max())
    chances: Float64 = weights / weights.sum()
    return chances

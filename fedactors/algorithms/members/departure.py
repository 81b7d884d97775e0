"""When to drop a device that left: Corollary 4.0.3 of Ruan et al. 2021, with constants that a server can estimate.

With E local steps, T rounds in all and a departure after round tau_0,

    include   f0(tau) = ((tau - tau_0) D + V) / (tau E + gamma)
    exclude   f1(tau) = Vt / ((tau - tau_0) E + gamma)
    exclude iff min over tau_0 <= tau <= T of f0(tau) >= f1(T)

f0 is monotone, its slope having the sign of D (gamma + E tau_0) - E V, so the minimum is at an end. The paper's (9) is
one branch of this only.

[choice] The paper's constants bound errors from far above, so a server estimates them, in units of loss:

    V, gamma   of the course floor + V / (tau E + gamma) that fits the hold-out losses since the rate last began anew
    Gamma_l    the device's loss at the present model, less the least it reaches by training alone before it leaves
    D          E Gamma_l: the paper's D is E times a mean of all Gamma_k, up to a factor; Gamma_l is known
    V~         gamma (e + (p / (1 - p))^2 Gamma_l), e = V / (tau_0 E + gamma) the present excess: the paper's first
               term, the present error under the new objective, whose minimiser is off by about as much for losses of
               one curvature. At least V if the first rate is too large for a model as good as this one, so that the
               course begins anew with the rate: if a round at that rate raised the device's own loss (`rough`)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Course(NamedTuple):
    """How a loss falls: floor + v / (tau E + gamma), fitted to what was seen."""

    v: float
    gamma: float
    floor: float


class Constants(NamedTuple):
    """What the rule needs, in units of loss."""

    local_steps: float  # E
    done: int  # tau_0, rounds since the rate began anew
    rounds: int  # T, in the same count
    d: float  # D
    v: float  # V
    vt: float  # V~
    gamma: float


def include(tau: float, c: Constants) -> float:
    """Return f0(tau)."""
    return ((tau - c.done) * c.d + c.v) / (tau * c.local_steps + c.gamma)


def exclude(tau: float, c: Constants) -> float:
    """Return f1(tau)."""
    return c.vt / ((tau - c.done) * c.local_steps + c.gamma)


def least_include(c: Constants) -> float:
    """Return the minimum of f0 over tau_0 <= tau <= T."""
    return min(include(c.done, c), include(c.rounds, c))


def excludes(c: Constants) -> bool:
    """Whether the rule excludes; a tie does."""
    return least_include(c) >= exclude(c.rounds, c)


def constants(
    course: Course, local_steps: float, done: int, rounds: int, share: float, gap: float, *, rough: bool
) -> Constants:
    """Return the constants as estimated from the course of losses, p^l (`share`, below 1) and Gamma_l (`gap`)."""
    present = course.v / (done * local_steps + course.gamma) + (share / (1 - share)) ** 2 * gap
    vt = max(course.v if rough else 0.0, course.gamma * present)
    return Constants(local_steps, done, rounds, local_steps * gap, course.v, vt, course.gamma)


_GAMMAS = tuple(float(g) for g in np.geomspace(1.0, 1000.0, 61))


def fitted(losses: Sequence[tuple[int, float]], local_steps: float) -> Course:
    """Return the course that fits (round, loss) best: least squares over v >= 0 and the floor, for each gamma >= 1.

    Fewer than three losses say nothing: then v is 0 and the floor is the last one.
    """
    rounds, values = (np.array(column, float) for column in zip(*losses, strict=True)) if losses else (np.zeros(0),) * 2
    if len(values) < 3:
        return Course(0.0, 1.0, float(values[-1]) if len(values) else 0.0)
    best, least = Course(0.0, 1.0, float(values.mean())), float(((values - values.mean()) ** 2).sum())
    for gamma in _GAMMAS:
        x = 1.0 / (rounds * local_steps + gamma)
        v = float(((x - x.mean()) * (values - values.mean())).sum() / ((x - x.mean()) ** 2).sum())
        floor = float(values.mean() - v * x.mean())
        miss = float(((values - floor - v * x) ** 2).sum())
        if v > 0 and miss < least:
            best, least = Course(v, gamma, floor), miss
    return best

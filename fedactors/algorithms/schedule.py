"""The clients' learning rate over the rounds; constant within a round."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from fedactors.options import Options


class Schedule(Options):
    """Base of all schedules."""

    name: str

    def rate(self, round: int) -> float:
        """Return the rate of round `round`, counted from 1."""
        raise TypeError(f"{type(self).__name__} does not say its rate")


class ConstantRate(Schedule):
    """The same rate in every round."""

    name: Literal["constant"] = "constant"
    lr: float = Field(gt=0.0, lt=1e38)
    """eta_l"""

    def rate(self, round: int) -> float:
        """Return the rate of round `round`, counted from 1."""
        return self.lr


class StaircaseRate(Schedule):
    """eta_tau = lr0 / tau, rounds counted from 1: Ruan et al. 2021, section 5 (their tau = 0 would divide by zero)."""

    name: Literal["staircase"] = "staircase"
    lr: float = Field(gt=0.0, lt=1e38)
    """eta_0: the rate of the first round."""

    def rate(self, round: int) -> float:
        """Return the rate of round `round`, counted from 1."""
        return self.lr / round

"""A learning rate over the rounds, of the clients or of the server; constant within a round.

Names, options and numbers are those of `torch.optim.lr_scheduler`, with one step of the scheduler after every round;
`staircase` and `ruan` are Ruan et al.'s. Any of them may be preceded by `warm_up` rounds, in which the rate rises in
equal steps: k lr / (warm_up + 1) in round k. The schedule itself begins after them, with its first rate.
"""

from __future__ import annotations

from math import cos, pi
from typing import Annotated, Literal, TypeVar

from pydantic import Field, PositiveInt, field_validator

from fedactors.options import Options

S = TypeVar("S", bound="Schedule")
Rate = Annotated[float, Field(gt=0.0, lt=1e38)]
Factor = Annotated[float, Field(gt=0.0, le=1.0)]


class Schedule(Options):
    """Base of all schedules."""

    name: str
    warm_up: int = Field(default=0, ge=0, le=10_000_000)
    """Rounds before the schedule begins, in which the rate rises to its first one."""

    def rate(self, round: int) -> float:
        """Return the rate of round `round` of the schedule itself, counted from 1."""
        raise TypeError(f"{type(self).__name__} does not say its rate")

    def at(self, round: int) -> float:
        """Return the rate of round `round`, counted from 1, the rounds of the warm-up among them."""
        if round > self.warm_up:
            return self.rate(round - self.warm_up)
        return self.rate(1) * round / (self.warm_up + 1)

    def lasting(self: S, rounds: int) -> S:
        """Return the same schedule for a run of so many rounds, which is what its length is if none is given."""
        return self

    def problem(self, rounds: int) -> str:
        """Say why it cannot give the rates of so many rounds, or nothing: each must be above 0."""
        return "" if self.at(rounds) > 0 else f"the rate of round {rounds} would be 0"


class ConstantRate(Schedule):
    """The same rate in every round."""

    name: Literal["constant"] = "constant"
    lr: Rate
    """eta_l"""

    def rate(self, round: int) -> float:
        """Return the rate of round `round`, counted from 1."""
        return self.lr


class StaircaseRate(Schedule):
    """eta_tau = lr0 / tau, rounds counted from 1: Ruan et al. 2021, section 5 (their tau = 0 would divide by zero)."""

    name: Literal["staircase"] = "staircase"
    lr: Rate
    """eta_0: the rate of the first round."""

    def rate(self, round: int) -> float:
        """Return the rate of round `round`, counted from 1."""
        return self.lr / round


class RuanRate(Schedule):
    """eta_tau = 16 E / (mu E[sum_k p^k s^k]) / (tau E + gamma), rounds counted from 1: Ruan et al. 2021, Theorem 3.1.

    The theorem assumes a strongly convex objective and gamma = max(32 E (1 + theta) L, 4 mu E^2 theta) / (mu E[sum p
    s]), with theta = N, 1 and E for Schemes A, B and C. After a shift of the objective the rounds are counted anew
    (Corollary 3.2.1).
    """

    name: Literal["ruan"] = "ruan"
    mu: float = Field(gt=0.0, lt=1e38)
    """Strong convexity of the clients' losses."""
    gamma: float = Field(ge=0.0, lt=1e38)
    """What is added to the local updates so far; larger ones begin with a lower rate."""
    local_updates: PositiveInt
    """E: local updates of a round."""
    expected_updates: float | None = Field(default=None, gt=0.0, lt=1e38)
    """E[sum_k p^k s^k]: weighted updates expected in a round; by default E, where every device is complete."""

    def rate(self, round: int) -> float:
        """Return the rate of round `round`, counted from 1."""
        e = self.local_updates
        first = 16 * e / (self.mu * (self.expected_updates or e))
        return first / (round * e + self.gamma)


class ExponentialRate(Schedule):
    """lr gamma^t after t rounds: ExponentialLR."""

    name: Literal["exponential"] = "exponential"
    lr: Rate
    """The rate of the first round."""
    gamma: Factor
    """What the rate is multiplied by after every round."""

    def rate(self, round: int) -> float:
        """Return the rate of round `round`, counted from 1."""
        return float(self.lr * self.gamma ** (round - 1))


class StepRate(Schedule):
    """lr gamma^(t // step_size) after t rounds: StepLR."""

    name: Literal["step"] = "step"
    lr: Rate
    """The rate of the first round."""
    step_size: PositiveInt
    """Rounds with the same rate."""
    gamma: Factor = 0.1
    """What the rate is multiplied by after them."""

    def rate(self, round: int) -> float:
        """Return the rate of round `round`, counted from 1."""
        return float(self.lr * self.gamma ** ((round - 1) // self.step_size))


class MultiStepRate(Schedule):
    """lr gamma^(milestones up to t) after t rounds: MultiStepLR."""

    name: Literal["multistep"] = "multistep"
    lr: Rate
    """The rate of the first round."""
    milestones: Annotated[tuple[PositiveInt, ...], Field(strict=False, min_length=1)]
    """Numbers of rounds after which the rate is multiplied by gamma; ascending."""
    gamma: Factor = 0.1
    """What the rate is multiplied by after each of them."""

    @field_validator("milestones")
    @classmethod
    def _check_ascending(cls, milestones: tuple[int, ...]) -> tuple[int, ...]:
        if list(milestones) != sorted(set(milestones)):
            raise ValueError("must ascend")
        return milestones

    def rate(self, round: int) -> float:
        """Return the rate of round `round`, counted from 1."""
        return float(self.lr * self.gamma ** sum(milestone < round for milestone in self.milestones))


class CosineRate(Schedule):
    """From lr to eta_min along half a cosine, and back again: CosineAnnealingLR."""

    name: Literal["cosine"] = "cosine"
    lr: Rate
    """The rate of the first round."""
    t_max: PositiveInt | None = None
    """Rounds until the rate would be `eta_min`; by default all of the run, without the warm-up."""
    eta_min: float = Field(default=0.0, ge=0.0, lt=1e38)
    """The lowest rate."""

    def rate(self, round: int) -> float:
        """Return the rate of round `round`, counted from 1."""
        turned = cos(pi * ((round - 1) % (2 * (self.t_max or 1))) / (self.t_max or 1))
        return self.eta_min + (self.lr - self.eta_min) * (1 + turned) / 2

    def lasting(self, rounds: int) -> CosineRate:
        """Return the same schedule with a length."""
        length = self.t_max or max(1, rounds - self.warm_up)
        return self.model_copy(update={"t_max": length})

    def problem(self, rounds: int) -> str:
        """Say if a round would come at which the cosine has its low, without a lowest rate above 0."""
        if self.eta_min or self.t_max is None or rounds - self.warm_up <= self.t_max:
            return ""
        last, least = self.warm_up + self.t_max, rounds - self.warm_up
        return f"the rate of round {last + 1} would be 0; give eta_min above 0, or t_max of at least {least}"


class PolynomialRate(Schedule):
    """lr (1 - t / total_iters)^power after t rounds: PolynomialLR."""

    name: Literal["polynomial"] = "polynomial"
    lr: Rate
    """The rate of the first round."""
    total_iters: PositiveInt | None = None
    """Rounds until the rate would be 0; by default all of the run, without the warm-up."""
    power: float = Field(default=1.0, gt=0.0, le=100.0)
    """1 lets the rate fall in equal steps."""

    def rate(self, round: int) -> float:
        """Return the rate of round `round`, counted from 1."""
        total = self.total_iters or 1
        return float(self.lr * (1 - min(round - 1, total) / total) ** self.power)

    def lasting(self, rounds: int) -> PolynomialRate:
        """Return the same schedule with a length."""
        length = self.total_iters or max(1, rounds - self.warm_up)
        return self.model_copy(update={"total_iters": length})

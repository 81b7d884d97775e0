"""How much an update counts that started from an older model: s of its staleness tau.

tau is the number of versions that the server has made since the client was sent its model: 0 for one that is up to
date, for which every function here is 1. Xie, Koyejo and Gupta, Asynchronous Federated Optimization, 2019, write
t - tau for it and list, as choices of s in alpha_t = alpha s(t - tau) of Algorithm 1 (without numbers):

    constant      s = 1
    polynomial    s = (tau + 1)^-a
    hinge         s = 1 if tau <= b, else 1 / (a (tau - b) + 1)

Nguyen et al., Federated Learning with Buffered Asynchronous Aggregation, 2022, take 1 / sqrt(1 + tau): polynomial with
a = 1/2.

Abdelmoniem et al., REFL: Resource-Efficient Federated Learning, 2023, have w = 1 for a fresh update, and
for a stale one

    w_s = (1 - beta) / (tau_s + 1) + beta (1 - exp(-Lambda_s / Lambda_max)) ;  weights are w_i / sum_j w_j

Lambda_s says how far the update is from the mean of the fresh ones. With beta = 0 (the default) that is polynomial
with a = 1, and weights of an aggregation add up to what they did without it. With beta above 0 (0.35 in the paper) the
server needs updates one by one, and works out the second term itself: `fedactors.learning.traffic.deviation`. Weights
that are recorded are those for beta = 0, as they are known before training.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from fedactors.options import Options


class StalenessWeight(Options):
    """Base of the functions s."""

    normalised: ClassVar[bool] = False
    """Whether the weights of an aggregation are scaled to the sum that they have without s."""

    name: str

    @property
    def deviation(self) -> float:
        """What share of s depends on the update itself: REFL's beta."""
        return 0.0

    def factor(self, staleness: int) -> float:
        """Return s(tau), tau the `staleness`."""
        raise TypeError(f"{type(self).__name__} does not say what an older update counts")


class ConstantStaleness(StalenessWeight):
    """Every update counts alike."""

    name: Literal["constant"] = "constant"

    def factor(self, staleness: int) -> float:
        """Return 1."""
        return 1.0


class PolynomialStaleness(StalenessWeight):
    """A power of the staleness."""

    name: Literal["polynomial"] = "polynomial"
    a: float = Field(default=0.5, ge=0.0)
    """Exponent; 0.5 in both papers' experiments."""

    def factor(self, staleness: int) -> float:
        """Return (tau + 1)^-a."""
        return float((staleness + 1) ** -self.a)


class HingeStaleness(StalenessWeight):
    """In full up to a bound, then ever less."""

    name: Literal["hinge"] = "hinge"
    a: float = Field(default=10.0, gt=0.0)
    """How fast it falls beyond the bound."""
    b: int = Field(default=4, ge=0)
    """Staleness up to which an update counts in full."""

    def factor(self, staleness: int) -> float:
        """Return 1 up to b, then 1 / (a (tau - b) + 1)."""
        return 1.0 if staleness <= self.b else 1.0 / (self.a * (staleness - self.b) + 1.0)


class ReflStaleness(StalenessWeight):
    """REFL's: falls with age, and fresh updates count the more for it."""

    normalised: ClassVar[bool] = True

    name: Literal["refl"] = "refl"
    beta: float = Field(default=0.0, ge=0.0, le=1.0)
    """How much a stale update counts for being different from the fresh ones, in place of for its age."""

    def factor(self, staleness: int) -> float:
        """Return 1 / (tau + 1)."""
        return 1.0 / (staleness + 1)

    @property
    def deviation(self) -> float:
        """Return beta."""
        return self.beta

"""How much an update counts that started from an older model: s of its staleness tau.

tau is the number of versions that the server has made since the client was sent its model: 0 for one that is up to
date, for which every function here is 1. Xie, Koyejo and Gupta, Asynchronous Federated Optimization, 2019, write
t - tau for it and list, as choices of s in alpha_t = alpha s(t - tau) of Algorithm 1 (without numbers):

    constant      s = 1
    polynomial    s = (tau + 1)^-a
    hinge         s = 1 if tau <= b, else 1 / (a (tau - b) + 1)

Nguyen et al., Federated Learning with Buffered Asynchronous Aggregation, 2022, take 1 / sqrt(1 + tau): polynomial with
a = 1/2.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from fedactors.options import Options


class StalenessWeight(Options):
    """Base of the functions s."""

    name: str

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

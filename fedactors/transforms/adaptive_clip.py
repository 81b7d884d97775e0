"""Adaptive clipping: Andrew et al., Differentially Private Learning with Adaptive Clipping, 2021, Algorithm 1.

    uplink: [{name: adaptive-clip, initial: 0.1, quantile: 0.5, count_deviation: 2.0}, {name: gaussian, multiplier: z}]

    server sends C_t with the model
    client:  b_i <- 1 if |update| <= C_t else 0 ;  update <- update min(1, C_t / |update|) ;  sends both
    server:  b <- ( sum_i (b_i - 1/2) + N(0, sigma_b^2) ) / heard + 1/2
             C_{t+1} <- C_t exp( - eta_C (b - gamma) )

gamma is the quantile of norms that C follows, eta_C the `rate`, sigma_b the `count_deviation` (the paper takes a
twentieth of the cohort). The noise behind it has the deviation z C_t times the largest weight. A bit is a release of
its own, with the multiplier 2 sigma_b, since b_i - 1/2 is 0 for a device that sends nothing: the paper gives both one
budget, here they are counted beside each other. A
round without updates changes nothing. C stays between 1e-30 and 1e30, whatever noise does to b.
"""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from fedactors.transforms.base import Given, UpdateTransform
from fedactors.transforms.row_norms import LONGEST, SHORTEST, Norm, row_norms
from fedactors.transforms.wire import Layout, Wire

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.transforms.base import Vectors
    from fedactors.transforms.draws import SenderDraws

_FAR = 100.0  # steps of the logarithm of C that are longer leave its bounds anyway


class AdaptiveClip(UpdateTransform):
    """Shortens updates that are longer than a norm, which follows a quantile of the updates' norms."""

    name: Literal["adaptive-clip"] = "adaptive-clip"
    initial: Norm = 0.1
    """The norm in the first round."""
    quantile: float = Field(default=0.5, ge=0.0, le=1.0)
    """The share of updates that are to be no longer than the norm."""
    rate: float = Field(default=0.2, ge=0.0)
    """How fast the norm follows."""
    count_deviation: float = Field(default=0.0, ge=0.0)
    """Deviation of the noise in the number of updates that are no longer than the norm; 0 guarantees nothing."""

    @property
    def bound(self) -> tuple[float, int]:
        """The norm of the first round; later the server broadcasts it."""
        return self.initial, 2

    @property
    def first_broadcast_value(self) -> float:
        """The norm of the first round."""
        return self.initial

    def wire(self, wire: Wire, layout: Layout) -> Wire:
        """Return one bit more."""
        return wire._replace(counts=wire.counts + 1)

    def apply(self, rows: Tensor, kept: Vectors, given: Given) -> tuple[Tensor, dict[str, Tensor]]:
        """Shorten each row that is too long, and tell which are not: `count` is (clients, 1)."""
        norms, longest = row_norms(rows), given.broadcast_value
        return rows * (longest / norms).clamp(max=1.0), {"count": (norms <= longest).to(rows.dtype)}

    def next_broadcast_value(self, value: float, count: float, heard: int, draws: SenderDraws) -> float:
        """Return the norm after a round in which `count` of the updates heard were no longer than it."""
        centred = count - heard / 2 + self.count_deviation * float(draws.normal(1)[0, 0])
        step = -self.rate * (centred / heard + 0.5 - self.quantile)
        return min(max(value * exp(min(max(step, -_FAR), _FAR)), SHORTEST), LONGEST)

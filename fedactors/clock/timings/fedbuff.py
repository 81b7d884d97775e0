"""FedBuff: Nguyen et al., Federated Learning with Buffered Asynchronous Aggregation, 2022, Algorithm 1.

    keep M clients working, each from the model that was the newest when it was asked
    whenever an update Delta_i arrives:  Delta <- Delta + s(tau_i) Delta_i ; k <- k + 1
    when k = K:                          x <- x + eta_g Delta / K ; Delta, k <- 0

with s(tau) = 1 / sqrt(1 + tau), tau_i the versions made since client i was asked. (The paper's Delta_i points uphill
and is subtracted.) eta_g is the algorithm's `global_lr`; the mean over K is the participation policy, uniform unless
the scenario says otherwise. The weights are not renormalised: stale updates make the step shorter.

A client that has an update in the buffer is asked again after the aggregation, not before: two trips from one model
would be the same trip. The buffer is aggregated with fewer than K updates when nobody else can ever contribute, and
when the run ends.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fedactors.clock.timings.base import Asynchronous
from fedactors.clock.timings.staleness import StalenessWeight
from fedactors.scenario.choice import Choice


class FedBuff(Asynchronous):
    """Aggregate whenever a number of updates has arrived."""

    weighting: ClassVar[str | None] = "uniform"

    name: Literal["fedbuff"] = "fedbuff"
    buffer: int = Field(default=10, ge=1, le=10_000_000)
    """Updates in an aggregation (K)."""
    staleness: Annotated[StalenessWeight, Choice("staleness")] = Field(default="polynomial", validate_default=True)
    """What an update counts that started from an older model; by default 1 / sqrt(1 + tau)."""

    @property
    def updates(self) -> int:
        """Return K."""
        return self.buffer

"""FedAsync: Xie, Koyejo and Gupta, Asynchronous Federated Optimization, 2019, Algorithm 1.

    server, scheduler:  send (x_t, t) to a worker whenever one is free
    worker:             x_new <- SGD on its data from x_tau ; send (x_new, tau)
    server, updater:    alpha_t <- alpha s(t - tau)
                        x_t <- (1 - alpha_t) x_{t-1} + alpha_t x_new

Here a worker sends Delta = x_new - x_tau, and the server's last line is the same in another order:

    x <- ( x + alpha_t (x_tau - x) ) + alpha_t Delta

so a client that returns the server's model as it is leaves it as it is, bit for bit, and one that returns an older
model as it was draws the server's towards that, as the paper has it. What comes in the place of "+ alpha_t Delta" is
the algorithm's own aggregation: FedAvg's with eta_g = 1 gives FedAsync, FSL's learns from the server's data next.

The paper's regulariser rho of the local loss is FedProx's mu: `algorithm: {name: fedprox, mu: ...}`. Its updater counts
the version it is about to make (t - tau = 1 for a worker that is up to date); we count the versions made since, which
is 0 there, and s(0) = 1 as the paper asks of s. alpha does not decay over time here.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from fedactors.clock.timings.base import Asynchronous
from fedactors.clock.timings.staleness import StalenessWeight
from fedactors.scenario.choice import Choice


class FedAsync(Asynchronous):
    """Mix every client's model into the server's as it comes in."""

    mixes: ClassVar[bool] = True

    name: Literal["fedasync"] = "fedasync"
    mixing: float = Field(default=0.6, gt=0.0, le=1.0)
    """Share of an up-to-date client's model in the next one (alpha)."""
    staleness: Annotated[StalenessWeight, Choice("staleness")] = Field(default="polynomial", validate_default=True)
    """What an update counts that started from an older model (s): constant, polynomial or hinge."""

    @model_validator(mode="after")
    def _check_staleness_weight(self) -> FedAsync:
        if self.staleness.normalised:
            raise ValueError(
                f"staleness: {self.staleness.name} compares the updates of one aggregation, and fedasync applies one"
                " at a time (accepted: constant, polynomial, hinge)"
            )
        return self

    @model_validator(mode="after")
    def _check_on_stale(self) -> FedAsync:
        if self.on_stale == "wait":
            raise ValueError(
                "on_stale: wait: fedasync applies one update at a time, so of two clients that started from the same"
                " model one is always further behind (accepted: drop, or fedbuff)"
            )
        return self

    @property
    def updates(self) -> int:
        """Return 1."""
        return 1

    def weight(self, staleness: int) -> float:
        """Return alpha s(tau)."""
        return self.mixing * super().weight(staleness)

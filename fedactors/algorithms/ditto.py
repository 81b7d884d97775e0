"""Ditto: Li et al., Ditto: Fair and Robust Federated Learning Through Personalization, 2021, Algorithm 1.

    for t = 0..T-1:
      S_t <- cohort ; send x_t
      each i in S_t:  Delta_i <- LocalSGD(x_t, eta_l, K_i, D_i).y - x_t
                      K_i times:  v_i <- v_i - eta_l ( g_i(v_i) + lambda (v_i - x_t) )
                      send Delta_i ; keep v_i
      x_{t+1} <- x_t + eta_g sum_i w_i Delta_i

The global model is FedAvg's. v_i is the client's own model, and the one that it is evaluated with. A client trains both
on the same batches, so that a step takes twice the time; v_i does not travel.

The paper starts all v_i from one model and says nothing of clients that come late: here v_i starts from the x_t of the
client's first trip. Steps that were cut short are cut short for both models. lambda = 0 trains v_i alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from fedactors.algorithms.fedavg import Averaging
from fedactors.learning.algorithm import ClientResult, TaskSetting

if TYPE_CHECKING:
    from torch import Tensor


class Ditto(Averaging):
    """Federated averaging, and a model of each client's own that is pulled towards the average."""

    keeps: ClassVar[tuple[str, ...]] = ("own",)

    name: Literal["ditto"] = "ditto"
    pull: float = Field(default=0.1, ge=0.0, allow_inf_nan=False)
    """Weight of the pull towards the global model (lambda); the paper tunes it in {0.05, 0.1, 1, 2}."""

    @property
    def own_pull(self) -> float:
        """Return lambda."""
        return self.pull

    @property
    def wants_sgd(self) -> str:
        """Own models are trained by the steps that the paper has."""
        return "clients' own models are trained by SGD"

    def effort(self, setting: TaskSetting) -> float:
        """Return that a client does each step twice."""
        return 2.0

    def keep(self, trip: ClientResult) -> dict[str, Tensor]:
        """v_i."""
        assert trip.own is not None
        return {"own": trip.own}

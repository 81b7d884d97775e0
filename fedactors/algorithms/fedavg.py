"""FedAvg: McMahan et al., Communication-Efficient Learning of Deep Networks from Decentralized Data, 2017, Alg. 1.

    for t = 0..T-1:
      S_t <- cohort ; send x_t
      each i in S_t:  Delta_i <- LocalSGD(x_t, eta_l, K_i, D_i).y - x_t
      x_{t+1} <- x_t + eta_g * sum_i w_i Delta_i

The weights w_i are the participation policy's: samples (the paper's n_i / n), uniform, or Scheme A, B, C. With
eta_g = 1 and weights that sum to 1 this averages models, as the paper writes it. A round without updates
leaves x unchanged, bit for bit.

With an optimiser of the server in place of eta_g it is FedAvgM, FedAdagrad, FedAdam or FedYogi (Reddi et al. 2021,
Algorithm 2): x_{t+1} <- SERVEROPT(x_t, -sum_i w_i Delta_i). A round without updates leaves its m and v alone, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from fedactors.learning.algorithm import Algorithm, Round
from fedactors.optim.server_optimizers import ServerOptimizer, joined, split

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.learning.algorithm import CentralData, Vectors


class Averaging(Algorithm):
    """The server half of FedAvg."""

    global_lr: float = Field(default=1.0, ge=0.0)
    """Server step (eta_g); 1 averages models."""

    def undefined(self, mixing: bool) -> str:
        """Return nothing: an older update is one more difference to add, in FedBuff's setting and FedAsync's."""
        return ""

    def aggregate(self, state: Vectors, sums: Vectors, round: Round, central: CentralData) -> dict[str, Tensor]:
        """x <- x + eta_g * sum_i w_i Delta_i."""
        step = sums["delta"] if self.global_lr == 1.0 else self.global_lr * sums["delta"]
        return {"x": state["x"] + step}


class FedAvg(Averaging):
    """Average the clients' models after local SGD."""

    name: Literal["fedavg"] = "fedavg"
    server_optimizer: ServerOptimizer | None = None
    """How the server follows the update (SERVEROPT), in place of `global_lr`: sgd, momentum, adam, yogi, adagrad."""

    @model_validator(mode="after")
    def _check_server_rate(self) -> FedAvg:
        if self.server_optimizer is not None and "global_lr" in self.model_fields_set and self.global_lr != 1.0:
            raise ValueError("give global_lr or server_optimizer, whose rate is server_optimizer.lr")
        return self

    def start(self, x: Tensor) -> dict[str, Tensor]:
        """x, and what the server's optimiser keeps."""
        return {"x": x, **(joined(self.server_optimizer.start(x), "server") if self.server_optimizer else {})}

    def aggregate(self, state: Vectors, sums: Vectors, round: Round, central: CentralData) -> dict[str, Tensor]:
        """x <- SERVEROPT(x, -sum_i w_i Delta_i)."""
        if self.server_optimizer is None:
            return super().aggregate(state, sums, round, central)
        x, slots = self.server_optimizer.step(state["x"], -sums["delta"], split(state, "server"))
        return {"x": x, **joined(slots, "server")}

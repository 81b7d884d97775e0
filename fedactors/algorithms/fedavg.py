"""FedAvg: McMahan et al., Communication-Efficient Learning of Deep Networks from Decentralized Data, 2017, Alg. 1.

    for t = 0..T-1:
      S_t <- cohort ; send x_t
      each i in S_t:  Delta_i <- LocalSGD(x_t, eta_l, K_i, D_i).y - x_t
      x_{t+1} <- x_t + eta_g * sum_i w_i Delta_i

The weights w_i are the participation policy's: samples (the paper's n_i / n), uniform, or Scheme A, B, C. With
eta_g = 1 and weights that sum to 1 this averages models, as the paper writes it. A round that hears nobody
leaves x unchanged, bit for bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from fedactors.learning.algorithm import Algorithm, Round

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.learning.algorithm import Central, Vectors


class Averaging(Algorithm):
    """The server half of FedAvg."""

    global_lr: float = Field(default=1.0, ge=0.0)
    """Server step (eta_g); 1 averages models."""

    def aggregate(self, state: Vectors, sums: Vectors, round: Round, central: Central) -> dict[str, Tensor]:
        """X <- x + eta_g * sum_i w_i Delta_i."""
        return {"x": state["x"] + self.global_lr * sums["delta"]}


class FedAvg(Averaging):
    """Average the clients' models after local SGD."""

    name: Literal["fedavg"] = "fedavg"

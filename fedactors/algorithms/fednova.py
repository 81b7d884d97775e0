"""FedNova: Wang et al., Tackling the Objective Inconsistency Problem in Heterogeneous Federated Optimization, 2020.

A client that takes more local steps pulls the average its way, and FedAvg then minimises another objective than it was
asked to. FedNova averages updates per unit of work, and scales the average back:

    each i in S_t:  y_i <- x after tau_i local steps ;  Delta_i = y_i - x = -eta_l G_i a_i
                    d_i = Delta_i / |a_i|_1
    x <- x + tau_eff sum_i w_i d_i ,   tau_eff = sum_i w_i |a_i|_1

a_i holds the weight that each of the tau_i gradients has in Delta_i (paper, section 4):

    SGD        a = (1, ..., 1)
               |a|_1 = tau
    momentum   a = (1 - rho^tau, ..., 1 - rho) / (1 - rho)
               |a|_1 = ( tau - rho (1 - rho^tau)/(1 - rho) ) / (1 - rho)
    proximal   a = ( (1 - eta mu)^(tau-1), ..., 1 - eta mu, 1 )
               |a|_1 = ( 1 - (1 - eta mu)^tau ) / (eta mu)                     for eta mu <= 1
                       ( 1 - |1 - eta mu|^tau ) / ( 1 - |1 - eta mu| )         above; tau for eta mu = 2

tau_i are the steps really done, by the clock's account: a device cut short by the deadline counts with what it did.
Equal tau_i give FedAvg with the same local steps. With mu > 0, tau_eff = sum_i w_i tau_i, as in the authors' code;
`tau_eff: norm` takes sum_i w_i |a_i|_1 there, too, so that equal tau_i give FedProx.
Momentum restarts from zero in each trip. Weights that do not sum to 1 (Schemes A, B, C) scale the step once, not
twice: tau_eff is divided by their sum. A client without steps sends nothing that counts.
"""

from __future__ import annotations

from math import log1p
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from fedactors.algorithms.fedavg import Averaging
from fedactors.learning.algorithm import ClientResult, Round, TaskSetting
from fedactors.optim.client_optimizers import SGD, ClientMomentum, Optimizer

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.learning.algorithm import CentralData, Vectors


class FedNova(Averaging):
    """Federated averaging of updates normalised by the local steps really done."""

    changes: ClassVar[tuple[str, ...]] = ("direction",)
    data_independent: ClassVar[tuple[str, ...]] = ("tau",)  # from numbers of steps alone

    name: Literal["fednova"] = "fednova"
    momentum: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    """Momentum of the local steps (rho)."""
    mu: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)
    """Weight of a proximal term in the local steps, as in FedProx."""
    tau_eff: Literal["steps", "norm"] = "steps"
    """With `mu`, what tau_eff is the mean of: local steps, as in the authors' code; or |a|_1, as without `mu`."""

    @model_validator(mode="after")
    def _check_momentum_or_mu(self) -> FedNova:
        if self.momentum and self.mu:
            raise ValueError("give momentum or mu, not both: the paper derives a for each alone")
        return self

    @property
    def prox(self) -> float:
        """Return mu."""
        return self.mu

    @property
    def wants_sgd(self) -> str:
        """The weights a_i are those of all gradients of a trip, each of the whole model."""
        return "its updates are divided by what all steps of a trip weigh"

    def optimizer(self, setting: TaskSetting) -> Optimizer:
        """Return SGD, with the momentum whose a is known."""
        return ClientMomentum(beta=self.momentum) if self.momentum else SGD()

    def upload(self, trip: ClientResult) -> dict[str, Tensor]:
        """d_i, and the scalar that tau_eff is the mean of."""
        import torch

        tau = torch.as_tensor(trip.steps, dtype=torch.float64, device=trip.delta.device)
        tau = tau.reshape(*trip.delta.shape[:-1], 1)
        norm = self.norm(tau, trip.lr)
        direction = torch.where(tau > 0, trip.delta / norm.to(trip.delta.dtype), 0.0)
        counted = tau if self.mu and self.tau_eff == "steps" else norm
        return {"direction": direction, "tau": counted.to(trip.delta.dtype)}

    def norm(self, tau: Tensor, lr: float) -> Tensor:
        """Return |a|_1."""
        rho, shrink = self.momentum, lr * self.mu
        if rho:
            return (tau - rho * (1 - rho**tau) / (1 - rho)) / (1 - rho)
        if 0 < shrink < 1:
            return -(tau * log1p(-shrink)).expm1() / shrink
        kept = abs(1 - shrink)  # of what a gradient had moved, by one step more
        return tau if kept == 1 else (1 - kept**tau) / (1 - kept)

    def aggregate(self, state: Vectors, sums: Vectors, round: Round, central: CentralData) -> dict[str, Tensor]:
        """x <- x + eta_g tau_eff sum_i w_i d_i."""
        return {"x": state["x"] + self.global_lr * sums["tau"] / round.weight * sums["direction"]}

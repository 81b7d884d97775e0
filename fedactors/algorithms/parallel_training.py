"""Parallel Training (PT): Augenstein et al., Mixed Federated Learning, 2022, Algorithm 1 without the gradients.

    send x
    central:  xc <- x ; K_c times: xc <- CENTRALOPT(xc, g_c(xc; B_c), eta_c) ; Dc <- xc - x        beside the clients
    clients:  y <- x ;  K_i times: y <- y - eta g_i(y; B_i) ;                  D_i <- y - x
    server:   Dbar <- sum pw_i D_i / sum pw_i ; Df <- SERVEROPT(x, -Dbar, eta_s) - x
              x <- MERGEOPT(x, -(Dc + Df), eta_m)

A fresh batch in each step. FedAvg's traffic: 1 model down, 1 up. A round without updates has Df = 0 and keeps the
central part; K_c = 0 or w_c = 0 is FedAvg on the weighted loss. An optimiser that keeps something (CENTRALOPT) begins
anew in every round, since xc does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import model_validator

from fedactors.algorithms.mixed import CentralTraining
from fedactors.learning.algorithm import Round, TaskSetting
from fedactors.optim.server_optimizers import ServerOptimizer
from fedactors.plan import Payload

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.learning.algorithm import CentralData, Vectors


class ParallelTraining(CentralTraining):
    """Clients and a central learner train beside each other; their updates are added."""

    centre: ClassVar[Literal["beside"]] = "beside"
    central_results: ClassVar[tuple[str, ...]] = ("central",)

    name: Literal["mixed-pt"] = "mixed-pt"
    central_optimizer: ServerOptimizer | None = None
    """How the central learner takes its steps (CENTRALOPT), in place of SGD with `central_lr`."""

    @model_validator(mode="after")
    def _check_central_rate(self) -> ParallelTraining:
        if self.central_optimizer is not None and self.central_lr is not None:
            raise ValueError("give central_lr or central_optimizer, whose rate is central_optimizer.lr")
        return self

    def payload(self, setting: TaskSetting) -> Payload:
        """Return FedAvg's traffic; the central learner works beside the clients."""
        return Payload(during=self.central_samples(setting))

    def contribute(self, state: Vectors, round: Round, central: CentralData) -> dict[str, Tensor]:
        """Dc: K_c steps along the weighted central gradient."""
        x = state["x"]
        work = self.central_work(round.setting)
        rate = self.central_rate(round)
        xc = central.learn(x, rate, work, round.version, weight=self.central_weight, optimizer=self.central_optimizer)
        return {"central": xc - x}

    def aggregate(self, state: Vectors, sums: Vectors, round: Round, central: CentralData) -> dict[str, Tensor]:
        """x <- MERGEOPT(x, -(Dc + SERVEROPT(x, -Dbar) - x))."""
        xf, kept = self._served(state, sums)
        return {**kept, **self._merged(state, state["central"] + (xf - state["x"]))}

    def idle(self, state: Vectors, round: Round, central: CentralData) -> dict[str, Tensor]:
        """x <- MERGEOPT(x, -Dc): the central part alone."""
        kept = {name: value for name, value in state.items() if name != "central"}
        return {**kept, **self._merged(state, state["central"])}

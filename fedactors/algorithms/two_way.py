"""2-way Gradient Transfer (2-W): Augenstein et al., Mixed Federated Learning, 2022, Algorithm 1 (left).

    send x, gc
    central:  xc <- x ; K_c times: xc <- xc - eta_c ( g_c(xc; B_c) + gf ) ; Dc <- xc - x         beside the clients
    clients:  y <- x ;  K_i times: y <- y - eta ( g_i(y; B_i) + gc ) ;      D_i <- y - x
    server:   Dbar <- sum pw_i D_i / sum pw_i ; Df <- SERVEROPT(x, -Dbar, eta_s) - x
              x <- MERGEOPT(x, -(Dc + Df), eta_m)
              gc+ <- -Dc / (eta_c K_c) - gf ; gf+ <- -sum D_i / (eta sum K_i) - gc        from the gc, gf of this round

gc = gf = 0 at first, unless `initial_gradients` names a file with others (the paper's input). gc+ and gf+ are exactly
the means of the raw gradients along the central path and over all client steps, whatever K_i each client got done; so
both sides must take plain SGD steps. They are computed as these means where the engine sums gradients: differences of
models lose digits as the rate falls. What travels is one vector still, the sum of a client's gradients G_i: D_i = -eta
( G_i + K_i gc ). (The paper prints eta and J for eta_c
and K_c.) 2 models down, 1 up.

As printed, with eta_m = 1, both sides follow the whole gradient and their updates are added: a double step. eta_m = 1/2
(`merge_lr: 0.5`) is the setting that compares fairly with PT and 1-W; the default is as printed.

In a round without updates or local steps, Df = 0 and gf+ = gf, and x still takes the central part. With K_c = 0 or
eta_c = 0, gc stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import model_validator

from fedactors.algorithms.mixed import CentralTraining
from fedactors.learning.algorithm import ClientResult, Round, TaskSetting
from fedactors.optim import initial_gradients
from fedactors.optim.server_optimizers import ServerOptimizer
from fedactors.paths import ScenarioPath
from fedactors.plan import Payload

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from fedactors.learning.algorithm import CentralData, Vectors


class TwoWay(CentralTraining):
    """Clients and a central learner train beside each other, each corrected by the other's last mean gradient."""

    centre: ClassVar[Literal["beside"]] = "beside"
    central_results: ClassVar[tuple[str, ...]] = ("central", "central_gradient_sum")
    sends: ClassVar[tuple[str, ...]] = ("x", "gc")
    unweighted: ClassVar[tuple[str, ...]] = ("gradient_sum",)
    changes: ClassVar[tuple[str, ...]] = ()  # the server works "gradient_sum" out from "delta", which must be exact

    name: Literal["mixed-2w"] = "mixed-2w"
    central_optimizer: ServerOptimizer | None = None
    """Here SGD alone: a mean gradient cannot be recovered from the update of any other."""
    initial_gradients: ScenarioPath | None = None
    """A file with the gc and gf of the first round, one or both; `checkpoint/model.safetensors` of a run is one."""

    @model_validator(mode="after")
    def _check_central_optimizer(self) -> TwoWay:
        if self.central_optimizer is not None:
            raise ValueError(
                f"central_optimizer: found {self.central_optimizer.name}; 2-way gradient transfer recovers mean"
                " gradients from updates and step counts, which only plain SGD allows (accepted: central_lr)"
            )
        return self

    @property
    def wants_sgd(self) -> str:
        """Say why clients must take plain steps."""
        return "gf is recovered from the clients' updates and step counts, as a mean of gradients"

    @property
    def wants_gradient_sum(self) -> bool:
        """gf is a mean of gradients."""
        return True

    def undefined(self, mixing: bool) -> str:
        """Say that gf cannot be recovered from updates that were corrected differently."""
        return "gf+ is recovered with the one gc that all clients heard in a round were sent"

    def payload(self, setting: TaskSetting) -> Payload:
        """Return x and gc down, one model up; the central learner works beside the clients."""
        return Payload(down=2.0, during=self.central_samples(setting))

    def start(self, x: Tensor) -> dict[str, Tensor]:
        """x, gc = 0, gf = 0, and what the optimisers keep."""
        return {**super().start(x), "gc": x.new_zeros(x.shape), "gf": x.new_zeros(x.shape)}

    def given(self, parameters: int) -> dict[str, NDArray[np.float32]]:
        """Return gc and gf of the user's file."""
        return initial_gradients.read(self.initial_gradients.path, parameters) if self.initial_gradients else {}

    def contribute(self, state: Vectors, round: Round, central: CentralData) -> dict[str, Tensor]:
        """Dc: K_c steps along the weighted central gradient and gf; and the sum of the gradients."""
        x = state["x"]
        work = self.central_work(round.setting)
        rate = self.central_rate(round)
        weight = self.central_weight
        xc, total = central.learn_and_sum(x, rate, work, round.version, weight=weight, correction=state["gf"])
        return {"central": xc - x, "central_gradient_sum": total}

    def correction(self, sent: Vectors, kept: Vectors) -> Tensor:
        """gc joins every local gradient."""
        return sent["gc"]

    def upload(self, trip: ClientResult) -> dict[str, Tensor]:
        """Return D_i for the weighted mean, and the sum of gradients for gf; one of both travels."""
        if trip.gradients is not None:
            return {"delta": trip.delta, "gradient_sum": trip.gradients}
        total = -trip.delta / trip.lr - trip.steps * trip.sent["gc"] if trip.lr else 0.0 * trip.delta
        return {"delta": trip.delta, "gradient_sum": total}

    def aggregate(self, state: Vectors, sums: Vectors, round: Round, central: CentralData) -> dict[str, Tensor]:
        """x <- MERGEOPT(x, -(Dc + Df)) ; gc, gf <- mean raw gradients."""
        xf, kept = self._served(state, sums)
        merged = self._merged(state, state["central"] + (xf - state["x"]))
        gf = sums["gradient_sum"] / round.steps if round.lr and round.steps else state["gf"]
        return {**kept, **merged, "gc": self._central_gradient(state, round), "gf": gf}

    def idle(self, state: Vectors, round: Round, central: CentralData) -> dict[str, Tensor]:
        """x <- MERGEOPT(x, -Dc): the central part alone; gf stays."""
        kept = {name: value for name, value in state.items() if name not in self.central_results}
        return {**kept, **self._merged(state, state["central"]), "gc": self._central_gradient(state, round)}

    def _central_gradient(self, state: Vectors, round: Round) -> Tensor:
        """Return gc+, the mean of the gradients along the central path."""
        steps = self.central_work(round.setting).wanted
        return state["central_gradient_sum"] / steps if steps and self.central_rate(round) else state["gc"]

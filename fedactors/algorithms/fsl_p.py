"""FSL-p, not incremental: Mai, La and Zhang, Federated Learning with Server Learning, journal version, Appendix B.

The paper describes it in words: the server acts as one more client that takes part in every round, possibly with a
raised weight. There is no formula, so two are offered.

    convex      Delta_0 <- LocalSGD(x_t, eta_l K / K_0, K_0, D_0).y - x_t
                x_{t+1} <- x_t + eta_g ( mean_{S_t} Delta_i + gamma Delta_0 ) / (1 + gamma)
    additive    x_{t+1} <- x_t + eta_g mean_{S_t} Delta_i + ( LocalSGD(x_t, gamma eta_0, K_0, D_0).y - x_t )

convex is the default: literally one more client, of weight gamma against all clients together. additive is Parallel
Training of mixed federated learning. gamma = 0 is FedAvg in both. The server works beside the clients. A round
without updates has mean Delta_i = 0 and keeps the server's part. A client that did s < K steps sends what they gave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from fedactors.algorithms.server_learning import ServerLearning
from fedactors.learning.algorithm import Round, TaskSetting
from fedactors.plan import Payload

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.learning.algorithm import CentralData, Vectors


class FSLp(ServerLearning):
    """Federated averaging in which the server takes part as a client."""

    name: Literal["fsl-p"] = "fsl-p"
    form: Literal["convex", "additive"] = "convex"
    """How the server's update joins the clients'."""

    def undefined(self, mixing: bool) -> str:
        """Say that the server, as one more client, needs others beside it."""
        return "its server takes part as one more client of a round, and mixing takes one client at a time" * mixing

    def payload(self, setting: TaskSetting) -> Payload:
        """Return FedAvg's traffic; the server works beside the clients."""
        return Payload(during=self.central_samples(setting))

    def aggregate(self, state: Vectors, sums: Vectors, round: Round, central: CentralData) -> dict[str, Tensor]:
        """x <- x + what the clients and the server give, in the chosen form."""
        x, own = state["x"], self._own(state["x"], round, central)
        eta_g, gamma = self.step(round), self.server_weight
        if own is None:
            return {"x": x + eta_g * sums["delta"]}
        if self.form == "convex":
            return {"x": x + eta_g * (sums["delta"] + gamma * own) / (1 + gamma)}
        return {"x": x + eta_g * sums["delta"] + own}

    def idle(self, state: Vectors, round: Round, central: CentralData) -> dict[str, Tensor]:
        """x <- x + the server's part alone."""
        x, own = state["x"], self._own(state["x"], round, central)
        if own is None:
            return {"x": x}
        share = self.step(round) * self.server_weight / (1 + self.server_weight)
        return {"x": x + (share * own if self.form == "convex" else own)}

    def _own(self, x: Tensor, round: Round, central: CentralData) -> Tensor | None:
        """Return Delta_0, or None where the server has nothing to do."""
        work, rate = self.central_work(round.setting), self._rate(round)
        return central.learn(x, rate, work, round.version) - x if work.wanted and rate else None

    def _rate(self, round: Round) -> float:
        """Return the rate of the server's local steps: eta_l K / K_0 (convex), gamma eta_0 (additive)."""
        scale = 1.0 if self.form == "convex" else self.server_weight * self.step(round)
        if self.server_lr_base is not None:
            return self.server_lr_base * (1.0 if self.form == "convex" else self.server_weight)
        return scale * self.coupled(round)

"""Fed-AMS: Chen, Li and Li, Toward Communication Efficient Adaptive Gradient Method, 2020 (Local AMSGrad).

As in Layerwise and Dimensionwise Locally Adaptive Optimization Method (the Fed-LAMB paper): its Algorithm 1 without
layers.

    server: theta, Vhat = v0 1 elementwise ; send both to the participants D^r
    each i in D^r:  th <- theta ; v <- Vhat ; m <- 0 (reset) or the m it kept (persist)
      for t = 1..T:
        g <- gradient of the batch at th
        m <- b1 m + (1 - b1) g ;  v <- b2 v + (1 - b2) g^2
        mh <- m / (1 - b1^t)  (reset) ;  m itself  (persist)
        th <- th - alpha mh / (sqrt(Vhat) + eps)
      send th, v
    server: theta <- mean_i th_i ;  Vhat <- max(Vhat, mean_i v_i)  elementwise

Twice FedAvg's traffic, both ways. alpha is the scenario's learning rate. Vhat is the broadcast one, the same for all
clients and fixed within a round; it never decreases. Deviations from the page: moments are kept raw and their
corrected copies are temporary; v is not bias-corrected, because it starts from Vhat and not from 0 (with the printed
correction Vhat grows a thousandfold per round of one step); means are over the participants. The paper does not give
v0, and says of m only that it is there: a correction that restarts in each round means that m does (reset), Local
AMSGrad keeps it and does not correct it (persist).

th is averaged with the participation weights, v with equal ones, whatever those are. A client that did s < T steps
sends where they led. A round without updates changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from fedactors.learning.algorithm import Algorithm, ClientResult, Round, TaskSetting
from fedactors.models.layers import Layers
from fedactors.optim.client_optimizers import Adaptive, Decay, Optimizer
from fedactors.plan import Payload

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.learning.algorithm import CentralData, Vectors
    from fedactors.optim.client_optimizers import Count, State, Stepped


class LocalAMS(Adaptive):
    """A client's steps under a second moment that the server fixed: v is gathered, Vhat is divided by."""

    holds: ClassVar[tuple[str, ...]] = ("m", "v", "vhat")

    name: Literal["local-ams"] = "local-ams"
    corrects: bool
    """Whether m started from zero, so that it is bias-corrected."""

    def step(self, params: Tensor, grad: Tensor, state: State, lr: float, number: Count, layers: Layers) -> Stepped:
        """th <- th - alpha r."""
        ratio, state = self.adapted(grad, state, number)
        return params.add(ratio, alpha=-lr), state

    def adapted(self, grad: Tensor, state: State, number: Count) -> tuple[Tensor, State]:
        """Return r = mh / (sqrt(Vhat) + eps), and the state with the moments of this step."""
        m, v = self.moments(grad, state)
        ratio = m.div(state["vhat"].sqrt().add_(self.eps))
        if self.corrects and self.beta1 < 1:
            ratio.div_(1 - self.beta1**number)
        return ratio, {**state, "m": m, "v": v}


class AdaptiveAveraging(Algorithm):
    """The server half of Fed-AMS and Fed-LAMB, and what their clients share."""

    sends: ClassVar[tuple[str, ...]] = ("x", "vhat")
    unweighted: ClassVar[tuple[str, ...]] = ("v",)
    changes: ClassVar[tuple[str, ...]] = ("delta",)
    weighting: ClassVar[str] = "uniform"

    beta1: Decay = 0.9
    """Decay of the mean of gradients, m."""
    beta2: Decay = 0.999
    """Decay of the mean of squared gradients, v."""
    eps: float = Field(default=1e-8, ge=0.0)
    """Added to the square root of Vhat."""
    v0: float = Field(default=1e-6, gt=0.0, allow_inf_nan=False)
    """Every element of Vhat at the start."""
    momentum: Literal["reset", "persist"] = "reset"
    """What becomes of m between a client's trips: it restarts from zero, or the client keeps it."""

    @property
    def keeps(self) -> tuple[str, ...]:  # type: ignore[override]  # the one place where it depends on an option
        """Clients keep m if it persists."""
        return ("m",) if self.momentum == "persist" else ()

    def undefined(self, mixing: bool) -> str:
        """Say that second moments cannot be averaged that began from different ones."""
        return "Vhat takes in the mean of second moments v_i that all began from the Vhat of the same round"

    def payload(self, setting: TaskSetting) -> Payload:
        """Return (theta, Vhat) down, (theta_i, v_i) up."""
        return Payload(down=2.0, up=2.0)

    def start(self, x: Tensor) -> dict[str, Tensor]:
        """theta, Vhat = v0."""
        return {"x": x, "vhat": x.new_full(x.shape, self.v0)}

    def moments(self, sent: Vectors, kept: Vectors) -> Vectors:
        """v = Vhat, m = 0 or what was kept."""
        return {"v": sent["vhat"], "vhat": sent["vhat"], **kept}

    def upload(self, trip: ClientResult) -> dict[str, Tensor]:
        """th_i - theta, v_i."""
        return {"delta": trip.delta, "v": trip.state["v"]}

    def keep(self, trip: ClientResult) -> dict[str, Tensor]:
        """m_i, if it persists."""
        return {name: trip.state[name] for name in self.keeps}

    def aggregate(self, state: Vectors, sums: Vectors, round: Round, central: CentralData) -> dict[str, Tensor]:
        """theta <- theta + sum_i w_i (th_i - theta) ; Vhat <- max(Vhat, mean_i v_i)."""
        return {"x": state["x"] + sums["delta"], "vhat": state["vhat"].maximum(sums["v"] / round.heard)}


class FedAMS(AdaptiveAveraging):
    """Federated averaging after local adaptive steps under a common second moment."""

    name: Literal["fed-ams"] = "fed-ams"

    def optimizer(self, setting: TaskSetting) -> Optimizer:
        """Return the steps of the pseudo-code above."""
        return LocalAMS(beta1=self.beta1, beta2=self.beta2, eps=self.eps, corrects=self.momentum == "reset")

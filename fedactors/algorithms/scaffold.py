"""SCAFFOLD: Karimireddy et al., SCAFFOLD: Stochastic Controlled Averaging for Federated Learning, 2020, Algorithm 1.

    server: x, c ; every client: c_i, kept also while it is not selected ; all c = 0 at the start ; send (x, c)
    each i in S_t:  y <- x ; K_i times: y <- y - eta_l ( g_i(y) - c_i + c )
                    c_i+ <- (I) g_i(x)   or   (II) c_i - c + (x - y) / (K_i eta_l)
                    send Delta y_i = y - x, Delta c_i = c_i+ - c_i ; c_i <- c_i+ once the server has them
    server:         x <- x + eta_g sum_i w_i Delta y_i ;  c <- c + (1/N) sum_i Delta c_i

Twice FedAvg's traffic. w_i is uniform unless the scenario says otherwise; c is always the plain sum over N, the
devices with work that belong to the population, so that c = mean(c_i) holds with any weights. Departure of l: c <- (N
c - c_l)/(N - 1). Arrival: c_l = 0, c <- N c / (N + 1). Behind transforms of the uplink, and with attackers, c is the
mean of the sums of what arrived, and the sum of l's leaves with it, in place of c_l.

Weights change the way and not where it leads: rounds rest where c = 0, at the minimiser of the plain mean of the
losses, also with weights by samples. (Weighted controls, c = sum n_i c_i / n, would need n of the members in every
round.)

(II) is the mean of the K_i gradients along the path. It is taken from the sum of these gradients where the engine has
it: the difference x - y, of which less is left of the digits of y the lower the rate is, loses it (the relative error
of c is .007 at a rate of 1e-5).

Partial work: (II) divides by the s_i steps really done, which makes c_i+ the mean of the gradients along the path
however short it was. s_i = 0 leaves c_i as it is. A round without updates changes nothing. An update of weight 0
(an incomplete one under Scheme A) counts as not received: c_i stays.

Updates from older models (FedBuff): y and c_i+ are made with the x and c that were sent; c stays mean(c_i), for a
client's own trips follow one another.

(I) takes as g_i(x) the gradient of the trip's first batch, which lies at x; the paper also speaks of a pass over all
data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from fedactors.algorithms.members.membership import mean_after
from fedactors.learning.algorithm import Algorithm, ClientResult, Round, TaskSetting
from fedactors.learning.traffic.arrived import received_of
from fedactors.optim.global_rate import GlobalRate, global_step
from fedactors.plan import Payload

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.learning.algorithm import CentralData, Vectors


class Scaffold(Algorithm):
    """Federated averaging whose local steps are corrected by control variates."""

    sends: ClassVar[tuple[str, ...]] = ("x", "c")
    keeps: ClassVar[tuple[str, ...]] = ("c",)
    unweighted: ClassVar[tuple[str, ...]] = ("control",)
    changes: ClassVar[tuple[str, ...]] = ("delta", "control")
    weighting: ClassVar[str] = "uniform"

    name: Literal["scaffold"] = "scaffold"
    option: Literal["I", "II"] = "II"
    """What a client's next control variate is: a gradient at x, or the mean gradient along its path."""
    global_lr: GlobalRate = None
    """Server step (eta_g); by default the square root of the cohort. `sqrt_heard` takes the updates that arrived."""

    @property
    def wants_sgd(self) -> str:
        """Control variates are mean gradients only along a path of SGD."""
        return "its control variates are differences of models over the length of SGD's steps"

    @property
    def wants_gradient(self) -> bool:
        """Option I uses the gradient of the first local step."""
        return self.option == "I"

    @property
    def wants_gradient_sum(self) -> bool:
        """Option II is a mean of gradients."""
        return self.option == "II"

    def undefined(self, mixing: bool) -> str:
        """Say that whole models cannot be mixed; differences may come late."""
        return "its controls are made for a server that adds differences, and mixing takes whole models" * mixing

    def payload(self, setting: TaskSetting) -> Payload:
        """Return (x, c) down, both differences up."""
        return Payload(down=2.0, up=2.0)

    def start(self, x: Tensor) -> dict[str, Tensor]:
        """x, c = 0."""
        return {"x": x, "c": x.new_zeros(x.shape)}

    def correction(self, sent: Vectors, kept: Vectors) -> Tensor:
        """Return c - c_i."""
        return sent["c"] - kept["c"]

    def upload(self, trip: ClientResult) -> dict[str, Tensor]:
        """Delta y_i, Delta c_i."""
        return {"delta": trip.delta, "control": self._renewed(trip) - trip.kept["c"]}

    def keep(self, trip: ClientResult) -> dict[str, Tensor]:
        """c_i+."""
        return {"c": self._renewed(trip)}

    def aggregate(self, state: Vectors, sums: Vectors, round: Round, central: CentralData) -> dict[str, Tensor]:
        """x <- x + eta_g sum_i w_i Delta y_i ; c <- c + (1/N) sum_i Delta c_i."""
        eta_g = global_step(self.global_lr, round.heard, round.setting.cohort)
        return {"x": state["x"] + eta_g * sums["delta"], "c": state["c"] + sums["control"] / round.members}

    def members_changed(self, state: Vectors, round: Round, departed_states: Sequence[Vectors]) -> dict[str, Tensor]:
        """Keep c the mean over the present members of the population of what arrived of them: mean(c_i)."""
        departed = [received_of(kept, "control", "c") for kept in departed_states]
        return {**state, "c": mean_after(state["c"], round, departed)}

    def _renewed(self, trip: ClientResult) -> Tensor:
        """Return c_i+; c_i where nothing was done."""
        import torch

        length = torch.as_tensor(trip.steps * trip.lr, dtype=trip.delta.dtype)  # K_i eta_l
        if self.option == "I":
            assert trip.gradient is not None
            renewed = trip.gradient
        elif trip.gradients is not None:
            renewed = trip.gradients / trip.steps
        else:
            renewed = trip.kept["c"] - trip.sent["c"] - trip.delta / length
        return torch.where(length > 0, renewed, trip.kept["c"])

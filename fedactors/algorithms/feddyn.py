"""FedDyn: Acar et al., Federated Learning Based on Dynamic Regularization, 2021, Algorithm 1.

    server: x, h ; every client: ghat_i ; all 0 at the start ; send x
    each i in P:  theta_i <- about argmin f_i(th) - <ghat_i, th> + (alpha/2) |th - x|^2 :
                             K times th <- th - eta_l ( g_i(th) - ghat_i + alpha (th - x) ), from th = x
                  ghat_i <- ghat_i - alpha (theta_i - x)
    server:       h <- h - (alpha/m) sum_{i in P} (theta_i - x) ;  x <- mean_P theta_i - h / alpha ; m: all clients

Stored as r_i = sum of the client's past (theta_i - x) and R = (1/m) sum_i r_i, which is equivalent and never divides
by alpha: ghat_i = -alpha r_i, h = -alpha R, x <- mean theta_i + R. The authors' code does so too.

`alpha_by: share` takes alpha_i = alpha / (m n_i / n) for alpha, n_i samples of n, as the authors' code does; with equal
n_i both are one. Then the fixed point is the minimiser of sum_i (n_i / n) f_i: with a common alpha, of the plain mean.

w_i is uniform unless the scenario says otherwise: x <- x + sum_i w_i (theta_i - x) + R; R is always the plain sum
over m, the devices with work that belong to the population. Departure of l: R <- (m R - r_l)/(m - 1). Arrival: r_l =
0, R <- m R / (m + 1). Behind transforms of the uplink, and with attackers, R is the mean of the sums of what arrived,
and l's sum leaves with it, in place of r_l. The model that is evaluated is x, with R in it. There is no eta_g.

Partial work: theta_i is wherever s_i steps led, and r_i grows by that much; the regulariser is right for any inexact
argmin. A round without updates changes nothing: the mean of nothing is undefined. An update of weight 0 counts as
not received.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from fedactors.algorithms.members.membership import mean_after
from fedactors.learning.algorithm import Algorithm, ClientResult, Round
from fedactors.learning.traffic.arrived import received_of

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.learning.algorithm import CentralData, Vectors


class FedDyn(Algorithm):
    """Federated averaging whose local losses are regularised by what each client learned before."""

    keeps: ClassVar[tuple[str, ...]] = ("r",)
    unweighted: ClassVar[tuple[str, ...]] = ("moved",)
    changes: ClassVar[tuple[str, ...]] = ("delta",)
    weighting: ClassVar[str] = "uniform"

    name: Literal["feddyn"] = "feddyn"
    alpha: float = Field(default=0.01, gt=0.0, allow_inf_nan=False)
    """Strength of the regulariser."""

    alpha_by: Literal["client", "share"] = "client"
    """Whether every client has this alpha, or alpha over its share: its samples over the mean of all clients'."""

    @property
    def prox(self) -> float:
        """Return alpha."""
        return self.alpha

    @property
    def scales_by_share(self) -> bool:
        """Whether alpha is divided by each client's share."""
        return self.alpha_by == "share"

    def prox_of(self, sent: Vectors) -> Tensor | float:
        """Return alpha_i."""
        return self.alpha / sent["share"] if self.scales_by_share else self.alpha

    def undefined(self, mixing: bool) -> str:
        """Its server averages models, and adds R once for all of them."""
        return "x = mean theta_i + R needs models that were trained from the same x in one round"

    def start(self, x: Tensor) -> dict[str, Tensor]:
        """x, R = 0."""
        return {"x": x, "r": x.new_zeros(x.shape)}

    def correction(self, sent: Vectors, kept: Vectors) -> Tensor:
        """Return -ghat_i."""
        return self.prox_of(sent) * kept["r"]

    def upload(self, trip: ClientResult) -> dict[str, Tensor]:
        """Return theta_i - x, once for the weighted mean and once for R; it travels once."""
        return {"delta": trip.delta, "moved": trip.delta}

    def keep(self, trip: ClientResult) -> dict[str, Tensor]:
        """r_i <- r_i + theta_i - x."""
        return {"r": trip.kept["r"] + trip.delta}

    def aggregate(self, state: Vectors, sums: Vectors, round: Round, central: CentralData) -> dict[str, Tensor]:
        """R <- R + (1/m) sum_i (theta_i - x) ; x <- x + sum_i w_i (theta_i - x) + R."""
        r = state["r"] + sums["moved"] / round.members
        return {"x": state["x"] + sums["delta"] + r, "r": r}

    def members_changed(self, state: Vectors, round: Round, departed_states: Sequence[Vectors]) -> dict[str, Tensor]:
        """Keep R the mean over the present members of the population of what arrived of them: mean(r_i)."""
        departed = [received_of(kept, "moved", "r") for kept in departed_states]
        return {**state, "r": mean_after(state["r"], round, departed)}

"""An algorithm: FedAvg in which no client's update may be longer than a bound.

    each client i asked in a round:  y <- x, then K_i local steps of SGD ; Delta_i <- y - x
                                     send Delta_i * min(1, bound / |Delta_i|)
    server:                          x <- x + eta_g * sum_i w_i Delta_i

Change `upload` for what clients send, `aggregate` for what the server makes of it. Other algorithms to look at are in
the folder fedactors/algorithms, one file each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from fedactors.learning.algorithm import Algorithm, ClientResult, Round

if TYPE_CHECKING:  # torch is imported for the annotations only, so that checking a scenario stays fast
    from torch import Tensor

    from fedactors.learning.algorithm import CentralData, Vectors


class StarterAlgorithm(Algorithm):
    """Average updates that are no longer than a bound."""

    # Which uploads are changes of the model, so that `server.uplink` may compress them or add noise to them.
    changes: ClassVar[tuple[str, ...]] = ("delta",)

    # The fields are what a scenario may write:  algorithm: {name: starter, bound: 2.0}
    name: Literal["starter"] = "starter"
    bound: float = Field(default=1.0, gt=0.0)
    """The longest update that is sent whole."""
    global_lr: float = Field(default=1.0, ge=0.0)
    """Step of the server (eta_g)."""

    def undefined(self, mixing: bool) -> str:
        """Return why updates that start from older models make no sense; an empty text if they do, as here."""
        return ""

    def upload(self, trip: ClientResult) -> dict[str, Tensor]:
        """Return what a client sends; vectors are summed over clients with the weights of the participation scheme.

        `trip.delta` is y - x, of one client `(parameters,)` or of many in rows `(clients, parameters)`: work along the
        last dimension, and both are right. It also has `trip.start`, `trip.steps` and `trip.lr`.
        """
        length = trip.delta.norm(dim=-1, keepdim=True)
        return {"delta": trip.delta * (self.bound / length.clamp(min=self.bound))}

    def aggregate(self, state: Vectors, sums: Vectors, round: Round, central: CentralData) -> dict[str, Tensor]:
        """Return the next state of the server from this one and the sums of what clients sent.

        `state["x"]` is the model. To keep more from round to round, return it from `start` as well.
        """
        return {"x": state["x"] + self.global_lr * sums["delta"]}

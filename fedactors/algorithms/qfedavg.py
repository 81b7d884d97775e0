"""q-FedAvg: Li, Sanjabi, Beirami, Smith, Fair Resource Allocation in Federated Learning, 2020, Algorithm 2.

FedAvg minimises the mean of the clients' losses F_i, and some clients may do badly. q-FedAvg minimises

    sum_i w_i F_i^(q+1) / (q + 1)

in which a client counts the more, the higher its loss is:

    send x
    each i in S_t:  F_i <- the loss of all its samples at x ;  y <- LocalSGD(x, eta_l, K_i, D_i).y
                    Delta_i = F_i^q L (x - y)
                    h_i     = q F_i^(q-1) |L (x - y)|^2 + L F_i^q
    x <- x - sum_i w_i Delta_i / sum_i w_i h_i

L is the Lipschitz constant of the gradients of F_i, and h_i bounds those of F_i^(q+1) / (q + 1), so that one rate does
for all q. The paper sets L = 1 / eta_l, the default here. q = 0 is FedAvg; as q grows, it approaches the minimax
objective of Mohri et al. (2019). Delta_i and h_i are sent divided by L, which cancels.

The paper draws clients by their samples and adds their updates unweighted; here clients are drawn alike and w_i are
weights of the participation policy, by samples unless told otherwise: the same objective. F_i has 1e-10 added, as in
the authors' code. It is a forward pass over all samples of a client, dropout off, whose time the client is charged.
A trip that `server.alternate` leaves without a step of what is shared has y = x there, and its h_i counts. Powers
beyond float32, such as 400^15, end a run as an update that is no number: take a smaller q.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from fedactors.learning.algorithm import Algorithm, ClientResult, Round

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.learning.algorithm import CentralData, Vectors

_LEAST = 1e-10  # that a loss is larger than


class QFedAvg(Algorithm):
    """Federated averaging in which clients count by a power of their losses, so that they do alike."""

    changes: ClassVar[tuple[str, ...]] = ("delta",)

    name: Literal["qfedavg"] = "qfedavg"
    q: float = Field(default=1.0, ge=0.0, allow_inf_nan=False)
    """Power of the losses; 0 is FedAvg. The paper tunes it in {0.001, 0.01, 0.1, 1, 2, 5, 15}."""
    lipschitz: float | None = Field(default=None, gt=0.0, allow_inf_nan=False)
    """Lipschitz constant of the gradients (L); 1 / eta_l if it is left out."""

    @property
    def wants_start_loss(self) -> bool:
        """F_i, which q = 0 does not look at."""
        return self.q > 0

    def undefined(self, mixing: bool) -> str:
        """Why losses at other models do not do."""
        return "the step is divided by bounds h_i of losses at one and the same model, that of the server's round"

    def upload(self, trip: ClientResult) -> dict[str, Tensor]:
        """Return Delta_i / L, as a change of the model, and h_i / L."""
        trained = trip.delta[..., : trip.delta.shape[-1] - trip.buffers].double()
        square = trained.square().sum(-1, keepdim=True)
        power = square.new_ones(square.shape)
        size = power
        if trip.start_loss is not None:
            loss = trip.start_loss + _LEAST * power
            power = loss**self.q
            size = power + self.q * loss ** (self.q - 1) * self._constant(trip.lr) * square
        return {"delta": power.to(trip.delta.dtype) * trip.delta, "size": size.to(trip.delta.dtype)}

    def _constant(self, lr: float) -> float:
        """Return L; where the rate is 0 nothing moves, and any number will do."""
        return self.lipschitz or 1 / (lr or 1.0)

    def aggregate(self, state: Vectors, sums: Vectors, round: Round, central: CentralData) -> dict[str, Tensor]:
        """x <- x - sum_i w_i Delta_i / sum_i w_i h_i; x itself where all powers of losses are too small for float32."""
        size = sums["size"]
        step = sums["delta"] / size.where(size > 0, 1.0)
        return {"x": state["x"] + step}

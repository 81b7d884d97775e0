"""FedAvg with clipped updates: McMahan et al., Learning Differentially Private Recurrent Language Models, 2018, (1).

    each i in S_t:  Delta_i <- LocalSGD(x_t, eta_l, K_i, D_i).y - x_t ; send Delta_i * min(1, S / |Delta_i|)

A client that took fewer steps than wanted sends its update as it is; that is rarely as long as S.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from fedactors.algorithms.fedavg import Averaging

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.learning.algorithm import ClientResult


class Clipped(Averaging):
    """Average updates that are no longer than a bound."""

    changes: ClassVar[tuple[str, ...]] = ("delta",)

    name: Literal["clipped"] = "clipped"
    bound: float = Field(default=1.0, gt=0.0)
    """Longest update that is sent whole (S)."""

    def upload(self, trip: ClientResult) -> dict[str, Tensor]:
        """Return Delta * min(1, S / |Delta|), of one client or of many in rows."""
        length = trip.delta.norm(dim=-1, keepdim=True)
        return {"delta": trip.delta * (self.bound / length.clamp(min=self.bound))}

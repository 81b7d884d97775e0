"""Fed-SGD: the baseline of the Fed-LAMB paper: local SGD, and the plain mean over the participants.

It is FedAvg with uniform weights and no server step of its own. Not the FedSGD of McMahan et al. (2017), whose clients
send one full-batch gradient; that is `fedavg` with one local step on all of a client's data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from fedactors.learning.algorithm import Algorithm, Round

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.learning.algorithm import CentralData, Vectors


class FedSGD(Algorithm):
    """Average the clients' models alike after local SGD."""

    weighting: ClassVar[str] = "uniform"

    name: Literal["fed-sgd"] = "fed-sgd"

    def undefined(self, mixing: bool) -> str:
        """Return nothing, as FedAvg."""
        return ""

    def aggregate(self, state: Vectors, sums: Vectors, round: Round, central: CentralData) -> dict[str, Tensor]:
        """theta <- theta + mean_i (theta_i - theta)."""
        return {"x": state["x"] + sums["delta"]}

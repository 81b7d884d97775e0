"""FedProx: Li et al., Federated Optimization in Heterogeneous Networks, 2020, Algorithm 2.

    each i in S_t:  y <- about argmin f_i(y) + (mu/2) |y - x|^2 :  K times  y <- y - eta_l ( g_i(y) + mu (y - x) )
    x <- x + sum_i w_i (y_i - x)

FedAvg with one more term. mu = 0 is FedAvg, bit for bit. The paper draws clients in proportion to their samples and
averages plainly; here they are drawn alike and weighted by their samples, unless the scenario says otherwise. A client
that did s < K steps sends its inexact minimiser, which is what the method is for. With another optimiser than SGD
the term is part of the gradient that it is given.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from fedactors.algorithms.fedavg import Averaging


class FedProx(Averaging):
    """Federated averaging whose clients are held near the model they were sent."""

    name: Literal["fedprox"] = "fedprox"
    mu: float = Field(default=0.01, ge=0.0, allow_inf_nan=False)
    """Weight of the proximal term; the paper tunes it in {0.001, 0.01, 0.1, 1}."""

    @property
    def prox(self) -> float:
        """Return mu."""
        return self.mu

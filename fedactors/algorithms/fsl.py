"""FSL: Mai, La and Zhang, Federated Learning with Server Learning, journal version, Algorithm 1.

    for t = 0..T-1:
      S_t <- cohort ; send x_t
      each i in S_t:  Delta_i <- LocalSGD(x_t, eta_l, K, D_i).y - x_t
      xbar_t  <- x_t + eta_g * mean_{S_t} Delta_i
      x_{t+1} <- LocalSGD(xbar_t, gamma eta_0, K_0, D_0).y            # incremental: starts from the aggregate

Conference version (`version: conference`): xbar is the plain mean of the clients' models, and the server's rate is a
free parameter. It is the journal's with eta_g = 1 and gamma eta_0 = server_lr, and the same code.

Messages are FedAvg's; nothing about D_0 travels. gamma eta_0 = 0, K_0 = 0 or n_0 = 0 is FedAvg with the same eta_g,
bit for bit. After a round without updates the server still learns. A client that did s < K steps sends what they
gave: its Delta is shorter, and the participation policy may scale it up (Scheme C). Weights are uniform unless the
scenario says otherwise, as in Algorithm 1 and the proofs; with unequal n_i that optimises (1/N) sum f_i, not the loss
over all samples.
"""

from __future__ import annotations

from typing import Literal

from fedactors.algorithms.server_learning import Incremental


class FSL(Incremental):
    """Federated averaging, after which the server learns from its own data."""

    name: Literal["fsl"] = "fsl"

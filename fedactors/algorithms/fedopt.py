"""FedOpt: Reddi et al., Adaptive Federated Optimization, 2021, Algorithm 2, by the names its optimisers are known by.

    x <- SERVEROPT(x, -sum_i w_i Delta_i)

    fedavgm      heavy ball (Hsu et al. 2019)     fedadam      Adam
    fedadagrad   Adagrad                          fedyogi      Yogi

Each is `fedavg` with a `server_optimizer`, under a name of its own; the formulas are in `server_optimizers`. The rate
of the server is the optimiser's `lr`, the clients' is the scenario's.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fedactors.algorithms.fedavg import FedAvg
from fedactors.optim.server_optimizers import Adagrad, ServerAdam, ServerMomentum, Yogi, only


class FedAvgM(FedAvg):
    """Federated averaging with momentum at the server."""

    name: Literal["fedavgm"] = "fedavgm"  # type: ignore[assignment]
    server_optimizer: Annotated[ServerMomentum, only("momentum")] = ServerMomentum()


class FedAdagrad(FedAvg):
    """Federated averaging whose server steps by Adagrad."""

    name: Literal["fedadagrad"] = "fedadagrad"  # type: ignore[assignment]
    server_optimizer: Annotated[Adagrad, only("adagrad")] = Adagrad()


class FedAdam(FedAvg):
    """Federated averaging whose server steps by Adam."""

    name: Literal["fedadam"] = "fedadam"  # type: ignore[assignment]
    server_optimizer: Annotated[ServerAdam, only("adam")] = ServerAdam()


class FedYogi(FedAvg):
    """Federated averaging whose server steps by Yogi."""

    name: Literal["fedyogi"] = "fedyogi"  # type: ignore[assignment]
    server_optimizer: Annotated[Yogi, only("yogi")] = Yogi()

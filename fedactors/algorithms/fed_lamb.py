"""Fed-LAMB: Layerwise and Dimensionwise Locally Adaptive Optimization Method, Algorithm 1.

Fed-AMS (see there for theta, Vhat, the moments and the traffic) whose clients step layer by layer:

    r  <- mh / (sqrt(Vhat) + eps)
    for each layer l:  u <- r^l + lambda th^l ;  th^l <- th^l - alpha phi(|th^l|) u / |u|

A layer is one parameter tensor, or the tensors of a module together. |u| = 0: no move. phi(|th^l|) = 0 (a bias that
starts from zero, phi = identity) would freeze the layer for ever: it takes th^l <- th^l - alpha u, trust ratio 1, the
convention of LAMB (You et al. 2020). With phi = identity a step moves every layer by alpha times its own norm, however
small the gradient is. lambda is weight decay inside u; 0 is allowed, as in the paper's experiments and against its
Algorithm 1. With lambda = 0 the bias correction of m is a scalar that u / |u| cancels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from fedactors.algorithms.fed_ams import AdaptiveAveraging, LocalAMS
from fedactors.learning.algorithm import TaskSetting
from fedactors.models.layers import Layers
from fedactors.optim.client_optimizers import Layerwise, Optimizer

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.optim.client_optimizers import Count, State, Stepped


class LocalLAMB(Layerwise, LocalAMS):
    """A client's steps of Fed-LAMB."""

    name: Literal["local-lamb"] = "local-lamb"  # type: ignore[assignment]

    def step(self, params: Tensor, grad: Tensor, state: State, lr: float, number: Count, layers: Layers) -> Stepped:
        """th^l <- th^l - alpha phi(|th^l|) u / |u|."""
        ratio, state = self.adapted(grad, state, number)
        return params.add(self.scaled(params, ratio, layers), alpha=-lr), state


class FedLAMB(Layerwise, AdaptiveAveraging):
    """Federated averaging after local adaptive steps whose length is set layer by layer."""

    name: Literal["fed-lamb"] = "fed-lamb"

    def optimizer(self, setting: TaskSetting) -> Optimizer:
        """Return the steps of the pseudo-code above."""
        options = self.model_dump(include=set(LocalLAMB.model_fields) - {"name"})
        return LocalLAMB(corrects=self.momentum == "reset", **options)

"""FedNTD: Lee et al., Preservation of the Global Knowledge by Not-True Distillation in Federated Learning, 2022.

    send x
    each i in S_t:  y <- x ; K_i times:  y <- y - eta_l grad_y mean over the batch of  L_CE(y) + beta L_NTD(y, x)
                    send y - x
    server:         x <- x + eta_g sum_i w_i (y_i - x)

    L_NTD(y, x) = tau^2 sum_{c != label} q_c(x) log( q_c(x) / q_c(y) )
    q_c         = exp(z_c / tau) / sum_{c' != label} exp(z_c' / tau) :  a softmax without the label's class

z are outputs, one for each class. A client whose data lack classes forgets them: the cross entropy pushes their outputs
down. L_NTD holds what the global model says of all classes but the label's, and leaves the label's own to L_CE.
beta = 0 is FedAvg.

The factor tau^2 is that of Hinton et al. (2015), which keeps gradients from shrinking as tau grows; the authors' code
has it, too, and its settings beta = tau = 1 are the defaults here. The global model answers as it is evaluated, without
dropout and with BatchNorm's running averages. A client's loss in records is L_CE alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from fedactors.algorithms.fedavg import Averaging
from fedactors.errors import ScenarioError
from fedactors.learning.algorithm import TaskSetting

if TYPE_CHECKING:
    from torch import Tensor

_LOSSES = ("cross_entropy", "nll")
_FEWEST = 3  # classes: two are left without the label's


class FedNTD(Averaging):
    """Federated averaging whose clients keep what the global model says of classes other than a sample's own."""

    name: Literal["fedntd"] = "fedntd"
    beta: float = Field(default=1.0, ge=0.0, allow_inf_nan=False)
    """Weight of the distillation."""
    tau: float = Field(default=1.0, gt=0.0, allow_inf_nan=False)
    """Temperature of both softmax functions."""

    def check(self, setting: TaskSetting) -> None:
        """Refuse labels that are not one class for each sample, of three at least. Raises ScenarioError."""
        shape = setting.output_shape
        if setting.loss not in _LOSSES or len(shape) != 1 or shape[0] < _FEWEST:
            raise ScenarioError(
                f'server.algorithm: "{self.name}" compares what two models say of the classes that are not the label;'
                f" found outputs of shape {shape} for a sample, and the loss {setting.loss} (accepted: one label for"
                f" each sample, of {_FEWEST} classes or more, and the loss {' or '.join(_LOSSES)})"
            )

    def added_loss(self, outputs: Tensor, labels: Tensor, global_outputs: Tensor) -> Tensor:
        """Return beta L_NTD of each sample."""
        import torch

        label = labels[:, None] == torch.arange(outputs.shape[1], device=labels.device)
        mine, theirs = (_log_softmax(z / self.tau, label) for z in (outputs, global_outputs))
        share = theirs.exp().masked_fill(label, 0.0)
        return self.beta * self.tau**2 * (share * (theirs - mine)).sum(1)


def _log_softmax(z: Tensor, left_out: Tensor) -> Tensor:
    """Return the logarithm of the softmax over the classes that are not left out; those left out are of no use."""
    return z - z.masked_fill(left_out, -float("inf")).logsumexp(1, keepdim=True)

"""The work of an engine in a run: the facts by which it is chosen. No torch is imported here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from fedactors.clip import Clip
from fedactors.models.layers import Model
from fedactors.optim.client_optimizers import PLAIN, Optimizer
from fedactors.workload import Workload

if TYPE_CHECKING:
    from torch import Tensor

CACHED = 1_300_000  # parameters that stay in the cache of a CPU: 5 MB


class AddedRule(NamedTuple):
    """What an algorithm adds to the loss of samples: `Algorithm.added_loss`, and the algorithm's name for messages."""

    function: Callable[[Tensor, Tensor, Tensor], Tensor]  # of outputs, labels and global outputs
    algorithm: str


@dataclass(frozen=True)
class LocalWork:
    """The local steps of all clients of a run; the same for every chunk, so that one engine takes all of them."""

    model: Model
    workloads: Sequence[Workload] = ()  # one per client
    optimizer: Optimizer = PLAIN
    clip: Clip | None = None  # of every gradient
    prox: float = 0.0  # weight of the pull towards the start
    scales_by_share: bool = False  # whether it is another one for each client
    corrects: bool = False  # whether steps follow more than the gradient: a correction, or `prox`
    loss_weight: float = 1.0  # multiplies every gradient
    second_loss: float | None = None  # weight of a second loss in every step; None if there is no such loss
    added_loss: AddedRule | None = None  # what is added to the loss of samples; None if nothing is
    alternates: bool = False  # whether parts of the model move in some steps only
    keeps_state: bool = False  # whether clients keep vectors between their trips

    @property
    def plain_sgd(self) -> bool:
        """Whether steps are y <- y - lr g, without state, penalty, clipping or phases."""
        return self.optimizer.plain and self.clip is None and not self.alternates

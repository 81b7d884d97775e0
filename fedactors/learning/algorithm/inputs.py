"""What algorithms are given: the facts of a scenario and of a round, the result of a client's trip, the server's data.

torch is imported for annotations only, so that the clock can compute an algorithm's payload without importing it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from fedactors.optim.client_optimizers import PLAIN, Optimizer
from fedactors.workload import Workload

if TYPE_CHECKING:
    from torch import Tensor

    from fedactors.optim.server_optimizers import ServerOptimizer

    Vectors = Mapping[str, Tensor]


class TaskSetting(NamedTuple):
    """The facts of a scenario before anything runs; an algorithm derives its defaults from them."""

    clients: int = 0  # N: clients with work; others have no loss and are never asked
    cohort: int = 0  # S: clients that a round wants
    samples: int = 0  # n: at those clients, before the server shares any
    central: int = 0  # n_0: samples of the server's own
    batch: int = 1  # B: of a client's step
    epochs: int | None = None  # E_c, if clients count in passes
    steps: float = 0.0  # K: local steps wanted of a client, the mean over those that hold data
    sample_size: float = 0.0  # one sample on the wire, in models
    optimizer: Optimizer = PLAIN  # of the clients' local steps, as the scenario says
    evaluation: float = 0.0  # work of one evaluation of a regulariser, in samples
    with_replacement: bool = False  # how batches are drawn, also the server's
    loss: str = "cross_entropy"  # of the model, by its name
    output_shape: tuple[int, ...] = ()  # of what the model answers to one sample


NOTHING: Mapping[str, Any] = MappingProxyType({})


class ClientResult(NamedTuple):
    """The local work of one client, or of many at once (then vectors are rows and scalars are columns)."""

    start: Tensor  # (parameters,) or (clients, parameters): the model it started from, x
    delta: Tensor  # same shape: y - x
    sent: Vectors  # what the server broadcast
    steps: Tensor | float  # local steps completed, () or (clients, 1)
    lr: float  # eta_l
    kept: Vectors = NOTHING  # what the client kept from its last trip, zeros at its first
    gradient: Tensor | None = None  # of the first local step, at x; only for algorithms that say `wants_gradient`
    state: Vectors = NOTHING  # of the client's optimiser at the end
    gradients: Tensor | None = None  # of shape of delta: sum of the loss's gradients, if `wants_gradient_sum` and known
    own: Tensor | None = None  # of shape of delta: the client's own model at the end, for algorithms with an `own_pull`
    loss: Tensor | float = 0.0  # of shape of steps: the mean of its batches' losses; 0 without a step
    start_loss: Tensor | float | None = None  # of shape of steps: of all its samples, at x, if `wants_start_loss`
    samples: Tensor | float = 0.0  # of shape of steps: how many it trains on, without what `drop_last` leaves out
    buffers: int = 0  # how many last values of delta are no parameters, but statistics such as BatchNorm's


UNKNOWN = TaskSetting()


class Round(NamedTuple):
    """The facts of a round that the server aggregates with."""

    version: int
    heard: int  # updates received
    weight: float  # sum of the aggregation weights
    lr: float  # clients' learning rate
    setting: TaskSetting = UNKNOWN
    members: int = 0  # devices with work that belonged to the population in this round, selected or not: N
    arrived: tuple[int, ...] = ()  # clients that joined it meanwhile
    departed: tuple[int, ...] = ()  # and those that left for good
    mixed: tuple[float, ...] = ()  # shares of older models that x is mixed with first, in the order they are given
    updates: tuple[tuple[float, int], ...] = ()  # weight of each update and its age, where a rule needs them
    exact: bool = False  # whether these are the models that servers have; else what clients were sent of them
    steps: int = 0  # local steps behind the updates received: sum of K_i
    server_lr: float | None = None  # the server's rate in this round, where a schedule gives it
    largest: float = 0.0  # of the aggregation weights
    heard_before: int = 0  # rounds before this one in which an update counted


class CentralData(Protocol):
    """The server's own data D_0, as an algorithm may use them: on the server, or on a central learner of its own."""

    def learn(
        self,
        x: Tensor,
        lr: float,
        work: Workload,
        version: int,
        *,
        weight: float = 1.0,
        correction: Tensor | None = None,
        optimizer: ServerOptimizer | None = None,
    ) -> Tensor:
        """Return LocalSGD(x, lr, K_0, D_0).y with the batches of round `version`; x itself if nothing is to be done.

        Gradients are multiplied by `weight`, and `correction` is added to each. An `optimizer`, new in every call,
        takes the place of SGD with `lr`.
        """
        ...

    def learn_and_sum(
        self, x: Tensor, lr: float, work: Workload, version: int, *, weight: float, correction: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return what `learn` does, and the sum of its steps' weighted gradients, without the correction."""
        ...

    def sample(self, x: Tensor, work: Workload, version: int) -> Tensor:
        """Return the gradient at x along which the first step of round `version` goes, with the model in training."""
        ...

    def gradient(self, x: Tensor) -> Tensor:
        """Return the gradient of the mean loss over all of D_0 at x; dropout is off."""
        ...

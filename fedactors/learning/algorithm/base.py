"""What training and the fleet expect of an algorithm: a payload, and pure functions of tensors for both halves.

The algorithms themselves are in `fedactors.algorithms`, one file each; this is the protocol they share. torch is
imported for annotations only, so that the clock can compute an algorithm's payload without importing it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from fedactors.learning.algorithm.inputs import CentralData, ClientResult, Round, TaskSetting
from fedactors.optim.client_optimizers import Optimizer
from fedactors.options import Options
from fedactors.plan import Payload
from fedactors.workload import IDLE, Workload

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from fedactors.learning.algorithm.inputs import Vectors
    from fedactors.models.layers import Loss


class Algorithm(Options):
    """Base of all algorithms: FedAvg's client, and a server whose `aggregate` a subclass must define.

    State on the server is a mapping of named vectors, `x` the model. Names in `sends` travel to the clients, names in
    `keeps` are what each client keeps between its trips. Tensors that methods are given are not to be changed in place.
    """

    sends: ClassVar[tuple[str, ...]] = ("x",)
    keeps: ClassVar[tuple[str, ...]] = ()
    unweighted: ClassVar[tuple[str, ...]] = ()
    """Uploads that are summed as they are, whatever weights the participation policy gives."""
    changes: ClassVar[tuple[str, ...]] = ("delta",)
    """Uploads of the model's size that transforms of updates may alter: changes, each sent once. Empty if none may."""
    data_independent: ClassVar[tuple[str, ...]] = ()
    """Uploads that no sample of a client can change, such as numbers of steps: privacy needs no noise in them."""
    weighting: ClassVar[str] = "samples"
    """The participation policy where a scenario names none."""
    shares: ClassVar[bool] = False
    """Whether the server's samples join those of every client."""
    centre: ClassVar[Literal["none", "before", "beside", "at clients"]] = "none"
    """Where a central loss is minimised besides the clients': nowhere; by a learner of its own, which works before the
    broadcast or beside the clients (`contribute`); or by every client, which is sent the samples."""
    travels_by_rows: ClassVar[bool] = False
    """Whether a client of a model with a table is sent only the rows that its data name."""
    central_results: ClassVar[tuple[str, ...]] = ()
    """Names of the vectors that `contribute` returns."""
    if TYPE_CHECKING:
        name: str  # no field of this class, because its place among the options is the subclass's choice

    @property
    def learns(self) -> bool:
        """Whether the server or a central learner learns from data of its own: a scenario must give it some."""
        return False

    @property
    def loss_weight(self) -> float:
        """Weight of the clients' loss: multiplies every gradient of theirs."""
        return 1.0

    @property
    def central_loss(self) -> Loss | None:
        """The loss of the central learner, if it is not the model's."""
        return None

    @property
    def central_share(self) -> float:
        """Weight of the central loss."""
        return 1.0

    @property
    def prox(self) -> float:
        """Weight of the pull of local steps towards x."""
        return 0.0

    @property
    def scales_by_share(self) -> bool:
        """Whether `sent` holds each client's "share", (clients, 1): its samples over the mean of all clients'."""
        return False

    def prox_of(self, sent: Vectors) -> Tensor | float:
        """Return `prox`, or that of each client, (clients, 1)."""
        return self.prox

    @property
    def own_pull(self) -> float | None:
        """Weight of the pull of each client's own model towards x; None if clients have no such model."""
        return None

    @property
    def corrects(self) -> bool:
        """Whether local steps follow more than the gradient: a correction, or the pull of `prox` or `own_pull`."""
        pulls = bool(self.prox) or self.own_pull is not None
        return type(self).correction is not Algorithm.correction or pulls

    @property
    def has_added_loss(self) -> bool:
        """Whether clients minimise more than the loss of the model: an `added_loss`."""
        return type(self).added_loss is not Algorithm.added_loss

    @property
    def wants_gradient(self) -> bool:
        """Whether `ClientResult.gradient` is used; it costs one more step, computed only if so."""
        return False

    @property
    def wants_gradient_sum(self) -> bool:
        """Whether `ClientResult.gradients` is used; engines that sum gradients give it where steps are plain SGD."""
        return False

    @property
    def wants_start_loss(self) -> bool:
        """Whether `ClientResult.start_loss` is used; each trip then begins with a forward pass over all samples."""
        return False

    @property
    def wants_sgd(self) -> str:
        """Why the clients' steps must be plain SGD; empty if any optimiser will do."""
        return ""

    @property
    def sums_updates_only(self) -> bool:
        """Whether all that is summed over clients are the updates of their models, as a mean."""
        own = type(self).upload is Algorithm.upload and not self.unweighted
        return own and self.centre not in ("before", "beside")

    @property
    def server_rate_key(self) -> str:
        """The option that is the server's rate, which a schedule may take the place of; empty if there is none."""
        if getattr(self, "server_optimizer", None) is not None:
            return "server_optimizer.lr"
        return "global_lr" if "global_lr" in type(self).model_fields else ""

    def check(self, setting: TaskSetting) -> None:
        """Check that the options go with the scenario. Raises ScenarioError if not."""

    def optimizer(self, setting: TaskSetting) -> Optimizer:
        """Return what takes the clients' local steps: that of the scenario, unless the paper prescribes another."""
        return setting.optimizer

    def undefined(self, mixing: bool) -> str:
        """Return why updates that start from older models make no sense here, or nothing if they do.

        With `mixing`, the server's model is mixed with the clients' one at a time before the algorithm aggregates.
        """
        way = f"a method undefined(self, mixing) of {type(self).__name__} that returns an empty text"
        return f"its file does not say what an update from an older model means (accepted: timing synchronous; {way})"

    def central_work(self, setting: TaskSetting) -> Workload:
        """Return the server's own local steps in a round."""
        return IDLE

    def payload(self, setting: TaskSetting) -> Payload:
        """Return what a trip moves, in model sizes, and what the server computes, in samples."""
        return Payload()

    def effort(self, setting: TaskSetting) -> float:
        """Return how much longer a client's step takes than its own samples do: as long, unless it does more.

        A forward pass takes about a third of a step. With an `added_loss` each step has one more; with
        `wants_start_loss` a trip has one over all samples, as long as the mean client's, spread over its steps.
        """
        passes = 1.0 if self.has_added_loss else 0.0
        if self.wants_start_loss and setting.clients:
            held = setting.samples / setting.clients
            passes += held / max(setting.steps * min(setting.batch, held), 1.0)
        return 1.0 + passes / 3

    def contribute(self, state: Vectors, round: Round, central: CentralData) -> dict[str, Tensor]:
        """Return the vectors that the central learner computes in a round, by the names in `central_results`.

        None of them is in the state. What is computed `before` the broadcast is sent to the clients besides the state;
        what is computed `beside` them is in the state that `aggregate` and `idle` are given.
        """
        return {}

    def start(self, x: Tensor) -> dict[str, Tensor]:
        """Return the server's state before the first round, from the initial model `(parameters,)`."""
        return {"x": x}

    def given(self, parameters: int) -> Mapping[str, NDArray[np.float32]]:
        """Return vectors of the state before the first round that the user gives, `(parameters,)` each; else `start`'s.

        Raises ScenarioError if they cannot be used.
        """
        return {}

    def correction(self, sent: Vectors, kept: Vectors) -> Tensor | None:
        """Return what is added to every local gradient of a trip, of the shape of a vector in `sent` or `kept`."""
        return None

    def added_loss(self, outputs: Tensor, labels: Tensor, global_outputs: Tensor) -> Tensor:
        """Return what is added to the loss of each sample of a client's batch, `(batch,)`, before their mean.

        `outputs` are those of the client's model, `(batch, *output_shape)`. `global_outputs` are, of the same shape and
        without gradients, those of the model that the trip started from, as it is evaluated: dropout off, BatchNorm by
        its running averages. `labels` are as the data have them, `(batch, *label_shape)`. Nothing may be drawn at
        random. An algorithm that overrides this has such a loss.
        """
        return outputs.new_zeros(len(labels))

    def moments(self, sent: Vectors, kept: Vectors) -> Vectors:
        """Return the vectors of the optimiser's state that are not zero when a trip begins."""
        return {}

    def upload(self, trip: ClientResult) -> dict[str, Tensor]:
        """Return what a client sends; each vector is summed over clients with the participation weights."""
        return {"delta": trip.delta}

    def keep(self, trip: ClientResult) -> dict[str, Tensor]:
        """Return what the client keeps, under the names of `keeps`; it is adopted once the server has the update."""
        return {}

    def aggregate(self, state: Vectors, sums: Vectors, round: Round, central: CentralData) -> dict[str, Tensor]:
        """Return the next state from this one and the weighted sums of what clients sent."""
        raise TypeError(f"{type(self).__name__} does not say how it aggregates")

    def idle(self, state: Vectors, round: Round, central: CentralData) -> dict[str, Tensor]:
        """Return the state after a round in which no update counts: unchanged, unless the server learns by itself."""
        return dict(state)

    def members_changed(self, state: Vectors, round: Round, departed_states: Sequence[Vectors]) -> dict[str, Tensor]:
        """Return the state after the arrivals and departures of `round`.

        `departed_states` are the vectors that departed clients kept. Called for algorithms whose clients keep
        something; a departed client that never took part has kept zeros and is not among them. What the server has
        received of it, see `traffic.arrived`.
        """
        return dict(state)

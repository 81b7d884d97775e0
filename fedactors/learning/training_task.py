"""The work of a host: a chunk of trips, and everything about the task that does not change.

A chunk is a run of consecutive clients of one Plan. It names clients, steps and weights; the models it starts from
arrive beside it. All of it is plain numbers, so that it travels cheaply and looks the same in every process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedactors.attacks.base import Attackers
from fedactors.clip import Clip
from fedactors.data.base import LabelledSamples, joined_weights
from fedactors.data.holdings import Holdings, Part, RunHoldings, SharedHoldings, raw
from fedactors.data.on_demand import OnDemandSplit, row_bytes
from fedactors.engines.local_work import AddedRule, LocalWork
from fedactors.learning.algorithm import UNKNOWN, Algorithm, TaskSetting
from fedactors.learning.combining import Aggregation
from fedactors.metric_names import MetricSpec
from fedactors.models.layers import Model
from fedactors.transforms.chain import Chain
from fedactors.workload import FineTuning, PretrainingWork, Workload

SENT = "sent."  # before the name of a vector as clients are sent it, where that is another one
_FEW = 101  # samples by which data that are made on demand are identified
Vectors = dict[str, NDArray[np.float32]]  # named vectors of a model's size, as they travel between processes


class Chunk(NamedTuple):
    """Trips of one Plan that are computed together; columns run over the trips, ascending by client."""

    version: int  # of the Plan
    clients: tuple[int, ...]
    model_indices: tuple[int, ...]  # index into the models that come with the chunk
    base_versions: tuple[int, ...]  # model version at which each trip began: names its random streams
    steps: tuple[int, ...]
    weights: tuple[float, ...]
    lr: float
    active: tuple[int, ...] = ()  # clients to which data are reassigned in this round; empty if they are not
    place: int = 0  # among the chunks of the round
    among: int = 1  # as many

    @property
    def cost(self) -> int:
        """Local steps in the chunk."""
        return sum(self.steps)

    def only(self, place: int, steps: int | None = None) -> Chunk:
        """Return the chunk of one of its trips, or of its first `steps` steps."""
        columns = ("clients", "model_indices", "base_versions", "steps", "weights")
        one = {name: getattr(self, name)[place : place + 1] for name in columns}
        return self._replace(**one if steps is None else one | {"steps": (steps,)})


BadUpdates = tuple[tuple[int, int], ...]
"""(client, first bad local step, from 0) of updates that hold NaN or Inf, or whose clients would keep such."""
ClientLoss = tuple[int, float, float]  # client; over its local steps, the mean of the batches' losses, and of squares


class ClientMeasures(NamedTuple):
    """The measures of one client's model on that client's samples."""

    client: int
    samples: int
    accuracy: float | None  # None where labels are no classes
    loss: float
    further: dict[str, float]  # measures besides, by name


class MemoryLimit(NamedTuple):
    """How a host trains since it ran out of memory."""

    at_once: int  # clients that it trains at once
    same_bits: bool  # as if it trained whole chunks


class ChunkResult(NamedTuple):
    """What a chunk gives back: weighted sums over its trips, whatever their number.

    Where the server combines single updates, `sums` holds a row for each trip: `(trips, parameters)`.
    """

    place: int  # among the chunks of the round, of the chunk or of the first of several
    sums: Vectors
    loss: float  # sum over local steps of the batch's mean loss
    bad: BadUpdates = ()
    kept: tuple[Vectors, ...] = ()  # what each client keeps, if the algorithm has it keep something
    losses: tuple[ClientLoss, ...] = ()  # of each client, if the selection uses them
    memory_limit: MemoryLimit | None = None  # if memory lacked for the whole chunk
    among: int = 1  # as many chunks
    chunks: int = 1  # whose sum this is, one after the other
    moved: int = 0  # bytes of sums that other hosts handed over for this


@dataclass(frozen=True)
class TrainingTask:
    """What does not change in a run: every host gets it once."""

    model: Model
    algorithm: Algorithm
    seed: int
    workloads: tuple[Workload, ...]  # one per client
    setting: TaskSetting = UNKNOWN
    pretraining: PretrainingWork | None = None
    holdout: Holdings | None = None  # of the test set, where it follows the members or clients are evaluated
    returns_client_losses: bool = False  # whether hosts return the loss of each client
    engine: str | None = None  # name of the engine; None for the first that suits
    personal: NDArray[np.int64] | None = None  # positions of what stays at the clients; None or empty for nothing
    personal_steps: tuple[int, ...] = ()  # of each client, those that train what stays alone; empty: all train all
    evaluates_on_all: bool = False  # whether single clients are evaluated on the whole test set
    fine_tuning: FineTuning | None = None  # of models before they are evaluated at clients
    evaluates_own: bool = True  # whether they are evaluated with what they have of their own

    clip: Clip | None = None  # of the clients' gradients
    metrics: tuple[MetricSpec, ...] = ()  # besides accuracy and loss
    aggregation: Aggregation | None = None  # a rule for single updates, if they are not summed
    given: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)
    """Of the server's state before the first round."""
    uplink: Chain | None = None  # transforms of updates, if there are any
    downlink: Chain | None = None  # transforms of models on their way to clients
    attackers: tuple[Attackers, ...] = ()  # clients that send other updates than theirs

    @property
    def has_personal(self) -> bool:
        """Whether parts of the model stay at the clients."""
        return self.personal is not None and bool(len(self.personal))

    @property
    def keeps_state(self) -> bool:
        """Whether clients keep vectors between their trips."""
        feedback = self.uplink is not None and bool(self.uplink.keeps(self.algorithm.changes))
        return bool(self.algorithm.keeps) or self.has_personal or feedback

    @property
    def sends(self) -> tuple[str, ...]:
        """Names of the public state: what clients are sent, and that of which it is a message."""
        sends = self.algorithm.sends
        messages = () if self.downlink is None else (SENT + name for name in sends)
        return (*sends, *messages, *self.broadcast_values)

    @property
    def broadcast_values(self) -> dict[str, float]:
        """The first values of the numbers that are broadcast with the model for transforms of updates, by name."""
        return {} if self.uplink is None else self.uplink.broadcast_values(self.algorithm.changes)

    @property
    def unweighted(self) -> tuple[str, ...]:
        """Names of uploads that are summed without weights."""
        counts = (name.removesuffix("told") + "count" for name in self.broadcast_values)
        return (*self.algorithm.unweighted, *counts)

    @property
    def local_work(self) -> LocalWork:
        """The clients' local steps, as an engine is chosen for them."""
        algorithm = self.algorithm
        return LocalWork(
            model=self.model,
            workloads=self.workloads,
            optimizer=algorithm.optimizer(self.setting),
            clip=self.clip,
            prox=algorithm.prox,
            scales_by_share=algorithm.scales_by_share,
            corrects=algorithm.corrects,
            loss_weight=algorithm.loss_weight,
            second_loss=algorithm.central_share if algorithm.centre == "at clients" else None,
            added_loss=AddedRule(algorithm.added_loss, algorithm.name) if algorithm.has_added_loss else None,
            alternates=bool(self.personal_steps),
            keeps_state=self.keeps_state,
        )

    @cached_property
    def shares(self) -> NDArray[np.float32]:
        """The samples of each client over the mean of all that have work, (clients,); without work 0."""
        held = np.array([work.held if work.wanted else 0 for work in self.workloads], np.float64)
        shares: NDArray[np.float32] = (held / held[held > 0].mean()).astype(np.float32)
        return shares

    @property
    def central_model(self) -> Model:
        """The model with the loss of the central learner."""
        return replace(self.model, loss=self.algorithm.central_loss or self.model.loss)


class ServerExamples(NamedTuple):
    """Samples that every client is sent besides its model."""

    samples: LabelledSamples
    batch: int  # of a step


class SampleVariants(NamedTuple):
    """Several variants of each sample: the first ones of all, then the second ones, and further data after the last."""

    copies: int
    samples: int


@dataclass(frozen=True)
class TrainingData:
    """Training samples, and which client holds which."""

    x: NDArray[np.float32]  # (n, *shape)
    y: NDArray[np.int64]  # (n,)
    split: RunHoldings
    central: ServerExamples | None = None
    weights: NDArray[np.float32] | None = None
    """How much each sample counts in its batch, (n,); None if all count the same."""
    variants: SampleVariants | None = None  # clients hold first ones; each local step sees any

    @property
    def size_bytes(self) -> int:
        """Bytes of the samples of all clients, and of their labels."""
        return len(self.y) * row_bytes(self.x.shape[1:])

    def few(self, count: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return at most `count` samples, `(count, *shape)`, and their labels, always the same ones."""
        return self.x[:count], self.y[:count]

    def of(self, client: int) -> LabelledSamples:
        """Return what a client holds."""
        held = self.split.of(client)
        return LabelledSamples(self.x[held], self.y[held], None if self.weights is None else self.weights[held])

    def signature(self, every: int = 1) -> Iterator[Part]:
        """Yield what these samples are identified by, see `signature`."""
        yield from signature(self.x, self.y, self.weights, every)


@dataclass(frozen=True)
class OnDemandData(TrainingData):
    """Training samples that are made when their client is asked for; every process makes those that it needs."""

    split: OnDemandSplit

    def __reduce__(self) -> tuple[Callable[[OnDemandSplit], OnDemandData], tuple[OnDemandSplit]]:
        """Travel without samples."""
        return on_demand_data, (self.split,)

    @property
    def size_bytes(self) -> int:
        """Bytes of the samples of all clients, and of their labels."""
        return int(self.split.source.sizes.sum()) * row_bytes(self.x.shape[1:])

    def few(self, count: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return at most `count` samples of the first client that has some, and their labels."""
        held = self.split.of(int(np.argmax(self.split.source.sizes > 0)))[:count]
        return self.x[held], self.y[held]

    def signature(self, every: int = 1) -> Iterator[Part]:
        """Yield what these samples are identified by: how many each client has, and some of them."""
        yield raw(self.split.source.sizes)
        yield from signature(*self.few(_FEW), every=every)


def on_demand_data(split: OnDemandSplit) -> OnDemandData:
    """Return the samples that `split` makes."""
    return OnDemandData(split.x, split.y, split)


def signature(
    x: NDArray[np.float32], y: NDArray[np.int64], weights: NDArray[np.float32] | None = None, every: int = 1
) -> Iterator[Part]:
    """Yield what samples are identified by: shapes, all labels and weights, and the samples, or one of `every` few."""
    yield f"{x.shape} {y.shape}".encode()
    yield raw(y)
    yield raw(x[::every])
    if weights is not None:
        yield raw(weights)


def share(samples: TrainingData, shared: LabelledSamples) -> TrainingData:
    """Return `samples` with the `shared` ones at every client besides its own; nothing is copied per client."""
    further = np.arange(len(samples.y), len(samples.y) + len(shared.y), dtype=np.int64)
    weights = joined_weights((samples.weights, len(samples.y)), (shared.weights, len(shared.y)))
    return replace(
        samples,
        x=np.concatenate([samples.x, shared.x]),
        y=np.concatenate([samples.y, shared.y]),
        split=SharedHoldings(samples.split, further),
        central=None,
        weights=weights,
    )

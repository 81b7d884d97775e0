"""What the engine and the fleet expect of an algorithm: a payload, and pure functions of tensors for both halves.

The algorithms themselves are in `fedactors.algorithms`, one file each; this is the protocol they share. torch is imported
for annotations only, so that the clock can ask an algorithm for its payload without paying for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from fedactors.options import Options
from fedactors.plan import Payload

if TYPE_CHECKING:
    from torch import Tensor

    Vectors = Mapping[str, Tensor]


class Trip(NamedTuple):
    """The local work of one client, or of many at once (then vectors are rows and scalars are columns)."""

    start: Tensor  # (parameters,) or (clients, parameters): the model it started from, x
    delta: Tensor  # same shape: y - x
    sent: Vectors  # what the server broadcast
    steps: Tensor | float  # local steps completed, () or (clients, 1)
    lr: float  # eta_l


class Round(NamedTuple):
    """What the server knows of a round when it aggregates."""

    version: int
    heard: int  # updates received
    weight: float  # sum of the aggregation weights
    lr: float  # clients' learning rate


class Algorithm(Options):
    """Base of all algorithms: FedAvg's client, and a server that must say how it aggregates.

    State on the server is a mapping of named vectors, `x` the model. Names in `sends` travel to the clients.
    """

    sends: ClassVar[tuple[str, ...]] = ("x",)
    prox: ClassVar[float] = 0.0

    def payload(self) -> Payload:
        """Return what a trip moves, in model sizes, and what the server computes, in samples."""
        return Payload()

    def start(self, x: Tensor) -> dict[str, Tensor]:
        """Return the server's state before the first round, from the initial model `(parameters,)`."""
        return {"x": x}

    def correction(self, sent: Vectors) -> Tensor | None:
        """Return the vector added to every local gradient of a trip, `(parameters,)`, or None."""
        return None

    def upload(self, trip: Trip) -> dict[str, Tensor]:
        """Return what a client sends; each vector is summed over clients with the participation weights."""
        return {"delta": trip.delta}

    def aggregate(self, state: Vectors, sums: Vectors, round: Round) -> dict[str, Tensor]:
        """Return the next state from this one and the weighted sums of what clients sent."""
        raise TypeError(f"{type(self).__name__} does not say how it aggregates")

    def idle(self, state: Vectors, round: Round) -> dict[str, Tensor]:
        """Return the state after a round in which no update counts: unchanged, unless the server learns by itself."""
        return dict(state)

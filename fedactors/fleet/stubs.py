"""Typed stubs of the workers: a method of a stub calls the method of the same name in the worker's process.

A stub's method does not wait. It takes handles where the worker's method takes values that other actors made, and
returns handles of the results. `tests/fleet/test_stubs.py` compares each stub with its worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedactors.data.base import LabelledSamples
from fedactors.data.evaluation_set import EvaluationSet
from fedactors.fleet.base import Actor, Fleet, Handle, device_of
from fedactors.fleet.lazy_workers import CENTRAL_HOST, EVALUATOR, SERVER
from fedactors.fleet.messages import AggregationReport, Contribution
from fedactors.fleet.profiling import Span
from fedactors.learning.algorithm import Round
from fedactors.learning.dissimilarity import GradientSum
from fedactors.learning.training_task import Chunk, ChunkResult, ClientMeasures, TrainingData, TrainingTask, Vectors

Results: TypeAlias = Handle[list[ChunkResult]]
ServerInput: TypeAlias = Results | Handle[Contribution] | Handle[Vectors]


class WorkerStub:
    """The stub of `Worker`: what all workers have in common."""

    def __init__(self, fleet: Fleet, actor: Actor) -> None:
        self._fleet = fleet
        self.actor = actor

    def worked(self) -> Handle[list[Span]]:
        """Return when the worker worked since the last call of this method."""
        return self._fleet.call(self.actor, "worked")


class ClientHostStub(WorkerStub):
    """The stub of `ClientHost`."""

    def prepare(self, chunks: Sequence[Chunk]) -> None:
        """Prepare `chunks`, which this host learns next, as far as that needs no model; nothing comes back."""
        self._fleet.call_several(self.actor, "prepare", chunks, returns=0)

    def learn(self, chunks: Sequence[Chunk], bases: Sequence[Handle[Vectors]]) -> Results:
        """Train `chunks`, whose clients keep nothing, from the models `bases`."""
        return self._fleet.call(self.actor, "learn", chunks, *bases)

    def learn_with_states(
        self, chunks: Sequence[Chunk], bases: Sequence[Handle[Vectors]], kept: Sequence[Handle[Vectors] | None]
    ) -> tuple[Results, list[Handle[Vectors]]]:
        """Train `chunks`, whose clients `kept` something; return what they learned, and what each keeps now."""
        several = self._fleet.call_several(self.actor, "learn", chunks, *bases, *kept, returns=1 + len(kept))
        return several[0], several[1:]

    def crashing_client(
        self, chunk: Chunk, bases: Sequence[Handle[Vectors]], kept: Sequence[Handle[Vectors] | None], seconds: float
    ) -> Handle[str]:
        """Return which client of `chunk` ends the process that trains it, and how; empty if none does in so long."""
        return self._fleet.call(self.actor, "crashing_client", chunk, seconds, *bases, *kept)

    def fold(self, own: Sequence[Results], handed: Sequence[Results] = ()) -> Results:
        """Add up what this host learned and what another host has `handed` to it."""
        return self._fleet.call(self.actor, "fold", len(own), *own, *handed)

    def gradient_sum(self, clients: Sequence[int], public: Handle[Vectors]) -> Handle[GradientSum]:
        """Add up gradients of the clients' mean losses at the model in `public`."""
        return self._fleet.call(self.actor, "gradient_sum", clients, public)

    def first_gradient_sum(self, clients: Sequence[int], version: int, public: Handle[Vectors]) -> Handle[GradientSum]:
        """Add up gradients of the clients' first batches in round `version` at the model in `public`."""
        return self._fleet.call(self.actor, "first_gradient_sum", clients, version, public)

    def local_optimum(
        self, public: Handle[Vectors], client: int, lr: float, rounds: int, version: int
    ) -> Handle[dict[str, float]]:
        """Return the client's loss at the model in `public`, and the least it reaches alone."""
        return self._fleet.call(self.actor, "local_optimum", public, client, lr, rounds, version)

    def limit(self, clients: int) -> Handle[None]:
        """Train at most so many clients at once from now on."""
        return self._fleet.call(self.actor, "limit", clients)


class ServerStub(WorkerStub):
    """The stub of `ServerWorker`."""

    @classmethod
    def started(cls, fleet: Fleet, task: Handle[TrainingTask], own: Handle[LabelledSamples]) -> ServerStub:
        """Start a server with samples of its `own`."""
        return cls(fleet, fleet.start(SERVER, task, own, device_of(fleet.server_gpus), role="server"))

    def start(self) -> tuple[Handle[Vectors], Handle[Vectors]]:
        """Return the public and private state before the first round."""
        public, private = self._fleet.call_several(self.actor, "start", returns=2)
        return public, private

    def aggregate(
        self,
        facts: Round,
        public: Handle[Vectors],
        private: Handle[Vectors],
        results: Sequence[ServerInput],
    ) -> tuple[Handle[Vectors], Handle[Vectors], Handle[AggregationReport]]:
        """Return the next public and private state, and a report of the round."""
        next_public, next_private, report = self._fleet.call_several(
            self.actor, "aggregate", facts, public, private, *results, returns=3
        )
        return next_public, next_private, report

    def dissimilarity(
        self, public: Handle[Vectors], gradient_sums: Sequence[Handle[GradientSum]]
    ) -> Handle[dict[str, float]]:
        """Return xi^2 and G^2 at the model in `public`."""
        return self._fleet.call(self.actor, "dissimilarity", public, *gradient_sums)

    def mixed_dissimilarity(
        self, central: Handle[NDArray[np.float32]], gradient_sums: Sequence[Handle[GradientSum]]
    ) -> Handle[dict[str, float]]:
        """Return G~^2 and B~^2 against the `central` gradient."""
        return self._fleet.call(self.actor, "mixed_dissimilarity", central, *gradient_sums)


class CentralHostStub(WorkerStub):
    """The stub of `CentralHost`."""

    @classmethod
    def started(cls, fleet: Fleet, task: Handle[TrainingTask], own: Handle[LabelledSamples]) -> CentralHostStub:
        """Start the central learner with samples of its `own`."""
        return cls(fleet, fleet.start(CENTRAL_HOST, task, own, device_of(fleet.central_gpus), role="central learner"))

    def contribute(self, facts: Round, public: Handle[Vectors], private: Handle[Vectors]) -> Handle[Contribution]:
        """Return what the central learner computes in a round."""
        return self._fleet.call(self.actor, "contribute", facts, public, private)

    def broadcast(self, facts: Round, public: Handle[Vectors], private: Handle[Vectors]) -> Handle[Vectors]:
        """Return what clients are sent: the public state and the contribution of the central learner."""
        return self._fleet.call(self.actor, "broadcast", facts, public, private)

    def gradient_sum(self, facts: Round, public: Handle[Vectors]) -> Handle[NDArray[np.float32]]:
        """Return the gradient of the central loss on the first batch of a round at the model in `public`."""
        return self._fleet.call(self.actor, "gradient_sum", facts, public)


class EvaluatorStub(WorkerStub):
    """The stub of `Evaluator`."""

    @classmethod
    def started(
        cls,
        fleet: Fleet,
        task: Handle[TrainingTask],
        evaluation_set: Handle[EvaluationSet],
        samples: Handle[TrainingData] | None = None,
    ) -> EvaluatorStub:
        """Start an evaluator; it has the clients' `samples` where they fine-tune models first."""
        further = () if samples is None else (samples,)
        return cls(fleet, fleet.start(EVALUATOR, task, evaluation_set, *further, role="evaluator"))

    def evaluate(
        self, public: Handle[Vectors], audience: Handle[NDArray[np.bool_] | None] | None = None
    ) -> Handle[dict[str, float]]:
        """Return the measures of the model in `public`, on the hold-out data of an `audience` or on all test data."""
        return self._fleet.call(self.actor, "evaluate", public, audience)

    def evaluate_clients(
        self, public: Handle[Vectors], version: int, clients: Sequence[int], kept: Sequence[Handle[Vectors] | None]
    ) -> Handle[tuple[ClientMeasures, ...]]:
        """Return the measures of clients; `kept` is what each has of its own, empty for the global model."""
        return self._fleet.call(self.actor, "evaluate_clients", public, version, clients, *kept)

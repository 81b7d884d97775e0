"""What is measured beside the rounds of a run: models, on test sets and at clients, and how much gradients differ."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedactors.fleet.base import Fleet, Handle
from fedactors.fleet.client_states import ClientStates
from fedactors.fleet.hosts import Hosts
from fedactors.fleet.messages import RoundTask
from fedactors.fleet.stubs import CentralHostStub, EvaluatorStub, ServerStub
from fedactors.learning.training_task import ClientMeasures, Vectors

_AT_ONCE = 32  # clients that are evaluated with what they keep in one call


class Measurements:
    """The calls that measure something of a task in flight; none waits for its result.

    Args:
        fleet: where all actors run.
        evaluator: evaluates models.
        server, central, hosts: compute gradients and compare them; `central` is empty without a central learner.
        states: what clients keep, if they are evaluated with it.

    """

    def __init__(
        self,
        fleet: Fleet,
        evaluator: EvaluatorStub,
        server: ServerStub,
        central: Sequence[CentralHostStub],
        hosts: Hosts,
        states: ClientStates | None,
    ) -> None:
        self._fleet = fleet
        self._evaluator = evaluator
        self._server = server
        self._central = central
        self._hosts = hosts
        self._states = states
        self._audience: tuple[NDArray[np.bool_] | None, Handle[NDArray[np.bool_] | None] | None] = (None, None)

    def of_model(self, task: RoundTask, public: Handle[Vectors]) -> Handle[dict[str, float]]:
        """Evaluate the model that a task leads to; the audience is sent only when it changes."""
        if task.audience is not self._audience[0]:
            self._audience = (task.audience, self._fleet.put(task.audience))
        return self._evaluator.evaluate(public, self._audience[1])

    def of_clients(self, task: RoundTask, public: Handle[Vectors]) -> list[Handle[tuple[ClientMeasures, ...]]]:
        """Evaluate single clients after a task, with what they keep then: a call has that of few in memory at once."""
        version = task.facts.version
        if self._states is None:
            return [self._evaluator.evaluate_clients(public, version, task.evaluated_clients, [])]
        calls = []
        for first in range(0, len(task.evaluated_clients), _AT_ONCE):
            some = task.evaluated_clients[first : first + _AT_ONCE]
            kept = [self._states.of(client) for client in some]
            calls.append(self._evaluator.evaluate_clients(public, version, some, kept))
        return calls

    def of_gradients(self, task: RoundTask, public: Handle[Vectors], tries: int) -> Handle[dict[str, float]]:
        """Compare gradients at the model a round starts from: hosts compute them, the server compares them.

        Where there is a central learner they are those of first batches, else those of whole data sets.
        """
        if not self._central:
            return self._server.dissimilarity(public, self._hosts.gradient_sums(task.measured, public, tries))
        sums = self._hosts.gradient_sums(task.measured, public, tries, first_of=task.facts.version)
        central = self._central[0].gradient_sum(task.facts, public)
        return self._server.mixed_dissimilarity(central, sums)

    def close(self) -> None:
        """Drop what was sent."""
        self._audience = (None, None)

"""Rounds in flight: what is submitted, what it refers to, and what is submitted again after a fault.

A round's calls refer to models by handles that need not exist yet, so several rounds can be in flight. Everything that
a round is made of is immutable, so after a fault the round and all later ones are submitted again, on other hosts, and
give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TypeVar

from fedactors.data.base import LabelledSamples
from fedactors.data.evaluation_set import EvaluationSet
from fedactors.errors import FleetError
from fedactors.fleet.base import Fault, Fleet, Handle, UserCallError, WorkerClass
from fedactors.fleet.client_states import ClientStates
from fedactors.fleet.flight import MOST_RAISED, Flight, RoundHandles
from fedactors.fleet.hosts import Hosts
from fedactors.fleet.lazy_workers import CLIENT_HOST
from fedactors.fleet.measurements import Measurements
from fedactors.fleet.messages import Contribution, Outcomes, RoundTask, SavedState, Snapshot
from fedactors.fleet.model_handles import ModelHandles
from fedactors.fleet.stubs import CentralHostStub, ClientHostStub, EvaluatorStub, ServerInput, ServerStub
from fedactors.learning.algorithm import Round
from fedactors.learning.training_task import TrainingData, TrainingTask, Vectors

T = TypeVar("T")


class Pipeline:
    """Executes tasks on a fleet, in order of version.

    Args:
        fleet: where to run.
        training_task: the constants of the run.
        samples: training data.
        test: what models are evaluated on.
        own: the server's samples.
        on_fault: called with every fault, and the version it occurred at.
        saved: where to continue; by default the algorithm starts.
        host_worker: the class of a client host and the arguments of its constructor, if it is not `ClientHost`.

    """

    def __init__(
        self,
        fleet: Fleet,
        training_task: TrainingTask,
        samples: TrainingData,
        test: EvaluationSet,
        own: LabelledSamples,
        on_fault: Callable[[int, Fault], None] = lambda version, fault: None,
        saved: SavedState | None = None,
        host_worker: tuple[WorkerClass, tuple[Any, ...]] | None = None,
    ) -> None:
        self._fleet = fleet
        self._on_fault = on_fault
        self.max_in_flight = fleet.max_in_flight
        task = fleet.put(training_task)
        data = fleet.put(samples)
        evaluation_set = fleet.put(test)
        servers = fleet.put(own)
        self._constants = (task, data, evaluation_set, servers)  # an actor that restarts is given them again
        self._keeps = training_task.keeps_state
        self._states = ClientStates()
        worker, made_of = host_worker or (CLIENT_HOST, (task, data, fleet.device))
        self._hosts = Hosts(fleet, worker, made_of, self._states if self._keeps else None)
        self.server = ServerStub.started(fleet, task, servers)
        self.evaluator = EvaluatorStub.started(
            fleet, task, evaluation_set, None if training_task.fine_tuning is None else data
        )
        self._centre = training_task.algorithm.centre
        self.central: list[CentralHostStub] = []  # the central learner, if the algorithm has one
        if self._centre in ("before", "beside"):
            self.central = [CentralHostStub.started(fleet, task, servers)]
        kept = self._states if training_task.evaluates_own and self._keeps else None
        self._measurements = Measurements(fleet, self.evaluator, self.server, self.central, self._hosts, kept)
        self._models = ModelHandles()
        self._flights: list[Flight] = []
        self._done = 0 if saved is None else saved.version
        if saved is None:
            self._models.set_state(0, *self.server.start())
        else:
            self._continue(saved, training_task.sends)

    def _continue(self, saved: SavedState, sends: Collection[str]) -> None:
        """Put a saved state on the fleet, as if its rounds had just been finished."""
        put = self._fleet.put
        public = put({name: value for name, value in saved.state.items() if name in sends})
        private = put({name: value for name, value in saved.state.items() if name not in sends})
        self._models.set_state(saved.version, public, private)
        for version, sent in saved.older.items():
            self._models.set_older(version, put(sent))
        for client, vectors in saved.kept:
            self._states.restore(client, put(vectors))

    @property
    def hosts(self) -> list[ClientHostStub]:
        """The client hosts that there are now."""
        return self._hosts.stubs

    def loads(self, task: RoundTask) -> list[int]:
        """Return the local steps of a task that each host is given."""
        return self._hosts.loads(task.chunks)

    def submit(self, task: RoundTask) -> None:
        """Send the calls of a task; does not wait for them."""
        self._hosts.grow()
        flight = Flight(task)
        self._flights.append(flight)
        self._launch(flight)

    def finish(self) -> Outcomes:
        """Wait for the oldest task in flight and adopt its results. Raises FleetError if it cannot be done."""
        outcomes = self.outcomes()
        self.adopt()
        return outcomes

    def outcomes(self) -> Outcomes:
        """Wait for the oldest task, which stays in flight. Raises FleetError if it cannot be done."""
        flight = self._flights[0]
        while True:
            try:
                assert flight.handles is not None
                return flight.handles.outcomes(flight.task.facts.version, self._fleet)
            except Fault as fault:
                self._again(flight, fault)

    def evaluate(self, version: int) -> dict[str, float]:
        """Return accuracy and loss of the model before round `version`, on the whole test set.

        Raises FleetError if it fails twice, or if code of the user raises.
        """
        public = self._models.public(version)
        what = f"evaluation of the last model, after round {version}"
        return self._waited(version, what, lambda tries: self.evaluator.evaluate(public))

    def amend(self, tasks: Sequence[RoundTask]) -> None:
        """Replace all tasks in flight, the oldest first, and submit them again."""
        for flight, task in zip(self._flights, tasks, strict=True):
            flight.task = task
        self._resubmit()

    def adopt(self) -> None:
        """Take the oldest task, which is done, out of flight: a run would continue from its results."""
        task = self._flights.pop(0).task
        self._states.adopt(task.facts.version)
        self._states.forget(task.facts.departed)
        self._done = task.facts.version + 1
        started = self._flights[0].task.facts.version if self._flights else task.oldest
        self._models.forget_before(min(task.oldest, started))

    def state(self, version: int) -> dict[str, Any]:
        """Return the server's state before round `version` as named vectors. Raises FleetError if it is lost."""
        try:
            public = self._fleet.get(self._models.public(version))
            return {**public, **self._fleet.get(self._models.private(version))}
        except Fault as fault:
            raise FleetError(f"the model after round {version}: {fault}") from None

    def snapshot(self) -> Snapshot:
        """Return handles of all that the tasks after those adopted can need."""
        public = self._models.sent_until(self._done)
        return Snapshot(self._done, public, self._models.private(self._done), self._states.items())

    def fetch(self, snapshot: Snapshot) -> SavedState:
        """Return the values of a snapshot, those of clients one by one. Raises Fault if one is lost."""
        get = self._fleet.get
        *older, (version, last) = snapshot.public.items()
        state = {**get(last), **get(snapshot.private)}
        kept = ((client, get(handle)) for client, handle in snapshot.kept)
        return SavedState(version, state, kept, {number: get(sent) for number, sent in older})

    def rewind(self, snapshot: Snapshot) -> None:
        """Go to the version at which `snapshot` was taken; tasks in flight are dropped."""
        self._flights.clear()
        self._models.restore(snapshot.version, snapshot.public, snapshot.private)
        self._states.clear()  # hosts hold the same object
        self._done = snapshot.version
        for client, handle in snapshot.kept:
            self._states.restore(client, handle)

    def close(self) -> None:
        """Drop all handles, so that models are freed at once and not when the garbage collector runs."""
        self._flights.clear()
        self._models.clear()
        self._states.clear()
        self._measurements.close()

    def local_optimum(self, client: int, lr: float, rounds: int) -> dict[str, float]:
        """Return the client's loss at the newest finished model, and the least it reaches alone; see `local_optimum`.

        Raises FleetError if two hosts fail, or if code of the user raises.
        """
        public = self._models.public(self._done)

        def alone(tries: int) -> Handle[dict[str, float]]:
            host = self.hosts[tries % len(self.hosts)]
            return host.local_optimum(public, client, lr, rounds, self._done)

        return self._waited(self._done, f"client {client} by itself, after round {self._done}", alone)

    def _waited(self, version: int, what: str, call: Callable[[int], Handle[T]]) -> T:
        """Return the result of a `call` that belongs to no task in flight; after a fault it is called once more."""
        for tries in range(MOST_RAISED):
            try:
                return self._fleet.get(call(tries))
            except Fault as fault:
                self._on_fault(version, fault)
                last = fault
            if last.cause == UserCallError.__name__:  # it would raise on every host
                raise FleetError(f"{last.text}\n{what}")
            self._revive(version)
        raise FleetError(f"{what}: {MOST_RAISED} failures, last {last}")

    def kept(self) -> Iterator[tuple[int, Vectors]]:
        """Yield (client, named vectors) of what each client keeps after the last finished task, ascending."""
        for client, handle in self._states.items():
            yield client, self._fleet.get(handle)

    @property
    def in_flight(self) -> int:
        """Tasks submitted and not finished."""
        return len(self._flights)

    def _launch(self, flight: Flight) -> None:
        """Send a task's calls: chunks to hosts, their sums to the server, its model to the evaluator."""
        task = flight.task
        facts = task.facts
        public = self._models.public(facts.version)
        private = self._models.private(facts.version)
        contributions = self._central_work(facts, public, private)
        bases = [self._models.sent(base) for base in task.bases]
        learned = self._hosts.learned(task.chunks, bases, flight.tries)
        departed = self._states.of_those_that_keep(facts.departed)
        results: list[ServerInput] = [*bases[: len(facts.mixed)], *learned, *contributions, *departed]
        next_public, next_private, report = self.server.aggregate(facts, public, private, results)
        self._models.set_state(facts.version + 1, next_public, next_private)
        evaluated = self._measurements.of_model(task, next_public) if task.evaluate else None
        dissimilarity = self._measurements.of_gradients(task, public, flight.tries) if task.measured else None
        client_measures = self._measurements.of_clients(task, next_public) if task.evaluated_clients else None
        flight.handles = RoundHandles(report, evaluated, dissimilarity, client_measures)

    def _central_work(
        self, facts: Round, public: Handle[Vectors], private: Handle[Vectors]
    ) -> list[Handle[Contribution]]:
        """Start the central learner's work of a round; return what it gives the server.

        What it computes before the broadcast goes to the clients, whose calls wait for it. What it computes beside
        them is computed at the same time.
        """
        if self._centre == "before":
            self._models.set_sent(facts.version, self.central[0].broadcast(facts, public, private))
        return [self.central[0].contribute(facts, public, private)] if self._centre == "beside" else []

    def _again(self, flight: Flight, fault: Fault) -> None:
        """Report a fault and submit everything from this task on once more, on other hosts."""
        version = flight.task.facts.version
        self._on_fault(version, fault)
        if reason := flight.count(fault):
            bases = [self._models.sent(base) for base in flight.task.bases]
            raise FleetError(self._hosts.explained(flight, bases, reason) if fault.died else reason)
        if fault.died:
            self._revive(version)
        if fault.cause == "OutOfMemoryError":  # Ray has ended a host before the machine would have
            self._halve_batches(flight.task)
        if version == 0:
            self._models.set_state(0, *self.server.start())
        self._resubmit()

    def _halve_batches(self, task: RoundTask) -> None:
        """Have hosts train half as many clients at once as they did."""
        now = self._hosts.at_once or max((len(chunk.clients) for chunk in task.chunks), default=1)
        self._hosts.limit(max(1, now // 2))

    def _resubmit(self) -> None:
        self._states.drop()
        for flight in self._flights:
            self._launch(flight)

    def _revive(self, version: int) -> None:
        """Wait for all actors after one has died. Raises FleetError if one does not come back that is needed."""
        others = (*self.central, self.server, self.evaluator)
        try:
            died = self._hosts.revive() + sum(self._fleet.revive(stub.actor) for stub in others)
        except Fault as fault:
            raise FleetError(str(fault)) from None
        for _ in range(died - 1):  # the first one is reported already
            self._on_fault(version, Fault("ActorDiedError", "it died at about the same time as another one", died=True))

"""Rounds in flight: what is submitted, what it refers to, and what is given out again after a fault.

A round's work refers to models by handles that need not exist yet, so several rounds can be under way. Everything a
round is made of is immutable, so after a fault the round and all later ones are simply submitted again, on other
hosts, and give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from fedactors.data.evaluation_set import EvaluationSet
from fedactors.errors import FleetError
from fedactors.fleet.base import Actor, Fault, Fleet, Handle, WorkerClass
from fedactors.fleet.chunk_placement import spread
from fedactors.fleet.client_states import ClientStates
from fedactors.fleet.hosts import Hosts
from fedactors.fleet.lazy_workers import CENTRAL_HOST, CLIENT_HOST, EVALUATOR, SERVER
from fedactors.fleet.messages import RAISED, Flight, Outcomes, RoundTask, SavedState, Snapshot
from fedactors.learning.algorithm import Round
from fedactors.learning.training_task import TrainingData, TrainingTask


class Pipeline:
    """Executes tasks on a fleet, in order of version.

    Args:
        fleet: where to run.
        lesson: the task's constants.
        samples: training data; test: what models are examined on; own: the server's samples and labels.
        on_fault: told of every fault, with the version it was met at.
        saved: where to go on; by default the algorithm starts.
        host_role: what a client host is and what it is made of, if not a `ClientHost`.

    """

    def __init__(
        self,
        fleet: Fleet,
        training_task: TrainingTask,
        samples: TrainingData,
        test: EvaluationSet,
        own: tuple[Any, Any],
        on_fault: Callable[[int, Fault], None] = lambda version, fault: None,
        saved: SavedState | None = None,
        host_role: tuple[WorkerClass, tuple[Any, ...]] | None = None,
    ) -> None:
        self._fleet, self._on_fault, self.ahead = fleet, on_fault, fleet.ahead
        known, data, evaluation_set, *central = (fleet.put(part) for part in (training_task, samples, test, *own))
        self._constants = (known, data, evaluation_set, *central)  # an actor that restarts is given them again
        self._keeps = bool(training_task.algorithm.keeps)
        self._states = ClientStates()
        role, made_of = host_role or (CLIENT_HOST, (known, data, fleet.device))
        self._hosts = Hosts(fleet, role, made_of, self._states if self._keeps else None)
        device = "cuda" if fleet.server_gpus else "cpu"
        self.server = fleet.start(SERVER, known, *central, device, gpus=fleet.server_gpus)
        self.evaluator = fleet.start(EVALUATOR, known, evaluation_set)
        self._centre = training_task.algorithm.centre
        self.central: list[Actor] = []  # the central learner, if the algorithm has one
        if self._centre in ("before", "beside"):
            device = "cuda" if fleet.central_gpus else "cpu"
            self.central = [fleet.start(CENTRAL_HOST, known, *central, device, gpus=fleet.central_gpus)]
        self._broadcast: dict[int, Handle] = {}  # what clients are sent, where that is more than the public state
        self._public: dict[int, Handle] = {}
        self._private: dict[int, Handle] = {}
        self._flights: list[Flight] = []
        self._done = 0 if saved is None else saved.version
        self._audience: tuple[Any, Handle] = None, None
        self._at_once: int | None = None  # clients that a host may train at once, since one ran out of memory
        if saved is None:
            self._public[0], self._private[0] = fleet.call(self.server, "start", returns=2)
        else:
            self._continue(saved, training_task.algorithm.sends)

    def _continue(self, saved: SavedState, sends: Collection[str]) -> None:
        """Put a saved state on the fleet, as if its rounds had just been finished."""
        put, state = self._fleet.put, saved.state
        self._public[saved.version] = put({name: value for name, value in state.items() if name in sends})
        self._private[saved.version] = put({name: value for name, value in state.items() if name not in sends})
        for version, sent in saved.older.items():
            self._public[version] = put(sent)
        for client, vectors in saved.kept:
            self._states.restore(client, put(vectors))

    @property
    def hosts(self) -> list[Actor]:
        """The client hosts that there are now."""
        return self._hosts.actors

    def loads(self, task: RoundTask) -> list[int]:
        """Return the local steps of a task that each host is given."""
        return self._hosts.loads(task.chunks)

    def submit(self, task: RoundTask) -> None:
        """Hand out a task; returns before it is done."""
        self._hosts.grow()
        flight = Flight(task)
        self._flights.append(flight)
        self._launch(flight)

    def finish(self) -> Outcomes:
        """Wait for the oldest task in flight and adopt what it left. Raises FleetError if it cannot be done."""
        outcomes = self.outcomes()
        self.adopt()
        return outcomes

    def outcomes(self) -> Outcomes:
        """Wait for the oldest task in flight, which stays there. Raises FleetError if it cannot be done."""
        flight = self._flights[0]
        while True:
            try:
                said = self._fleet.get(flight.said)
                evaluated = None if flight.evaluated is None else self._fleet.get(flight.evaluated)
                apart = None if flight.dissimilarity is None else self._fleet.get(flight.dissimilarity)
                break
            except Fault as fault:
                self._again(flight, fault)
        version = flight.task.facts.version
        learned = (said["loss"], said["bad"], said["busy"])
        return Outcomes(
            version, *learned, evaluated, apart, said["sound"], said["losses"], said["narrow"], said["moved"]
        )

    def evaluate(self, version: int) -> dict[str, float]:
        """Return accuracy and loss of the model before round `version`, on the whole test set."""
        found: dict[str, float] = self._fleet.get(self._fleet.call(self.evaluator, "evaluate", self._public[version]))
        return found

    def amend(self, task: RoundTask) -> None:
        """Put `task` in the place of the oldest one in flight, and submit it and all later ones anew."""
        self._flights[0].task = task
        self._resubmit()

    def adopt(self) -> None:
        """Take the oldest task, which is done, out of flight: what it left is what a run would go on from."""
        task = self._flights.pop(0).task
        self._states.adopt(task.facts.version)
        self._states.forget(task.facts.departed)
        self._done = task.facts.version + 1
        self._forget(task.oldest)

    def state(self, version: int) -> dict[str, Any]:
        """Return the server's state before round `version` as named vectors."""
        public, private = self._fleet.get(self._public[version]), self._fleet.get(self._private[version])
        return {**public, **private}

    def snapshot(self) -> Snapshot:
        """Return handles of all that the tasks after those adopted can need."""
        sent = self._public | self._broadcast | {self._done: self._public[self._done]}
        public = {version: sent[version] for version in sorted(self._public) if version <= self._done}
        return Snapshot(self._done, public, self._private[self._done], self._states.items())

    def fetch(self, snapshot: Snapshot) -> SavedState:
        """Return what the handles of `snapshot` stand for, that of clients one by one. Raises Fault if it is lost."""
        get = self._fleet.get
        *older, (version, last) = snapshot.public.items()
        state = {**get(last), **get(snapshot.private)}
        kept = ((client, get(handle)) for client, handle in snapshot.kept)
        return SavedState(version, state, kept, {number: get(sent) for number, sent in older})

    def rewind(self, snapshot: Snapshot) -> None:
        """Go back, or on, to where `snapshot` was taken; what is in flight is forgotten."""
        self._flights.clear()
        self._public, self._private = dict(snapshot.public), {snapshot.version: snapshot.private}
        self._states, self._done = ClientStates(), snapshot.version
        for client, handle in snapshot.kept:
            self._states.restore(client, handle)

    def close(self) -> None:
        """Let go of all models. Whoever waits for the garbage collector to do it keeps memory and descriptors."""
        self._flights.clear()
        for states in (self._public, self._private, self._broadcast):
            states.clear()
        self._states, self._audience = ClientStates(), (None, None)

    def local_optimum(self, client: int, lr: float, rounds: int) -> dict[str, float]:
        """Return the client's loss at the newest finished model, and the least it reaches alone; see `local_optimum`.

        Raises FleetError if it cannot be had, from two hosts.
        """
        for tries in range(RAISED):
            host = self.hosts[tries % len(self.hosts)]
            asked = self._fleet.call(host, "local_optimum", self._public[self._done], client, lr, rounds, self._done)
            try:
                found: dict[str, float] = self._fleet.get(asked)
                return found
            except Fault as fault:
                self._on_fault(self._done, fault)
                said = str(fault)
                self._revive(self._done)
        raise FleetError(f"client {client} by itself, after round {self._done}: {RAISED} failures, last {said}")

    def kept(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield (client, named vectors) of what each client keeps after the last finished task, ascending."""
        for client, handle in self._states.items():
            yield client, self._fleet.get(handle)

    @property
    def in_flight(self) -> int:
        """Tasks submitted and not finished."""
        return len(self._flights)

    def _launch(self, flight: Flight) -> None:
        """Put a task on the actors: chunks on hosts, their sums to the server, its model to the evaluator."""
        task, fleet = flight.task, self._fleet
        version = task.facts.version
        state = self._public[version], self._private[version]
        found = self._central_work(task.facts, state)
        bases = [self._broadcast.get(base, self._public[base]) for base in task.bases]
        learned = self._hosts.learned(task.chunks, bases, flight.tries)
        gone, mixed = self._gone(task.facts.departed), bases[: len(task.facts.mixed)]
        results = (*mixed, *learned, *found, *gone)
        after = fleet.call(self.server, "aggregate", task.facts, *state, *results, returns=3)
        self._public[version + 1], self._private[version + 1], flight.said = after
        flight.evaluated = self._examine(task) if task.evaluate else None
        flight.dissimilarity = self._measure(task, flight.tries) if task.measured else None

    def _examine(self, task: RoundTask) -> Handle:
        """Have the model that a task leads to examined; who is to be examined for is sent when it changes."""
        if task.audience is not self._audience[0]:
            self._audience = task.audience, self._fleet.put(task.audience)
        return self._fleet.call(self.evaluator, "evaluate", self._public[task.facts.version + 1], *self._audience[1:])

    def _central_work(self, facts: Round, state: tuple[Handle, Handle]) -> list[Handle]:
        """Put the central learner to work and return what it gives the server; nobody waits for it here.

        What it finds before the broadcast goes to the clients: their calls wait for it. What it finds beside them is
        computed while they are.
        """
        if self._centre == "before":
            self._broadcast[facts.version] = self._fleet.call(self.central[0], "broadcast", facts, *state)
        return [self._fleet.call(self.central[0], "contribute", facts, *state)] if self._centre == "beside" else []

    def _gone(self, departed: Sequence[int]) -> list[Handle]:
        """Return what clients that departed had kept, as far as they had."""
        handles = [self._states.of(client) for client in departed] if self._keeps else []
        return [handle for handle in handles if handle is not None]

    def _measure(self, task: RoundTask, tries: int) -> Handle:
        """Have hosts work out gradients at the model this round starts from, and the server compare them.

        Beside a central learner they are those of first batches, else those of whole data sets.
        """
        facts, public, call = task.facts, self._public[task.facts.version], self._fleet.call
        places = spread([len(group) for group in task.measured], len(self.hosts), tries)
        groups = list(zip(places, task.measured, strict=True))
        if not self.central:
            gradient_sums = [call(self.hosts[place], "gradient_sum", group, public) for place, group in groups]
            return call(self.server, "dissimilarity", public, *gradient_sums)
        gradient_sums = [
            call(self.hosts[place], "first_gradient_sum", group, facts.version, public) for place, group in groups
        ]
        own = call(self.central[0], "gradient_sum", facts, public)
        return call(self.server, "mixed_dissimilarity", own, *gradient_sums)

    def _again(self, flight: Flight, fault: Fault) -> None:
        """Note a fault and submit everything from this task on once more, on other hosts."""
        version = flight.task.facts.version
        self._on_fault(version, fault)
        if hopeless := flight.count(fault):
            raise FleetError(hopeless)
        if fault.died:
            self._revive(version)
        if fault.cause == "OutOfMemoryError":  # Ray has ended a host before the machine would have
            self._narrow(flight.task)
        if version == 0:
            self._public[0], self._private[0] = self._fleet.call(self.server, "start", returns=2)
        self._resubmit()

    def _narrow(self, task: RoundTask) -> None:
        """Have hosts train half as many clients at once as they did."""
        now = self._at_once or max((len(chunk.clients) for chunk in task.chunks), default=1)
        self._at_once = max(1, now // 2)

    def _resubmit(self) -> None:
        if self._at_once is not None:  # hosts that have restarted do not know
            for host in self.hosts:
                self._fleet.call(host, "limit", self._at_once)
        self._states.drop()
        for flight in self._flights:
            self._launch(flight)

    def _revive(self, version: int) -> None:
        """Wait for all actors after one has died. Raises FleetError if one does not come back that is needed."""
        try:
            died = self._hosts.revive()
            died += sum(map(self._fleet.revive, (*self.central, self.server, self.evaluator)))
        except Fault as fault:
            raise FleetError(str(fault)) from None
        for _ in range(died - 1):  # one of them has been told of
            self._on_fault(version, Fault("ActorDiedError", "it died at about the same time as another one", died=True))

    def _forget(self, oldest: int) -> None:
        """Let go of models that no later task starts from."""
        kept = min(oldest, self._flights[0].task.facts.version if self._flights else oldest)
        for states in (self._public, self._private, self._broadcast):
            for version in [v for v in states if v < kept]:
                del states[version]

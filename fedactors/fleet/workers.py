"""The workers of a fleet: client host, server and central learner, as plain classes; see `evaluator` for the last one.

None of them keeps anything between calls that was not given to its constructor. The server's state is an argument and
a result, so when an actor dies nothing is lost but its work in flight.
"""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any, TypeAlias

import numpy as np
import torch

from fedactors.bits import stay_in_one_thread
from fedactors.data.base import LabelledSamples
from fedactors.fleet import freed_memory
from fedactors.fleet.base import ChunkError, UserCallError
from fedactors.fleet.chunk_results import folded, parted, result_of
from fedactors.fleet.crashing_clients import crashing_client
from fedactors.fleet.failing_clients import failing_clients, this_process
from fedactors.fleet.messages import AggregationReport, Contribution
from fedactors.fleet.profiling import Span, Spans, noted
from fedactors.fleet.round_results import by_kind, report_of
from fedactors.in_place import unchanged
from fedactors.learning.algorithm import Algorithm, Round
from fedactors.learning.buffers import BUFFERS, with_buffers
from fedactors.learning.central_learner import CentralLearner
from fedactors.learning.chunks import joined
from fedactors.learning.combining import combined
from fedactors.learning.dissimilarity import GradientSum, dissimilarity, mixed_dissimilarity
from fedactors.learning.local_optimum import local_optimum
from fedactors.learning.mixing import mixed
from fedactors.learning.personal_parts import unmoved
from fedactors.learning.reduction import append_or_add
from fedactors.learning.row_vectors import as_tensors, own_tensors
from fedactors.learning.server_rate import in_round
from fedactors.learning.summing import finite
from fedactors.learning.traffic.downlink import first_state, next_state
from fedactors.learning.traffic.uplink import received
from fedactors.learning.trainer import Trainer
from fedactors.learning.training_task import Chunk, ChunkResult, TrainingData, TrainingTask, Vectors
from fedactors.models.network import initial
from fedactors.own_code.user_errors import told

State: TypeAlias = dict[str, torch.Tensor]


class Worker:
    """What all workers have in common."""

    def __init__(self, device: str) -> None:
        if device == "cuda" and not torch.cuda.is_available():
            raise RuntimeError("this worker needs a GPU, and torch finds none in the process that Ray gave it to")
        self.device = device
        self.spans = Spans()
        # with two threads, bits depend on the machine, and a busy neighbour ruins the speed of both
        torch.set_num_threads(1)
        stay_in_one_thread()
        freed_memory.keep()
        # arrays from the object store are read-only views of shared memory, and no worker writes to them
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")

    def worked(self) -> list[Span]:
        """Return when this worker worked since the last call of this method."""
        return self.spans.take()

    def about(self) -> dict[str, object]:
        """Return where this actor runs."""
        return {
            "role": type(self).__name__,
            "pid": os.getpid(),
            "host": os.uname().nodename,
            "device": self.device,
        }


class ClientHost(Worker):
    """Trains clients."""

    def __init__(self, task: TrainingTask, samples: TrainingData, device: str = "cpu") -> None:
        super().__init__(device)
        self._task = task
        self._samples = samples
        self._trainer = Trainer(task, samples, device)
        self._keeps = task.keeps_state

    def learn(self, chunks: Sequence[Chunk], *given: Vectors | None) -> list[ChunkResult] | tuple[Any, ...]:
        """Return what the chunks learned, in their order, neighbours added up as in `reduction`.

        `given` are the models that chunks start from and, if the algorithm has clients keep something, what each client
        of each chunk kept, None at its first trip. Then a tuple is returned: the results, and what each client keeps
        now. Raises ChunkError, with clients and traceback, if a chunk raises.
        """
        first_kept = len(given) - self._kept_by(chunks)
        sent = [model for model in given[:first_kept] if model is not None]
        kept = list(given[first_kept:])
        learned: list[ChunkResult] = []
        groups = self._trainer.groups(chunks)
        later = [group[0] for group in groups[1:]] if self.device == "cuda" else ()
        for group, following in zip_longest(groups, later):
            count = self._kept_by(group)
            for result in self._together(group, sent, kept[:count], following):
                append_or_add(learned, result)
            del kept[:count]
        return parted(learned) if self._keeps else learned

    def crashing_client(self, chunk: Chunk, seconds: float, *given: Vectors | None) -> str:
        """Return which client ends the process that trains it, and how; empty if none does in so long; see `learn`."""
        first_kept = len(given) - self._kept_by([chunk])
        sent = [one for one in given[:first_kept] if one]
        return crashing_client(self._trainer, chunk, sent, given[first_kept:], seconds)

    def _kept_by(self, chunks: Sequence[Chunk]) -> int:
        """Return the number of clients of `chunks` that keep something."""
        return sum(len(chunk.clients) for chunk in chunks) if self._keeps else 0

    def prepare(self, chunks: Sequence[Chunk]) -> None:
        """Prepare `chunks`, which this host learns next, as far as that needs no model."""
        self._trainer.prepare(chunks)

    def fold(self, own: int, *results: list[ChunkResult]) -> list[ChunkResult]:
        """Return the sums of `own` results, which are this host's, and of those that another host handed to it."""
        return folded(results[:own], results[own:])

    def gradient_sum(self, clients: Sequence[int], public: Vectors) -> GradientSum:
        """Return sums over `clients` of the gradients of their mean losses at the model in `public`."""
        return self._trainer.gradients.over_all(clients, public)

    def first_gradient_sum(self, clients: Sequence[int], version: int, public: Vectors) -> GradientSum:
        """Return sums over `clients` of the gradients of their first batches in round `version`, at `public`."""
        return self._trainer.gradients.of_first_batches(clients, version, public)

    def local_optimum(self, public: Vectors, client: int, lr: float, rounds: int, version: int) -> dict[str, float]:
        """Return the client's loss at the model in `public`, and the least it reaches alone; see `local_optimum`."""
        return local_optimum(self._task, self._samples, client, public["x"], lr, rounds, version)

    def limit(self, clients: int) -> None:
        """Train at most so many clients at once from now on."""
        self._trainer.limit(clients)

    def _together(
        self, chunks: Sequence[Chunk], sent: Sequence[Vectors], kept: Sequence[Vectors | None], following: Chunk | None
    ) -> list[ChunkResult]:
        try:
            learned = self._trainer.learn_together(chunks, sent, kept, following)
            return [result_of(chunk, one) for chunk, one in zip(chunks, learned, strict=True)]
        except (Exception, SystemExit) as error:
            text = traceback.format_exc()
            lines = told(error)
            if isinstance(error, SystemExit) and not lines:
                raise  # of Ray, which ends an actor so
            chunk = joined(chunks)
            where = f"{failing_clients(self._trainer, chunk, sent, kept)}, {this_process()}"
            if lines:
                raise UserCallError(f"{lines}\n{where}") from None
            raise ChunkError(f"round {chunk.version + 1}, version {chunk.version}, {where}:\n{text}") from None


class CentralHost(Worker):
    """The central learner: it has data and a loss of its own, and works before the clients or beside them."""

    def __init__(self, task: TrainingTask, own: LabelledSamples, device: str = "cpu") -> None:
        super().__init__(device)
        self._algorithm = task.algorithm
        self._central = CentralLearner(task.central_model, task.seed, own, device)

    def contribute(self, facts: Round, public: Vectors, private: Vectors) -> Contribution:
        """Return what the algorithm has the central learner compute in a round."""
        algorithm, state = in_round(self._algorithm, facts), own_tensors(public | private)
        with unchanged(f"algorithm {algorithm.name}", state=state):
            found = algorithm.contribute(state, facts, self._central)
        return Contribution({name: np.ascontiguousarray(value.cpu().numpy()) for name, value in found.items()})

    def broadcast(self, facts: Round, public: Vectors, private: Vectors) -> Vectors:
        """Return what clients are sent: the public state, and the contribution of the central learner."""
        return public | self.contribute(facts, public, private).vectors

    def gradient_sum(self, facts: Round, public: Vectors) -> np.ndarray:
        """Return the gradient of the central loss on the first batch of a round, at the model in `public`."""
        x = torch.from_numpy(public["x"])
        work = self._algorithm.central_work(facts.setting)
        found: np.ndarray = self._central.first_batch_gradient(x, work, facts.version).numpy()
        return found


class ServerWorker(Worker):
    """Computes the next model from the clients' sums, and learns from samples of its `own` if the algorithm does.

    Its state has two parts: the public one is sent to clients, the private one is not.
    """

    def __init__(self, task: TrainingTask, own: LabelledSamples, device: str = "cpu") -> None:
        super().__init__(device)
        self._task = task
        around = partial(noted, self, "central learning")
        self._central = CentralLearner(task.model, task.seed, own, device, around)

    def start(self) -> tuple[Vectors, Vectors]:
        """Return the state before the first round, after pretraining if there is any."""
        x = torch.from_numpy(initial(self._task.model, self._task.seed))
        if before := self._task.pretraining:
            x = self._central.pretrain(x, before.lr, before.work)
        start = self._task.algorithm.start(x) | as_tensors(self._task.given)
        return self._parted(first_state(self._task, start))

    def aggregate(
        self, facts: Round, public: Vectors, private: Vectors, *results: list[ChunkResult] | Contribution | Vectors
    ) -> tuple[Vectors, Vectors, AggregationReport]:
        """Return the next state and a report of the round; sums are added in the order of the chunks.

        `results` are the models that this one is mixed with, if any, then what hosts learned, the contribution of the
        central learner, and what departed clients had kept. After bad updates (NaN or Inf) the state does not change.
        """
        given = by_kind(results, len(facts.mixed))
        learned = given.learned()
        report = report_of(learned, given.chunks)
        if report.bad:
            return public, private, report
        state = own_tensors(public | private)
        model, before = self._task.model, state["x"]
        state["x"] = mixed(before, given.older, facts.mixed, exact=facts.exact)
        for contribution in given.contributions:
            state |= as_tensors(contribution.vectors)
        kept_by_departed = [own_tensors(kept) for kept in given.kept_by_departed]
        sums = as_tensors(learned.sums)
        if (rule := self._task.aggregation) is not None:
            sums = combined(rule, sums, facts, model.parameters - model.buffer_values)
        buffers = sums.pop(BUFFERS, None)
        moved = self._next(state, received(self._task, state, sums, facts), facts, kept_by_departed)
        own = state["x"] if facts.exact else before  # of edges and cloud each has a model that it goes on from
        averaged = with_buffers(model, own, moved["x"], buffers, facts)
        moved["x"] = unmoved(self._task.personal, before, averaged)
        after = self._parted(next_state(self._task, moved, state, sums, facts))
        return *after, report._replace(sound=all(map(finite, after)))

    def _next(
        self, state: State, sums: State, facts: Round, kept_by_departed: Sequence[Mapping[str, torch.Tensor]]
    ) -> State:
        """Return the state after a round with the `sums` over its clients, which may be empty."""
        algorithm = in_round(self._task.algorithm, facts)
        departed = {f"departed_states[{place}]": kept for place, kept in enumerate(kept_by_departed)}
        with unchanged(f"algorithm {algorithm.name}", state=state, **departed):
            now, facts = _with_arrivals(algorithm, state, facts)
            if sums:
                after = algorithm.aggregate(now, sums, facts, self._central)
            else:
                after = algorithm.idle(now, facts, self._central)
            if algorithm.keeps and facts.departed:
                after = algorithm.members_changed(after, facts, kept_by_departed)
        return after

    def dissimilarity(self, public: Vectors, *gradient_sums: GradientSum) -> dict[str, float]:
        """Return xi^2 and G^2 at the model in `public`, from the sums over all clients; see `dissimilarity`."""
        own = self._central.gradient(torch.from_numpy(public["x"])).numpy()
        return dissimilarity(gradient_sums, own)

    def mixed_dissimilarity(self, central: np.ndarray, *gradient_sums: GradientSum) -> dict[str, float]:
        """Return G~^2 and B~^2 from the sums over the cohort and the central gradient; see `mixed_dissimilarity`."""
        algorithm = self._task.algorithm
        return mixed_dissimilarity(gradient_sums, central, (algorithm.loss_weight, algorithm.central_share))

    def _parted(self, state: dict[str, torch.Tensor]) -> tuple[Vectors, Vectors]:
        sends = self._task.sends
        arrays = {name: np.ascontiguousarray(value.cpu().numpy()) for name, value in state.items()}
        return {k: v for k, v in arrays.items() if k in sends}, {k: v for k, v in arrays.items() if k not in sends}


def _with_arrivals(algorithm: Algorithm, state: State, facts: Round) -> tuple[State, Round]:
    """Return state and facts of a round in which those that arrived are members before updates are added.

    Some of these updates may be theirs. Those that depart are members until the end of the round.
    """
    if not algorithm.keeps or not facts.arrived:
        return state, facts
    grown = algorithm.members_changed(state, facts._replace(departed=()), ())
    return grown, facts._replace(members=facts.members + len(facts.arrived), arrived=())

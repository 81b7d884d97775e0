"""The actors as plain classes: what each one holds, and what it can be asked for. Numbers in, numbers out.

None of them keeps anything between calls that was not given to its constructor. The server's state is an argument and
a result, so killing an actor loses work in flight and nothing else.
"""

from __future__ import annotations

import bisect
import os
import traceback
import warnings
from collections.abc import Sequence
from functools import partial
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
import torch

from fedactors.data.evaluation_set import EvaluationSet
from fedactors.fleet.base import CallError
from fedactors.fleet.profiling import Span, Spans, noted
from fedactors.learning.algorithm import Round
from fedactors.learning.buffers import BUFFERS, with_buffers
from fedactors.learning.central_learner import CentralLearner
from fedactors.learning.chunks import joined
from fedactors.learning.dissimilarity import GradientSum, dissimilarity, mixed_dissimilarity
from fedactors.learning.evaluation import ModelEvaluator
from fedactors.learning.local_optimum import local_optimum
from fedactors.learning.reduction import HANDED_ON, added, plus, size
from fedactors.learning.summing import finite
from fedactors.learning.trainer import Trainer
from fedactors.learning.training_task import Chunk, ChunkResult, TrainingData, TrainingTask, Vectors
from fedactors.models.network import initial

NOTHING_LEARNED = ChunkResult(0, {}, 0.0, 0.0)


class ChunkError(CallError):
    """A chunk raised; the message says which clients, too."""


class Worker:
    """What every actor can say about itself."""

    def __init__(self, device: str) -> None:
        if device == "cuda" and not torch.cuda.is_available():
            raise RuntimeError("a GPU was asked for, and torch finds none in the process that Ray gave it to")
        self.device = device
        self.spans = Spans()
        # with two threads, bits depend on the machine, and a busy neighbour ruins the speed of both
        torch.set_num_threads(1)
        # arrays from the object store are read-only views of shared memory, and nobody here writes to them
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")

    def worked(self) -> list[Span]:
        """Return when this actor worked since it was last asked."""
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
        self._trainer, self._keeps = Trainer(task, samples, device), bool(task.algorithm.keeps)
        self._task, self._samples = task, samples

    def learn(self, chunks: Sequence[Chunk], *given: Vectors | None) -> list[ChunkResult] | tuple[Any, ...]:
        """Return what the chunks learned, in their order, those of one branch together.

        `given` are the models that chunks start from and, if the algorithm has clients keep something, what each client
        of each chunk kept, None at its first trip. Then what each keeps now is returned besides, one after the other.
        Raises ChunkError, with clients and traceback, if anything goes wrong.
        """
        clients = sum(len(chunk.clients) for chunk in chunks) if self._keeps else 0
        sent = [one for one in given[: len(given) - clients] if one is not None]
        kept, learned = list(given[len(given) - clients :]), list[ChunkResult]()
        groups = self._trainer.groups(chunks)
        later = [group[0] for group in groups[1:]] if self.device == "cuda" else ()
        for group, following in zip_longest(groups, later):
            count = sum(len(chunk.clients) for chunk in group) if self._keeps else 0
            for one in self._together(group, sent, kept[:count], following):
                together = learned and learned[-1].branch == one.branch
                learned.append(plus(learned.pop(), one) if together else one)
            del kept[:count]
        if not self._keeps:
            return learned
        return [one._replace(kept=()) for one in learned], *(renewed for one in learned for renewed in one.kept)

    def prepare(self, chunks: Sequence[Chunk]) -> None:
        """Do for `chunks`, which this host is to learn next, what can be done before the models are there."""
        self._trainer.prepare(chunks)

    def fold(self, *results: list[ChunkResult]) -> list[ChunkResult]:
        """Return the sum of what this host learned, of whole branches, and of what the host before it hands over."""
        parts = [one for result in results for one in result]
        handed = [part for part in parts if part.branch == HANDED_ON]
        total = added(parts)
        return [] if total is None else [total._replace(moved=total.moved + size(handed))]

    def gradient_sum(self, clients: Sequence[int], public: Vectors) -> GradientSum:
        """Return sums over `clients` of the gradients of their mean losses at the model in `public`."""
        return self._trainer.gradient_sum(clients, public)

    def first_gradient_sum(self, clients: Sequence[int], version: int, public: Vectors) -> GradientSum:
        """Return sums over `clients` of the gradients of their first batches in round `version`, at `public`."""
        return self._trainer.first_gradient_sum(clients, version, public)

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
            return [one._replace(branch=chunk.branch) for one, chunk in zip(learned, chunks, strict=True)]
        except Exception:
            chunk = joined(chunks)
            said, who = traceback.format_exc(), self._culprit(chunk, sent, kept)
            where = f"host {os.uname().nodename}, process {os.getpid()}"
            raise ChunkError(f"round {chunk.version + 1}, version {chunk.version}, {who}, {where}:\n{said}") from None

    def _culprit(self, chunk: Chunk, sent: Sequence[Vectors], kept: Sequence[Vectors | None]) -> str:
        """Name the first client of a chunk that raises by itself, and its local step; all clients if none does."""
        for place, client in enumerate(chunk.clients):
            mine = kept[place : place + 1]
            if self._raises(chunk.only(place), sent, mine):
                steps = range(1, chunk.steps[place] + 1)
                step = bisect.bisect_left(steps, True, key=lambda n: self._raises(chunk.only(place, n), sent, mine))
                return f"client {client} in local step {step + 1} of {chunk.steps[place]}"
        return f"clients {', '.join(map(str, chunk.clients))}"

    def _raises(self, chunk: Chunk, sent: Sequence[Vectors], kept: Sequence[Vectors | None]) -> bool:
        try:
            self._trainer.learn(chunk, sent, kept)
        except Exception:
            return True
        return False


class Contribution(NamedTuple):
    """What the central learner worked out beside the clients of a round."""

    vectors: Vectors


class CentralHost(Worker):
    """The central learner: data and a loss of its own, and work beside the clients or before they are asked."""

    def __init__(self, task: TrainingTask, x: np.ndarray, y: np.ndarray, device: str = "cpu") -> None:
        super().__init__(device)
        self._algorithm = task.algorithm
        self._central = CentralLearner(task.central_model, task.seed, x, y, device)

    def contribute(self, facts: Round, public: Vectors, private: Vectors) -> Contribution:
        """Return what the algorithm has the central learner work out in a round."""
        found = self._algorithm.contribute(_tensors(public | private), facts, self._central)
        return Contribution({name: np.ascontiguousarray(value.cpu().numpy()) for name, value in found.items()})

    def broadcast(self, facts: Round, public: Vectors, private: Vectors) -> Vectors:
        """Return what clients are sent: the public state, and what the central learner worked out for it."""
        return public | self.contribute(facts, public, private).vectors

    def gradient_sum(self, facts: Round, public: Vectors) -> np.ndarray:
        """Return the gradient of the central loss on the first batch of a round, at the model in `public`."""
        x, work = torch.from_numpy(public["x"]), self._algorithm.central_work(facts.setting)
        found: np.ndarray = self._central.sample(x, work, facts.version).numpy()
        return found


class ServerWorker(Worker):
    """Turns sums into the next model, and learns from (x, y), data of its own, if the algorithm says so.

    State comes in two parts: what travels to clients, and what stays.
    """

    def __init__(self, task: TrainingTask, x: np.ndarray, y: np.ndarray, device: str = "cpu") -> None:
        super().__init__(device)
        self._task = task
        around = partial(noted, self, "central learning")
        self._central = CentralLearner(task.model, task.seed, x, y, device, around)

    def start(self) -> tuple[Vectors, Vectors]:
        """Return the state before the first round, after pretraining if there is any."""
        x = torch.from_numpy(initial(self._task.model, self._task.seed))
        if before := self._task.pretraining:
            x = self._central.pretrain(x, before.lr, before.work)
        return self._parted(self._task.algorithm.start(x))

    def aggregate(
        self, facts: Round, public: Vectors, private: Vectors, *results: list[ChunkResult] | Contribution | Vectors
    ) -> tuple[Vectors, Vectors, dict[str, object]]:
        """Return the next state and what is to be said of the round; sums are added in the order of the chunks.

        `results` are models that this one is mixed with, if any, then what hosts learned, what the central learner
        found, and what departed clients had kept. After bad updates (NaN or Inf) the state is left as it was.
        """
        older, results = results[: len(facts.mixed)], results[len(facts.mixed) :]
        parts = [one for result in results if isinstance(result, list) for one in result]
        learned = added(parts) or NOTHING_LEARNED
        found = [result.vectors for result in results if isinstance(result, Contribution)]
        gone = [_tensors(result) for result in results if isinstance(result, dict)]
        bad = tuple(sorted(learned.bad))
        said: dict[str, object] = {
            "loss": learned.loss,
            "bad": bad,
            "busy": learned.seconds,
            "moved": learned.moved + size(parts),
            "sound": True,
            "losses": learned.losses,
            "narrow": learned.narrow,
        }
        if bad:
            return public, private, said
        algorithm = self._task.algorithm
        state = _tensors(public | private)
        before = state["x"]
        state["x"] = _mixed(state["x"], older, facts.mixed)
        for vectors in found:
            state |= _tensors(vectors)
        sums = _tensors(learned.sums)
        buffers = sums.pop(BUFFERS, None)
        after = (
            algorithm.aggregate(state, sums, facts, self._central)
            if sums
            else algorithm.idle(state, facts, self._central)
        )
        after = {**after, "x": with_buffers(self._task.model, before, after["x"], buffers, facts)}
        if algorithm.keeps and (facts.arrived or facts.departed):
            after = algorithm.moved(after, facts, gone)
        parted = self._parted(after)
        said["sound"] = all(map(finite, parted))
        return *parted, said

    def dissimilarity(self, public: Vectors, *gradient_sums: GradientSum) -> dict[str, float]:
        """Return xi^2 and G^2 at the model in `public`, from the sums over all clients; see `dissimilarity`."""
        own = self._central.gradient(torch.from_numpy(public["x"])).numpy()
        return dissimilarity(gradient_sums, own)

    def mixed_dissimilarity(self, central: np.ndarray, *gradient_sums: GradientSum) -> dict[str, float]:
        """Return G~^2 and B~^2 from the sums over the cohort and the central gradient; see `mixed_dissimilarity`."""
        algorithm = self._task.algorithm
        return mixed_dissimilarity(gradient_sums, central, (algorithm.loss_weight, algorithm.central_share))

    def _parted(self, state: dict[str, torch.Tensor]) -> tuple[Vectors, Vectors]:
        sends = self._task.algorithm.sends
        arrays = {name: np.ascontiguousarray(value.cpu().numpy()) for name, value in state.items()}
        return {k: v for k, v in arrays.items() if k in sends}, {k: v for k, v in arrays.items() if k not in sends}


class Evaluator(Worker):
    """Examines models on the test set while the clients go on."""

    def __init__(self, task: TrainingTask, evaluation_set: EvaluationSet, device: str = "cpu") -> None:
        super().__init__(device)
        self._evaluator = ModelEvaluator(task.model, evaluation_set, device)
        self._holdout = task.holdout

    def evaluate(self, public: Vectors, audience: np.ndarray | None = None) -> dict[str, float]:
        """Return the measures of the model in `public`: on the test set, or what of it an audience holds out.

        `audience` is a mask, `(clients,)`; an audience that holds nothing learns nothing.
        """
        if audience is None or self._holdout is None:
            return self._evaluator.evaluate(public["x"])
        held = [self._holdout.of(client) for client in np.flatnonzero(audience).tolist()]
        return self._evaluator.evaluate(public["x"], np.concatenate([np.zeros(0, np.int64), *held]))


def _tensors(vectors: Vectors) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(value) for name, value in vectors.items()}


def _mixed(x: torch.Tensor, older: Sequence[Any], shares: Sequence[float]) -> torch.Tensor:
    """Return x drawn towards older models: x + sum_i share_i (x_i - x); x itself where they are x."""
    mixed = x
    for one, share in zip(older, shares, strict=True):
        mixed = mixed + share * (torch.from_numpy(one["x"]) - x)
    return mixed

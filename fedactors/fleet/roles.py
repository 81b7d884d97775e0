"""The actors as plain classes: what each one holds, and what it can be asked for. Numbers in, numbers out.

None of them keeps anything between calls that was not given to its constructor. The server's state is an argument and
a result, so killing an actor loses work in flight and nothing else.
"""

from __future__ import annotations

import os
import time
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from fedactors.learning.algorithm import Round
from fedactors.learning.central import CentralLearner
from fedactors.learning.dissimilarity import Slope, dissimilarity
from fedactors.learning.evaluation import Examiner
from fedactors.learning.lesson import Chunk, Learned, Lesson, Samples, Vectors
from fedactors.learning.network import initial
from fedactors.learning.trainer import Trainer


class ChunkError(Exception):
    """A chunk raised; the message says which clients, and carries the traceback of the worker."""


class Role:
    """What every actor can say about itself."""

    def __init__(self, device: str) -> None:
        self.device = device
        # with two threads, bits depend on the machine, and a busy neighbour ruins the speed of both
        torch.set_num_threads(1)
        # arrays from the object store are read-only views of shared memory, and nobody here writes to them
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")

    def about(self) -> dict[str, object]:
        """Return where this actor runs."""
        return {
            "role": type(self).__name__,
            "pid": os.getpid(),
            "host": os.uname().nodename,
            "device": self.device,
        }


class ClientHost(Role):
    """Trains clients."""

    def __init__(self, lesson: Lesson, samples: Samples, device: str = "cpu") -> None:
        super().__init__(device)
        self._trainer = Trainer(lesson, samples, device)

    def learn(self, chunk: Chunk, *sent: Vectors) -> tuple[Learned, float]:
        """Return what the chunk learned from the models `sent`, and the wall seconds it took.

        Raises ChunkError, with clients and traceback, if anything goes wrong.
        """
        return self._timed(chunk, sent, ())

    def continue_from(self, chunk: Chunk, *sent: Vectors | None) -> tuple[Any, ...]:
        """Learn with clients that keep something: the last arguments are what each kept, None at its first trip.

        Returns what `learn` returns, followed by what each client keeps now. Raises what `learn` raises.
        """
        models = len(sent) - len(chunk.clients)
        learned, busy = self._timed(chunk, [one for one in sent[:models] if one is not None], sent[models:])
        return (learned._replace(kept=()), busy), *learned.kept

    def slope(self, clients: Sequence[int], public: Vectors) -> Slope:
        """Return sums over `clients` of the gradients of their mean losses at the model in `public`."""
        return self._trainer.slope(clients, public)

    def _timed(self, chunk: Chunk, sent: Sequence[Vectors], kept: Sequence[Vectors | None]) -> tuple[Learned, float]:
        began = time.perf_counter()
        try:
            return self._trainer.learn(chunk, sent, kept), time.perf_counter() - began
        except Exception:
            clients = ", ".join(map(str, chunk.clients))
            raise ChunkError(
                f"round {chunk.version}, clients {clients}, process {os.getpid()}:\n{traceback.format_exc()}"
            ) from None


class Server(Role):
    """Turns sums into the next model, and learns from (x, y), data of its own, if the algorithm says so.

    State comes in two parts: what travels to clients, and what stays.
    """

    def __init__(self, lesson: Lesson, x: np.ndarray, y: np.ndarray, device: str = "cpu") -> None:
        super().__init__(device)
        self._lesson = lesson
        self._central = CentralLearner(lesson.model, lesson.seed, x, y, device)

    def start(self) -> tuple[Vectors, Vectors]:
        """Return the state before the first round, after pretraining if there is any."""
        x = torch.from_numpy(initial(self._lesson.model, self._lesson.seed))
        if before := self._lesson.pretraining:
            x = self._central.pretrain(x, before.lr, before.work)
        return self._parted(self._lesson.algorithm.start(x))

    def aggregate(
        self, facts: Round, public: Vectors, private: Vectors, *results: tuple[Learned, float] | Vectors
    ) -> tuple[Vectors, Vectors, dict[str, object]]:
        """Return the next state and what is to be said of the round; sums are added in the order of the chunks.

        `results` are what the chunks gave, followed by what departed clients had kept. After bad updates (NaN or Inf)
        the state is left as it was.
        """
        chunks = [result for result in results if isinstance(result, tuple)]
        gone = [_tensors(result) for result in results if not isinstance(result, tuple)]
        learned = [part for part, _ in chunks]
        bad = tuple(sorted(found for part in learned for found in part.bad))
        said: dict[str, object] = {
            "loss": sum(part.loss for part in learned),
            "bad": bad,
            "busy": sum(busy for _, busy in chunks),
        }
        if bad:
            return public, private, said
        algorithm, state = self._lesson.algorithm, _tensors(public | private)
        sums = _added([part.sums for part in learned])
        after = (
            algorithm.aggregate(state, sums, facts, self._central)
            if sums
            else algorithm.idle(state, facts, self._central)
        )
        if algorithm.keeps and (facts.arrived or facts.departed):
            after = algorithm.moved(after, facts, gone)
        return *self._parted(after), said

    def dissimilarity(self, public: Vectors, *slopes: Slope) -> dict[str, float]:
        """Return xi^2 and G^2 at the model in `public`, from the sums over all clients; see `dissimilarity`."""
        own = self._central.gradient(torch.from_numpy(public["x"])).numpy()
        return dissimilarity(slopes, own)

    def _parted(self, state: dict[str, torch.Tensor]) -> tuple[Vectors, Vectors]:
        sends = self._lesson.algorithm.sends
        arrays = {name: np.ascontiguousarray(value.cpu().numpy()) for name, value in state.items()}
        return {k: v for k, v in arrays.items() if k in sends}, {k: v for k, v in arrays.items() if k not in sends}


class Evaluator(Role):
    """Examines models on the test set while the clients go on."""

    def __init__(self, lesson: Lesson, x: np.ndarray, y: np.ndarray, device: str = "cpu") -> None:
        super().__init__(device)
        self._examiner = Examiner(lesson.model, x, y, device)

    def examine(self, public: Vectors) -> dict[str, float]:
        """Return accuracy and loss of the model in `public`."""
        return self._examiner.examine(public["x"])


def _tensors(vectors: Vectors) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(value) for name, value in vectors.items()}


def _added(parts: list[Vectors]) -> dict[str, torch.Tensor]:
    total: dict[str, torch.Tensor] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total[name] + torch.from_numpy(value) if name in total else torch.from_numpy(value)
    return total

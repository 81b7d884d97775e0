"""The actors as plain classes: what each one holds, and what it can be asked for. Numbers in, numbers out.

None of them keeps anything between calls that was not given to its constructor. The server's state is an argument and
a result, so killing an actor loses work in flight and nothing else.
"""

from __future__ import annotations

import os
import time
import traceback
import warnings

import numpy as np
import torch

from fedactors.learning.algorithm import Round
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
        began = time.perf_counter()
        try:
            return self._trainer.learn(chunk, sent), time.perf_counter() - began
        except Exception:
            clients = ", ".join(map(str, chunk.clients))
            raise ChunkError(
                f"round {chunk.version}, clients {clients}, process {os.getpid()}:\n{traceback.format_exc()}"
            ) from None


class Server(Role):
    """Turns sums into the next model. State comes in two parts: what travels to clients, and what stays."""

    def __init__(self, lesson: Lesson, device: str = "cpu") -> None:
        super().__init__(device)
        self._lesson = lesson

    def start(self) -> tuple[Vectors, Vectors]:
        """Return the state before the first round."""
        x = torch.from_numpy(initial(self._lesson.model, self._lesson.seed))
        return self._parted(self._lesson.algorithm.start(x))

    def aggregate(
        self, facts: Round, public: Vectors, private: Vectors, *results: tuple[Learned, float]
    ) -> tuple[Vectors, Vectors, dict[str, object]]:
        """Return the next state and what is to be said of the round; sums are added in the order of the chunks.

        After bad updates (NaN or Inf) the state is left as it was.
        """
        learned = [result[0] for result in results]
        bad = tuple(sorted(found for part in learned for found in part.bad))
        said: dict[str, object] = {
            "loss": sum(part.loss for part in learned),
            "bad": bad,
            "busy": sum(result[1] for result in results),
        }
        if bad:
            return public, private, said
        algorithm = self._lesson.algorithm
        state = {name: torch.from_numpy(value) for name, value in (public | private).items()}
        sums = _added([part.sums for part in learned])
        after = algorithm.aggregate(state, sums, facts) if sums else algorithm.idle(state, facts)
        return *self._parted(after), said

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


def _added(parts: list[Vectors]) -> dict[str, torch.Tensor]:
    total: dict[str, torch.Tensor] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total[name] + torch.from_numpy(value) if name in total else torch.from_numpy(value)
    return total

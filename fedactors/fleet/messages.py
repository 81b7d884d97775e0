"""What goes into a pipeline and what comes out of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedactors.fleet.base import Fault, Handle
from fedactors.learning.algorithm import Round
from fedactors.learning.training_task import Chunk, ClientLoss, MemoryLimit, Vectors

RAISED = 2  # tries for work that raises: on two hosts
_DIED = 5  # tries for work whose actor dies: the machine may be in trouble, not the work
_GONE = 2  # tries for work whose beginning is lost: once that may have been computed by a round that is done again
_LOST = ("ObjectLostError", "OwnerDiedError", "ObjectFetchTimedOutError", "ObjectReconstructionFailedError")


class RoundTask(NamedTuple):
    """One aggregation to be executed."""

    facts: Round
    bases: tuple[int, ...]  # versions that the chunks start from, in the order of `Chunk.bases`
    chunks: tuple[Chunk, ...]
    evaluate: bool
    oldest: int  # oldest version that later tasks may still start from
    measured: tuple[tuple[int, ...], ...] = ()  # groups of clients whose gradients are wanted, for dissimilarity
    audience: NDArray[np.bool_] | None = None  # (clients,): whose hold-out data are the test set; None: all of it


class Outcomes(NamedTuple):
    """What came of a task."""

    version: int
    loss: float  # sum over local steps
    bad: tuple[tuple[int, int], ...]  # (client, local step) of updates with NaN or Inf
    busy: float  # wall seconds of all hosts
    evaluated: dict[str, float] | None
    dissimilarity: dict[str, float] | None = None
    sound: bool = True  # whether the model after it is finite
    losses: tuple[ClientLoss, ...] = ()  # ascending by client, if the lesson has hosts tell them
    narrow: MemoryLimit | None = None  # of the host that lacked most memory
    moved: int = 0  # bytes of sums that hosts handed to each other and to the server


class SavedState(NamedTuple):
    """What a run goes on from: the server's state before round `version`, and what each client keeps.

    `older` holds what was sent in earlier versions, as far as later tasks still start from them.
    """

    version: int
    state: Vectors
    kept: Iterable[tuple[int, Vectors]] = ()
    older: Mapping[int, Vectors] = MappingProxyType({})


class Snapshot(NamedTuple):
    """Handles of what is in `SavedState`: taken at once, fetched whenever there is time."""

    version: int
    public: Mapping[int, Handle]  # by version, this one the last
    private: Handle
    kept: Sequence[tuple[int, Handle]]


@dataclass
class Flight:
    """A task on its way: handles of what will be said of it, and what went wrong with it."""

    task: RoundTask
    said: Handle = None
    evaluated: Handle = None
    dissimilarity: Handle = None
    raised: int = 0
    died: int = 0
    lost: int = 0  # how often a result was gone that this task starts from

    def count(self, fault: Fault) -> str:
        """Count what went wrong; return why the run has to end, nothing if the task is worth another try."""
        self.died, self.raised = self.died + fault.died, self.raised + (not fault.died)
        self.lost += fault.cause in _LOST
        failed = f"round {self.task.facts.version + 1}"
        if self.lost >= _GONE:
            return (
                f"{failed}: a machine was lost with what only it held, models or what clients keep"
                f" (accepted: go on from the last checkpoint); {fault}"
            )
        if self.raised >= RAISED or self.died >= _DIED:
            return f"{failed} failed {self.tries} times, last with {fault}"
        return ""

    @property
    def tries(self) -> int:
        """Return how often it failed."""
        return self.raised + self.died

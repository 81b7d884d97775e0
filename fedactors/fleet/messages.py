"""The input and the results of a pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedactors.fleet.base import Handle
from fedactors.learning.algorithm import Round
from fedactors.learning.training_task import BadUpdates, Chunk, ClientLoss, ClientMeasures, MemoryLimit, Vectors


class RoundTask(NamedTuple):
    """One aggregation to be executed."""

    facts: Round
    bases: tuple[int, ...]  # versions that the chunks start from, in the order of `Chunk.model_indices`
    chunks: tuple[Chunk, ...]
    evaluate: bool
    oldest: int  # oldest version that later tasks may still start from
    measured: tuple[tuple[int, ...], ...] = ()  # groups of clients whose gradients are wanted, for dissimilarity
    evaluated_clients: tuple[int, ...] = ()  # one by one, ascending
    audience: NDArray[np.bool_] | None = None  # (clients,): whose hold-out data are the test set; None: all of it


class Contribution(NamedTuple):
    """What the central learner computed beside the clients of a round."""

    vectors: Vectors


class AggregationReport(NamedTuple):
    """What the server reports of a round besides the next state."""

    loss: float  # sum over local steps
    bad: BadUpdates
    moved: int  # bytes of sums that hosts handed to each other and to the server
    sound: bool  # whether the next model is finite
    losses: tuple[ClientLoss, ...]  # ascending by client, if the task has hosts report them
    memory_limit: MemoryLimit | None  # of the host that lacked most memory


class Outcomes(NamedTuple):
    """The results of a task."""

    version: int
    loss: float  # sum over local steps
    bad: BadUpdates
    evaluated: dict[str, float] | None
    dissimilarity: dict[str, float] | None = None
    sound: bool = True  # whether the model after it is finite
    losses: tuple[ClientLoss, ...] = ()  # ascending by client, if the task has hosts report them
    memory_limit: MemoryLimit | None = None  # of the host that lacked most memory
    moved: int = 0  # bytes of sums that hosts handed to each other and to the server
    client_measures: tuple[ClientMeasures, ...] | None = None  # of clients, if some were to be evaluated


class SavedState(NamedTuple):
    """Where a run continues: the server's state before round `version`, and what each client keeps.

    `older` holds what clients were sent in earlier versions from which later tasks still start.
    """

    version: int
    state: Vectors
    kept: Iterable[tuple[int, Vectors]] = ()
    older: Mapping[int, Vectors] = MappingProxyType({})


class Snapshot(NamedTuple):
    """Handles of a `SavedState`: taken at once, fetched when there is time."""

    version: int
    public: Mapping[int, Handle[Vectors]]  # by version, this one the last
    private: Handle[Vectors]
    kept: Sequence[tuple[int, Handle[Vectors]]]

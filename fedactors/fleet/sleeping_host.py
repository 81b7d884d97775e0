"""A client host whose steps take time and compute nothing, to measure what the orchestration alone costs.

It returns what `ClientHost` does, with sums of the right names and sizes, all zero. It needs no torch, so that many fit
on a small machine.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from fedactors.fleet.chunk_results import folded, result_of
from fedactors.fleet.profiling import Span, Spans
from fedactors.learning.reduction import append_or_add
from fedactors.learning.training_task import Chunk, ChunkResult


class SleepingHost:
    """Sleeps where a client host trains."""

    def __init__(self, vectors: dict[str, int], step: float) -> None:
        self._vectors = vectors  # lengths of what is sent up, by name
        self._step = step  # seconds of a client's local step
        self._never = threading.Event()
        self.spans = Spans()

    def worked(self) -> list[Span]:
        """Return when this host worked since the last call of this method."""
        return self.spans.take()

    def about(self) -> dict[str, object]:
        """Return where this host runs."""
        return {"role": "SleepingHost", "pid": os.getpid(), "host": os.uname().nodename, "device": "cpu"}

    def prepare(self, chunks: Sequence[Chunk]) -> None:
        """Do nothing."""

    def learn(self, chunks: Sequence[Chunk], *given: Any) -> list[ChunkResult]:
        """Return sums of zeros, after as long as the chunks' steps take."""
        learned: list[ChunkResult] = []
        for chunk in chunks:
            self._never.wait(chunk.cost * self._step)
            sums = {name: np.zeros(length, np.float32) for name, length in self._vectors.items()}
            append_or_add(learned, result_of(chunk, ChunkResult(chunk.place, sums, 0.0)))
        return learned

    def fold(self, own: int, *results: list[ChunkResult]) -> list[ChunkResult]:
        """Return the sums of `own` results, which are this host's, and of those that another host handed to it."""
        return folded(results[:own], results[own:])

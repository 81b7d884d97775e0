"""A client host whose steps take time and compute nothing: it shows what the orchestration alone costs.

It answers as `ClientHost` does, with sums of the right names and sizes, all zero. It needs no torch, so that many fit
on a small machine.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from fedactors.fleet.profiling import Span, Spans
from fedactors.learning.reduction import HANDED_ON, added, plus, size
from fedactors.learning.training_task import Chunk, ChunkResult


class SleepingHost:
    """Sleeps where a client host trains."""

    def __init__(self, vectors: dict[str, int], step: float) -> None:
        self._vectors, self._step = vectors, step  # lengths of what is sent up; seconds of a client's local step
        self._never = threading.Event()
        self.spans = Spans()

    def worked(self) -> list[Span]:
        """Return when this host worked since it was last asked."""
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
            seconds = chunk.cost * self._step
            self._never.wait(seconds)
            sums = {name: np.zeros(length, np.float32) for name, length in self._vectors.items()}
            one = ChunkResult(chunk.clients[0], sums, 0.0, seconds, branch=chunk.branch)
            if learned and learned[-1].branch == chunk.branch:
                one = plus(learned.pop(), one)
            learned.append(one)
        return learned

    def fold(self, *results: list[ChunkResult]) -> list[ChunkResult]:
        """Return the sum of what this host has and of what the host before it hands over."""
        parts = [one for result in results for one in result]
        handed, total = [part for part in parts if part.branch == HANDED_ON], added(parts)
        return [] if total is None else [total._replace(moved=total.moved + size(handed))]

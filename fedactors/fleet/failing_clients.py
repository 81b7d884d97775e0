"""Which client, and which of its local steps, makes a chunk raise: found by training parts of the chunk again."""

from __future__ import annotations

import bisect
import os
from collections.abc import Sequence

from fedactors.learning.trainer import Trainer
from fedactors.learning.training_task import Chunk, Vectors


def failing_clients(trainer: Trainer, chunk: Chunk, sent: Sequence[Vectors], kept: Sequence[Vectors | None]) -> str:
    """Return the name of the first client that raises by itself, and its local step; all clients if none does."""
    for place, client in enumerate(chunk.clients):
        mine = kept[place : place + 1]
        if _raises(trainer, chunk.only(place), sent, mine):
            before = bisect.bisect_left(
                range(1, chunk.steps[place] + 1),
                True,
                key=lambda steps: _raises(trainer, chunk.only(place, steps), sent, mine),
            )
            return f"client {client} in local step {before + 1} of {chunk.steps[place]}"
    return f"clients {', '.join(map(str, chunk.clients))}"


def _raises(trainer: Trainer, chunk: Chunk, sent: Sequence[Vectors], kept: Sequence[Vectors | None]) -> bool:
    try:
        trainer.learn(chunk, sent, kept)
    except (Exception, SystemExit):
        return True
    return False


def this_process() -> str:
    """Return the machine and the number of this process, for a message about what happened in it."""
    return f"host {os.uname().nodename}, process {os.getpid()}"

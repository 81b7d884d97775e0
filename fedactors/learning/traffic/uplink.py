"""Transforms of updates around any algorithm: at the clients before updates are summed, at the server on the sums.

What an algorithm uploads under the names of its `changes` goes through the list, one vector after the other; a vector
that it uploads under two names is one message. Everything else travels as it is: numbers that are no vectors, and
vectors that are values. What an algorithm has a client keep is made of what the client knows, its own update as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from fedactors.learning.algorithm import Round
from fedactors.learning.row_vectors import kept_rows
from fedactors.learning.training_task import Chunk, TrainingTask, Vectors
from fedactors.streams import Purpose
from fedactors.transforms.draws import SenderDraws

Named = dict[str, Tensor]


def sent(task: TrainingTask, chunk: Chunk, uploads: Named, kept: Sequence[Vectors | None]) -> tuple[Named, Named]:
    """Return the uploads of a chunk's clients as the server receives them, and what clients keep for their next ones.

    `kept` is what each client kept from its last trip; empty where clients keep nothing.
    """
    chain = task.uplink
    if chain is None:
        return uploads, {}
    found, fresh = dict(uploads), Named()
    draws = SenderDraws(task.seed, Purpose.UPLINK, chunk.clients, chunk.trips)
    for vector in task.algorithm.changes:
        rows = uploads[vector]
        held = _held(chain.keeps([vector]), kept, rows)
        arrived, renewed = chain.sent(vector, rows, held, draws)
        found |= {name: arrived for name, one in uploads.items() if one is rows}
        fresh |= renewed
    return found, fresh


def received(task: TrainingTask, sums: Mapping[str, Tensor], facts: Round) -> Named:
    """Return the sums of a round's updates after what the server adds to them."""
    chain, algorithm = task.uplink, task.algorithm
    if chain is None or chain.noise is None or not sums:
        return dict(sums)
    found = dict(sums)
    for number, vector in enumerate(algorithm.changes):
        draws = SenderDraws(task.seed, Purpose.NOISE, [number], [facts.version])
        found[vector] = chain.received(sums[vector], draws, 1.0 if vector in algorithm.plain else facts.largest)
    return found


def _held(lengths: Mapping[str, int], kept: Sequence[Vectors | None], rows: Tensor) -> Named:
    """Return what clients keep for a vector as rows; zeros before their first message."""
    held = Named()
    for name, length in lengths.items():
        held |= kept_rows(kept, [name], length, rows.device)
    return held

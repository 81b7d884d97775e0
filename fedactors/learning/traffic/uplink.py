"""Transforms of updates around any algorithm: at the clients before updates are summed, at the server on the sums.

What an algorithm uploads under the names of its `changes` goes through the list, one vector after the other; a vector
that it uploads under two names is one message. Everything else travels as it is: numbers that are no vectors, and
vectors that are values. What an algorithm has a client keep is made of what the client knows, its own update as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from fedactors.learning.algorithm import Round
from fedactors.learning.row_vectors import kept_rows
from fedactors.learning.traffic.arrived import arrived_names
from fedactors.learning.training_task import Chunk, TrainingTask, Vectors
from fedactors.streams import Purpose
from fedactors.transforms.draws import SenderDraws

Named = dict[str, Tensor]
_COUNTS = 2**20  # the sender in streams of noise in counts: those of vectors are below


def sent(
    task: TrainingTask,
    chunk: Chunk,
    uploads: Named,
    kept: Sequence[Vectors | None],
    public: Mapping[str, Tensor],
) -> tuple[Named, Named]:
    """Return the uploads of a chunk's clients as the server receives them, and what clients keep for their next ones.

    `kept` is what each client kept from its last trip, empty where clients keep nothing; `public` is what all were
    sent.
    """
    chain = task.uplink
    if chain is None:
        return uploads, _arrived(task, uploads, kept) if kept and task.attackers else {}
    found, fresh = dict(uploads), Named()
    draws = SenderDraws(task.seed, Purpose.UPLINK, chunk.clients, chunk.base_versions)
    told, counts = _told(task, public), _counts(task)
    for vector in task.algorithm.changes:
        rows = uploads[vector]
        held = _held(chain.keeps([vector]), kept, rows)
        arrived, renewed = chain.sent(vector, rows, held, draws, told)
        found |= {name: arrived for name, one in uploads.items() if one is rows}
        for name, value in renewed.items():
            (found if name in counts else fresh)[name] = value
    return found, fresh | (_arrived(task, found, kept) if kept else {})


def _arrived(task: TrainingTask, found: Named, kept: Sequence[Vectors | None]) -> Named:
    """Return the sums of what has arrived of each client, with what arrives now; see `arrived`."""
    sums = Named()
    for upload, name in arrived_names(task.algorithm).items():
        rows = found[upload]
        sums[name] = _held({name: rows.shape[1]}, kept, rows)[name] + rows
    return sums


def received(task: TrainingTask, state: Mapping[str, Tensor], sums: Mapping[str, Tensor], facts: Round) -> Named:
    """Return the sums of a round's updates after what the server adds to them, as an algorithm is given them."""
    chain, algorithm = task.uplink, task.algorithm
    counts = _counts(task)
    found = {name: value for name, value in sums.items() if name not in counts}
    if chain is None or not sums:
        return found
    told = _told(task, state)
    round = facts.heard_before if chain.noise_skips_empty_rounds else facts.version
    for number, vector in enumerate(algorithm.changes):
        draws = SenderDraws(task.seed, Purpose.NOISE, [number], [round])
        largest = 1.0 if vector in algorithm.plain else facts.largest
        total = chain.received(vector, sums[vector], draws, largest, told)
        found |= {name: total for name, one in sums.items() if one is sums[vector]}
    return found


def told_next(task: TrainingTask, state: Mapping[str, Tensor], sums: Mapping[str, Tensor], facts: Round) -> Named:
    """Return the numbers that go to clients with the next model, from those in the `state` that had gone before."""
    told = _told(task, state)
    if task.uplink is None or not told or not sums:
        return {name: state[name] for name in told}
    counts = {name: float(sums[name]) for name in _counts(task)}
    found: dict[str, float] = {}
    for number, vector in enumerate(task.algorithm.changes):
        draws = SenderDraws(task.seed, Purpose.NOISE, [_COUNTS + number], [facts.version])
        found |= task.uplink.told_next(vector, told, counts, facts.heard, draws)
    return numbers(found)


def numbers(values: Mapping[str, float]) -> Named:
    """Return numbers as vectors of one value."""
    return {name: torch.tensor([value], dtype=torch.float32) for name, value in values.items()}


def _counts(task: TrainingTask) -> tuple[str, ...]:
    """Return the names of counts that clients send for the numbers that they are told."""
    return task.plain[len(task.algorithm.plain) :]


def _told(task: TrainingTask, state: Mapping[str, Tensor]) -> dict[str, float]:
    """Return the numbers in a state that go to clients with the model."""
    return {name: float(state[name]) for name in task.told}


def _held(lengths: Mapping[str, int], kept: Sequence[Vectors | None], rows: Tensor) -> Named:
    """Return what clients keep for a vector as rows; zeros before their first message."""
    held = Named()
    for name, length in lengths.items():
        held |= kept_rows(kept, [name], length, rows.device)
    return held

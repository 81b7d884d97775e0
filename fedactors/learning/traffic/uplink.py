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
    broadcast, counts = _broadcast_values(task, public), _counts(task)
    for vector in task.algorithm.changes:
        rows = uploads[vector]
        held = _held(chain.keeps([vector]), kept, rows)
        arrived, renewed = chain.sent(vector, rows, held, draws, broadcast)
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
    broadcast = _broadcast_values(task, state)
    round = facts.heard_before if chain.noise_skips_empty_rounds else facts.version
    for number, vector in enumerate(algorithm.changes):
        draws = SenderDraws(task.seed, Purpose.NOISE, [number], [round])
        largest = 1.0 if vector in algorithm.unweighted else facts.largest
        total = chain.received(vector, sums[vector], draws, largest, broadcast)
        found |= {name: total for name, one in sums.items() if one is sums[vector]}
    return found


def next_broadcast_values(
    task: TrainingTask, state: Mapping[str, Tensor], sums: Mapping[str, Tensor], facts: Round
) -> Named:
    """Return the numbers to broadcast with the next model, from those in the `state`, which went with the last one."""
    broadcast = _broadcast_values(task, state)
    if task.uplink is None or not broadcast or not sums:
        return {name: state[name] for name in broadcast}
    counts = {name: float(sums[name]) for name in _counts(task)}
    found: dict[str, float] = {}
    for number, vector in enumerate(task.algorithm.changes):
        draws = SenderDraws(task.seed, Purpose.NOISE, [_COUNTS + number], [facts.version])
        found |= task.uplink.next_broadcast_values(vector, broadcast, counts, facts.heard, draws)
    return numbers(found)


def numbers(values: Mapping[str, float]) -> Named:
    """Return numbers as vectors of one value."""
    return {name: torch.tensor([value], dtype=torch.float32) for name, value in values.items()}


def _counts(task: TrainingTask) -> tuple[str, ...]:
    """Return the names of counts that clients send for the numbers that the server broadcasts."""
    return task.unweighted[len(task.algorithm.unweighted) :]


def _broadcast_values(task: TrainingTask, state: Mapping[str, Tensor]) -> dict[str, float]:
    """Return the numbers in a state that are broadcast with the model."""
    return {name: float(state[name]) for name in task.broadcast_values}


def _held(lengths: Mapping[str, int], kept: Sequence[Vectors | None], rows: Tensor) -> Named:
    """Return what clients keep for a vector as rows; zeros before their first message."""
    held = Named()
    for name, length in lengths.items():
        held |= kept_rows(kept, [name], length, rows.device)
    return held

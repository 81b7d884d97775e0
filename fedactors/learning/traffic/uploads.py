"""What the clients of chunks send after their trips, summed, and what each of them keeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from torch import Tensor

from fedactors.in_place import unchanged
from fedactors.learning.algorithm import ClientResult
from fedactors.learning.buffers import BUFFERS
from fedactors.learning.row_vectors import apart, parts_of, slices
from fedactors.learning.summing import also_kept, one_by_one, summed
from fedactors.learning.traffic.attackers import attacked
from fedactors.learning.traffic.uplink import sent
from fedactors.learning.training_task import BadUpdates, Chunk, TrainingTask, Vectors


class Uploaded(NamedTuple):
    """What the clients of one chunk have sent."""

    chunk: Chunk
    sums: Vectors  # a row for each client where the server combines single updates
    bad: BadUpdates
    losses: Tensor  # (clients, steps)
    kept: tuple[Vectors, ...]  # what each client keeps, if they had kept something


def uploaded(
    task: TrainingTask,
    chunks: Sequence[Chunk],
    result: ClientResult,
    losses: Tensor,
    personal: dict[str, Tensor],
    kept: Sequence[Vectors | None],
) -> Iterator[Uploaded]:
    """Yield what the clients of each chunk send, from the `result` of all of them.

    `personal` is what they keep besides what the algorithm says, `kept` what each had kept; empty if they keep nothing.
    Where they do, there is one chunk only.
    """
    with unchanged(f"algorithm {task.algorithm.name}", sent=result.sent):
        uploads = task.algorithm.upload(attacked(task, chunks, result))
        keeps = task.algorithm.keep(result) | personal
    if buffers := task.model.buffer_values:
        uploads = {**uploads, BUFFERS: result.start[:, -buffers:] + result.delta[:, -buffers:]}
    for one, mine, its_losses in parts_of(chunks, losses):
        with unchanged("a transform of server.uplink", keep=keeps):
            own, fresh = sent(task, one, slices(uploads, mine), kept, result.sent)
        if task.aggregation is None:
            sums, bad = summed(one, own, its_losses, task.unweighted)
        else:
            sums, bad = one_by_one(one, own, its_losses)
        held = keeps | fresh if kept else {}
        yield Uploaded(one, sums, also_kept(bad, one, held, its_losses), its_losses, apart(held, len(kept)))

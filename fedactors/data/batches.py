"""Which samples a local step sees. Every pass over the data is shuffled anew, from the client's own stream.

All passes of many clients are shuffled in one call: each sample of each pass draws 48 random bits from the counter
(number, purpose, client, trip), see `philox`, and a pass is in the order of what its samples drew.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedactors.data.philox import philox
from fedactors.streams import Purpose
from fedactors.workload import CohortWork, Workload

Int64 = NDArray[np.int64]

_ROWS = 2**16  # passes that are sorted in one call: their number takes the bits that the draws leave free
_FREE = np.uint64(16)
_WORD = 2**32 - 1


def sequence(
    seed: int,
    client: int,
    trip: int,
    held: Int64,
    work: Workload,
    steps: int,
    purpose: Purpose = Purpose.BATCH,
) -> Int64:
    """Return the samples of the first `steps` local steps one after the other, `(work.samples(steps),)`.

    `held` are the client's samples. The order depends on (seed, client, trip) only: a longer trip begins with the
    batches of a shorter one.
    """
    return sequences(seed, [client], [trip], [held], [work], [steps], purpose)[0]


def sequences(
    seed: int,
    clients: Sequence[int],
    trips: Sequence[int],
    held: Sequence[Int64],
    works: Sequence[Workload],
    steps: Sequence[int],
    purpose: Purpose = Purpose.BATCH,
) -> list[Int64]:
    """Return what `sequence` does, for many trips at once."""
    work = _columns(works)
    taken = np.array(steps, np.int64)
    passes = -(-taken // work.pass_steps)
    if passes.sum() > _ROWS and len(clients) > 1:

        def part(some: slice) -> list[Int64]:
            return sequences(seed, clients[some], trips[some], held[some], works[some], steps[some], purpose)

        middle = len(clients) // 2
        return [*part(slice(middle)), *part(slice(middle, None))]
    sizes = np.array([len(samples) for samples in held], np.int64)
    trip_of = np.repeat(np.arange(len(clients)), passes)
    names = np.array([clients, trips], np.int64).T & _WORD
    whole = sizes[trip_of]  # samples of each pass
    order = _shuffled(seed, purpose, names[trip_of], _counted(passes), whole)
    order += np.repeat((np.cumsum(sizes) - sizes)[trip_of], whole)
    found = np.concatenate([*held, np.empty(0, np.int64)])[order]
    used = work.pass_samples[trip_of]
    if (used < whole).any():  # an incomplete batch at the end of each pass is dropped
        found = found[_counted(whole) < np.repeat(used, whole)]
    ends = np.cumsum(passes * work.pass_samples)
    firsts, lasts = ends - passes * work.pass_samples, ends - passes * work.pass_samples + work.samples(taken)
    return [found[first:last] for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True)]


def _columns(works: Sequence[Workload]) -> CohortWork:
    """Return workloads in columns; they are often all the same."""
    same = works.count(works[0]) == len(works)
    rows = np.array([works[0]] if same else works, np.int64)
    return CohortWork(rows.repeat(len(works), 0) if same else rows)


def _counted(lengths: Int64) -> Int64:
    """Return 0, 1, 2 … for each of some runs of these lengths, one after the other."""
    ends = np.cumsum(lengths)
    counted: Int64 = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)
    return counted


def _shuffled(seed: int, purpose: Purpose, names: Int64, number: Int64, sizes: Int64) -> Int64:
    """Return the order of the samples of some passes, one after the other: places in each pass, `(sum of sizes,)`.

    A pass has `names`, client and trip, its `number` in that trip, and so many samples.
    """
    blocks = (sizes + 1) // 2  # each counter gives the draws of two samples
    pass_of = np.repeat(np.arange(len(sizes)), blocks)
    counters = np.empty((4, len(pass_of)), np.uint64)
    counters[0] = (number * blocks)[pass_of] + _counted(blocks)
    counters[1] = int(purpose)
    counters[2:] = names[pass_of].T
    words = philox(counters, seed)
    draws = ((words[0::2] << np.uint64(32)) | words[1::2]).T.reshape(-1)
    if len(draws) > sizes.sum():
        draws = draws[_counted(2 * blocks) < np.repeat(sizes, 2 * blocks)]
    passes = np.repeat(np.arange(len(sizes), dtype=np.uint64), sizes)
    places = np.argsort((passes << np.uint64(48)) | (draws >> _FREE), kind="stable")
    places -= np.repeat(np.cumsum(sizes) - sizes, sizes)
    return places


def varied(draws: np.random.Generator, order: Int64, variants: int, samples: int) -> Int64:
    """Return the `order` of samples in which each of the first `samples` is one of its `variants`, drawn by itself.

    Variant v of sample i lies at v * samples + i. A longer order begins with the choices of a shorter one.
    """
    chosen = (draws.random(len(order)) * variants).astype(np.int64)
    return np.where(order < samples, order + chosen * samples, order)


def bounds(work: Workload, steps: int) -> list[tuple[int, int]]:
    """Return [first, last) of each of the first `steps` batches in `sequence`."""
    return [(work.samples(step), work.samples(step + 1)) for step in range(steps)]


def table(
    sequences: Sequence[Int64], works: Sequence[Workload], steps: Sequence[int]
) -> tuple[Int64, NDArray[np.float32]]:
    """Return the batches of many clients as one table: samples and their weights, both `(steps, clients, batch)`.

    The weights of a batch sum to 1. Short batches are filled up with their own first sample at weight 0, so that a bad
    sample affects no other batch; trips that are over are filled up with sample 0.
    """
    work = _columns(works)
    counts = np.array(steps, np.int64)
    width = int(work.batch.max())
    samples = np.zeros((max(steps), len(works), width), np.int64)
    weights = np.zeros(samples.shape, np.float32)
    column = np.repeat(np.arange(len(works)), counts)
    step = _counted(counts)
    inside = step % work.pass_steps[column]
    sizes = np.minimum(work.batch[column], work.pass_samples[column] - inside * work.batch[column])
    first = step // work.pass_steps[column] * work.pass_samples[column] + inside * work.batch[column]
    lengths = np.array([len(order) for order in sequences], np.int64)
    first += (np.cumsum(lengths) - lengths)[column]
    within = np.arange(width) < sizes[:, None]
    places = first[:, None] + np.where(within, np.arange(width), 0)
    samples[step, column] = np.concatenate(sequences)[places]
    weights[step, column] = within / sizes[:, None]
    return samples, weights

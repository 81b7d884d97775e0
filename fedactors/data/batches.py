"""Which samples a local step sees: every pass over the data shuffled anew, or batches drawn with replacement.

Both come from the client's own stream.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedactors.streams import Purpose, stream
from fedactors.workload import Workload

Int64 = NDArray[np.int64]


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
    return drawn(stream(seed, purpose, client, trip), held, work, steps)


def drawn(draws: np.random.Generator, held: Int64, work: Workload, steps: int) -> Int64:
    """Return what `sequence` does, from the stream that names client and trip."""
    if work.drawn_from:
        return held[draws.integers(len(held), size=work.samples(steps))]
    passes = held[None].repeat(-(-steps // work.pass_steps), 0)
    # what `permutation` would give for one pass after the other, in one call
    draws.permuted(passes, axis=1, out=passes)
    return passes[:, : work.pass_samples].reshape(-1)[: work.samples(steps)]


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
    width = max(work.batch for work in works)
    samples = np.zeros((max(steps), len(works), width), np.int64)
    weights = np.zeros(samples.shape, np.float32)
    for column, (order, work, count) in enumerate(zip(sequences, works, steps, strict=True)):
        if len(order) == count * width:
            samples[:count, column], weights[:count, column] = order.reshape(count, width), 1 / width
            continue
        for step, (first, last) in enumerate(bounds(work, count)):
            samples[step, column] = order[first]
            samples[step, column, : last - first] = order[first:last]
            weights[step, column, : last - first] = 1 / (last - first)
    return samples, weights

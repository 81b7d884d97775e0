"""Which samples a local step sees: every pass over the data shuffled anew, or batches drawn with replacement.

The samples of many clients are ordered in one call. Each sample of each pass draws 48 random bits from the counter
(number, purpose, client, trip), see `philox`, and a pass is in the order of what its samples drew.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedactors.data.philox import UInt64, philox
from fedactors.streams import Purpose
from fedactors.workload import CohortWork, Workload

Int64 = NDArray[np.int64]

_BITS = 48  # of a draw
_SHIFT = np.uint64(_BITS)
_ROWS = 2**16  # passes that are sorted in one call: their number takes the bits that a draw leaves free
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
    """Return what `sequence` does, for many trips at once.

    Batches drawn with replacement have a purpose of their own in place of BATCH.
    """
    asked = _Trips(clients, trips, held, works, steps)
    found = list[Int64]()
    for replaced, run in groupby(range(len(clients)), lambda place: works[place].drawn_from > 0):
        first, *rest = run
        some = asked.part(first, first + 1 + len(rest))
        apart = Purpose.REPLACEMENT if replaced and purpose is Purpose.BATCH else purpose
        found += _drawn(seed, apart, some) if replaced else _passes(seed, apart, some)
    return found


class _Trips(NamedTuple):
    """What is to be ordered, in columns: one entry for each trip."""

    clients: Sequence[int]
    trips: Sequence[int]
    held: Sequence[Int64]
    works: Sequence[Workload]
    steps: Sequence[int]

    @property
    def sizes(self) -> Int64:
        """How many samples each client holds."""
        return np.array([len(samples) for samples in self.held], np.int64)

    @property
    def names(self) -> Int64:
        """The two words of each trip's counters that name it, `(trips, 2)`."""
        names: Int64 = np.array([self.clients, self.trips], np.int64).T & _WORD
        return names

    def part(self, first: int, end: int) -> _Trips:
        """Return trips that follow one another."""
        some = slice(first, end)
        return _Trips(self.clients[some], self.trips[some], self.held[some], self.works[some], self.steps[some])


def _drawn(seed: int, purpose: Purpose, trips: _Trips) -> list[Int64]:
    """Return samples each of which is drawn among all that its client holds."""
    sizes = trips.sizes
    counts = _columns(trips.works).samples(np.array(trips.steps, np.int64))
    draws = _draws(seed, purpose, trips.names, np.zeros_like(counts), counts)
    places = (draws * 2.0**-_BITS * np.repeat(sizes, counts)).astype(np.int64)
    places += np.repeat(np.cumsum(sizes) - sizes, counts)
    return np.split(np.concatenate(trips.held)[places], np.cumsum(counts)[:-1])


def _passes(seed: int, purpose: Purpose, trips: _Trips) -> list[Int64]:
    """Return samples in passes, each in a new order."""
    work = _columns(trips.works)
    taken = np.array(trips.steps, np.int64)
    passes = -(-taken // work.pass_steps)
    if passes.sum() > _ROWS and len(taken) > 1:
        middle = len(taken) // 2
        halves = trips.part(0, middle), trips.part(middle, len(taken))
        return [order for half in halves for order in _passes(seed, purpose, half)]
    sizes = trips.sizes
    trip_of = np.repeat(np.arange(len(taken)), passes)
    whole = sizes[trip_of]  # samples of each pass
    draws = _draws(seed, purpose, trips.names[trip_of], _counted(passes), whole)
    passes_of = np.repeat(np.arange(len(whole), dtype=np.uint64), whole)
    order = np.argsort((passes_of << _SHIFT) | draws, kind="stable") - np.repeat(np.cumsum(whole) - whole, whole)
    order += np.repeat((np.cumsum(sizes) - sizes)[trip_of], whole)
    found = np.concatenate([*trips.held, np.empty(0, np.int64)])[order]
    used = work.pass_samples[trip_of]
    if (used < whole).any():  # an incomplete batch at the end of each pass is dropped
        found = found[_counted(whole) < np.repeat(used, whole)]
    lengths = passes * work.pass_samples
    firsts = np.cumsum(lengths) - lengths
    lasts = firsts + work.samples(taken)
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


def _draws(seed: int, purpose: Purpose, names: Int64, number: Int64, sizes: Int64) -> UInt64:
    """Return so many draws of 48 bits for each of some passes, one after the other, `(sum of sizes,)`.

    A pass has `names`, client and trip, and its `number` in that trip.
    """
    blocks = (sizes + 1) // 2  # each counter gives two draws
    pass_of = np.repeat(np.arange(len(sizes)), blocks)
    counters = np.empty((4, len(pass_of)), np.uint64)
    counters[0] = (number * blocks)[pass_of] + _counted(blocks)
    counters[1] = int(purpose)
    counters[2:] = names.take(pass_of, 0).T
    words = philox(counters, seed)
    draws: UInt64 = (((words[0::2] << np.uint64(32)) | words[1::2]) >> np.uint64(64 - _BITS)).T.reshape(-1)
    odd = len(draws) > sizes.sum()
    return draws[_counted(2 * blocks) < np.repeat(sizes, 2 * blocks)] if odd else draws


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
    places, weights = _places(tuple(works), tuple(steps))
    return np.concatenate([*sequences, np.zeros(1, np.int64)])[places], weights.copy()


@lru_cache(maxsize=1)
def _places(works: tuple[Workload, ...], steps: tuple[int, ...]) -> tuple[Int64, NDArray[np.float32]]:
    """Return where each sample of a `table` lies among those of all trips, with a sample 0 after them; and weights."""
    work = _columns(works)
    counts = np.array(steps, np.int64)
    width = int(work.batch.max())
    lengths = work.samples(counts)
    places = np.full((max(steps), len(works), width), lengths.sum())
    weights = np.zeros(places.shape, np.float32)
    column = np.repeat(np.arange(len(works)), counts)
    step = _counted(counts)
    inside = step % work.pass_steps[column]
    sizes = np.minimum(work.batch[column], work.pass_samples[column] - inside * work.batch[column])
    first = step // work.pass_steps[column] * work.pass_samples[column] + inside * work.batch[column]
    first += (np.cumsum(lengths) - lengths)[column]
    within = np.arange(width) < sizes[:, None]
    places[step, column] = first[:, None] + np.where(within, np.arange(width), 0)
    weights[step, column] = within / sizes[:, None]
    return places, weights

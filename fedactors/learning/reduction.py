"""Sums of what chunks learned, in an order that is fixed by the Plan: no bit depends on which process adds them.

    chunks in the order of their clients   c0    c1    c2    c3    c4    c5    c6
    neighbours, as in a knock-out          (c0 + c1)   (c2 + c3)   (c4 + c5)   c6
                                           ((c0 + c1) + (c2 + c3)) ((c4 + c5) + c6)

The process that has both neighbours adds them, so a host that learned a run of n chunks holds at most 2 log2(n) sums,
and sums of hosts are added up in log2(hosts) steps, at any host.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from fedactors.learning.training_task import ChunkResult, MemoryLimit


def append_or_add(results: list[ChunkResult], result: ChunkResult) -> None:
    """Append the result of a chunk, or of several; what then is a neighbour of the one before it is added to that."""
    results.append(result)
    while len(results) > 1 and _neighbours(results[-2], results[-1]):
        results[-2:] = [plus(results[-2], results[-1])]


def merged(parts: Iterable[ChunkResult]) -> list[ChunkResult]:
    """Return the sums of all `parts`, in the order of their chunks, neighbours added."""
    found: list[ChunkResult] = []
    for part in sorted(parts, key=lambda part: part.place):
        append_or_add(found, part)
    return found


def added(parts: Iterable[ChunkResult]) -> ChunkResult | None:
    """Return the sum over all chunks of a round; None if there are none."""
    found = merged(parts)
    if len(found) > 1:
        raise ValueError(f"a sum over {found[0].among} chunks lacks some: it has {[part.place for part in found]}")
    return found[0] if found else None


def size(parts: Sequence[ChunkResult]) -> int:
    """Return the bytes of the sums in `parts`."""
    return sum(vector.nbytes for part in parts for vector in part.sums.values())


def plus(one: ChunkResult, other: ChunkResult) -> ChunkResult:
    """Return the sum of two, the first one's first."""
    sums = {name: _joined(vector, other.sums[name]) for name, vector in one.sums.items()}
    return one._replace(
        sums=sums,
        chunks=one.chunks + other.chunks,
        loss=one.loss + other.loss,
        bad=one.bad + other.bad,
        kept=one.kept + other.kept,
        losses=one.losses + other.losses,
        memory_limit=_tighter_limit(one.memory_limit, other.memory_limit),
        moved=one.moved + other.moved,
    )


def _tighter_limit(one: MemoryLimit | None, other: MemoryLimit | None) -> MemoryLimit | None:
    """Return the limit of two hosts together: of the one that lacked more memory, with bits that both promise."""
    if one is None or other is None:
        return one or other
    return MemoryLimit(min(one.at_once, other.at_once), one.same_bits and other.same_bits)


def _neighbours(one: ChunkResult, other: ChunkResult) -> bool:
    """Whether two meet in the next step: sums of as many chunks, or of all that are left after the first."""
    meets = one.place % (2 * one.chunks) == 0 and one.place + one.chunks == other.place
    is_last = other.place + other.chunks == other.among
    return meets and (other.chunks == one.chunks or (is_last and other.chunks < one.chunks))


def _joined(one: NDArray[np.float32], other: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the sum of two sums, or the rows of single updates below each other."""
    return one + other if one.ndim == 1 else np.concatenate([one, other])

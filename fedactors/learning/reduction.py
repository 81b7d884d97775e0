"""Sums of what chunks learned, in an order that is fixed by the Plan: no bit depends on which process adds them.

    chunks in the order of their clients   c1 c2 c3 | c4 c5 c6 | c7 c8      branches: runs of chunks, at most BRANCHES
    inside a branch from the left          b1 = (c1 + c2) + c3, ...
    and so the branches                    ((b1 + b2) + b3)

A host computes whole branches that follow one another, adds their sum to that of the host before it, and sends the
result to the next one: h hosts send h vectors, however many chunks there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import groupby

from fedactors.learning.training_task import ChunkResult

BRANCHES = 64  # of a round's sum; part of its bits where there are more chunks
HANDED_ON = -1  # the branch of a sum that has everything before it in it


def branches(chunks: int) -> list[int]:
    """Return the branch of each of `chunks` chunks: a chunk each, or as evenly as possible."""
    count = min(chunks, BRANCHES)
    return [chunk * count // chunks for chunk in range(chunks)]


def merged(parts: Iterable[ChunkResult]) -> list[ChunkResult]:
    """Return what each branch learned, in order, from what its chunks did."""
    ordered = sorted(parts, key=lambda part: part.first)
    return [reduce(plus, run) for _, run in groupby(ordered, key=lambda part: part.branch)]


def added(parts: Iterable[ChunkResult]) -> ChunkResult | None:
    """Return the sum over all branches; None if there is nothing to add."""
    whole = merged(parts)
    return reduce(plus, whole)._replace(branch=HANDED_ON) if whole else None


def size(parts: Sequence[ChunkResult]) -> int:
    """Return the bytes of the sums in `parts`."""
    return sum(vector.nbytes for part in parts for vector in part.sums.values())


def plus(one: ChunkResult, other: ChunkResult) -> ChunkResult:
    """Return the sum of two, the first one's first."""
    sums = {name: vector + other.sums[name] for name, vector in one.sums.items()}
    return one._replace(
        sums=sums,
        loss=one.loss + other.loss,
        seconds=one.seconds + other.seconds,
        bad=one.bad + other.bad,
        kept=one.kept + other.kept,
        losses=one.losses + other.losses,
        narrow=min((narrow for narrow in (one.narrow, other.narrow) if narrow), default=None),
        moved=one.moved + other.moved,
    )

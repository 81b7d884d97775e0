"""What hosts do with results of chunks: those of other hosts are added to their own, and counted as moved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedactors.learning.reduction import merged, size
from fedactors.learning.training_task import Chunk, ChunkResult


def result_of(chunk: Chunk, result: ChunkResult) -> ChunkResult:
    """Return the result of a chunk that was perhaps trained together with others, at its own place."""
    return result._replace(place=chunk.place, among=chunk.among)


def folded(own: Sequence[list[ChunkResult]], handed: Sequence[list[ChunkResult]]) -> list[ChunkResult]:
    """Return the sums of what a host learned and of what another one has `handed` to it."""
    theirs = [part for result in handed for part in result]
    first, *others = merged([part for result in own for part in result] + theirs)
    return [first._replace(moved=first.moved + size(theirs)), *others]


def parted(results: Sequence[ChunkResult]) -> tuple[Any, ...]:
    """Return the results without what clients keep, and then what each client keeps."""
    kept = [vectors for result in results for vectors in result.kept]
    return [result._replace(kept=()) for result in results], *kept

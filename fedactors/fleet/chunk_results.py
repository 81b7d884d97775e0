"""What hosts do with results of chunks: those of one branch are added up at once, all of a round when it is folded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fedactors.learning.reduction import HANDED_ON, added, plus, size
from fedactors.learning.training_task import ChunkResult


def append_or_add(results: list[ChunkResult], result: ChunkResult) -> None:
    """Append the result of a chunk, or add it to the last one if that is of the same branch."""
    if results and results[-1].branch == result.branch:
        results[-1] = plus(results[-1], result)
    else:
        results.append(result)


def folded(results: Iterable[list[ChunkResult]]) -> list[ChunkResult]:
    """Return the sum of a host's results, of whole branches, and of the sum that the host before it hands on."""
    parts = [part for result in results for part in result]
    total = added(parts)
    handed_on = [part for part in parts if part.branch == HANDED_ON]
    return [] if total is None else [total._replace(moved=total.moved + size(handed_on))]


def parted(results: Sequence[ChunkResult]) -> tuple[Any, ...]:
    """Return the results without what clients keep, and then what each client keeps."""
    kept = [vectors for result in results for vectors in result.kept]
    return [result._replace(kept=()) for result in results], *kept

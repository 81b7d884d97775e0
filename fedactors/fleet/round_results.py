"""The results that the server worker is given in a round, by kind, and what it reports of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from fedactors.fleet.messages import AggregationReport, Contribution
from fedactors.learning.reduction import added, size
from fedactors.learning.training_task import ChunkResult, Vectors

_NOTHING_LEARNED = ChunkResult(0, {}, 0.0)


class RoundResults(NamedTuple):
    """The results of a round, in the order in which they were given."""

    older: Sequence[Any]  # models x that this one is mixed with
    chunks: list[ChunkResult]  # what hosts learned
    contributions: list[Contribution]  # of the central learner
    kept_by_departed: list[Vectors]

    def learned(self) -> ChunkResult:
        """Return the sum over all chunks, in their order."""
        return added(self.chunks) or _NOTHING_LEARNED


def by_kind(results: Sequence[list[ChunkResult] | Contribution | Vectors], mixed: int) -> RoundResults:
    """Return what `ServerWorker.aggregate` is given by kind; the first `mixed` of the results are older models."""
    later = results[mixed:]
    return RoundResults(
        older=results[:mixed],
        chunks=[chunk for result in later if isinstance(result, list) for chunk in result],
        contributions=[result for result in later if isinstance(result, Contribution)],
        kept_by_departed=[result for result in later if isinstance(result, dict)],
    )


def report_of(learned: ChunkResult, chunks: Sequence[ChunkResult]) -> AggregationReport:
    """Return the report of a round whose `chunks` have the sum `learned`, as long as the next model is sound."""
    return AggregationReport(
        loss=learned.loss,
        bad=tuple(sorted(learned.bad)),
        moved=learned.moved + size(chunks),
        sound=True,
        losses=learned.losses,
        memory_limit=learned.memory_limit,
    )

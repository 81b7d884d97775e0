"""A task in flight: the handles of its results, and how often it failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from fedactors.fleet.base import Fault, Fleet, Handle, UserCallError
from fedactors.fleet.messages import AggregationReport, Outcomes, RoundTask
from fedactors.learning.training_task import ClientMeasures

MOST_RAISED = 2  # tries for work that raises: on two hosts
_MOST_DIED = 5  # tries for work whose actor dies: the cause may be the machine, not the work
_MOST_LOST = 2  # tries for work whose model is lost: after the first loss the round that makes it is done again
_LOST = ("ObjectLostError", "OwnerDiedError", "ObjectFetchTimedOutError", "ObjectReconstructionFailedError")


class RoundHandles(NamedTuple):
    """Handles of what is reported of a round."""

    report: Handle[AggregationReport]
    evaluated: Handle[dict[str, float]] | None
    dissimilarity: Handle[dict[str, float]] | None
    client_measures: Sequence[Handle[tuple[ClientMeasures, ...]]] | None = None  # of some clients each

    def outcomes(self, version: int, fleet: Fleet) -> Outcomes:
        """Wait for the results of round `version` and return them. Raises Fault if one cannot be had."""
        report = fleet.get(self.report)
        evaluated = None if self.evaluated is None else fleet.get(self.evaluated)
        dissimilarity = None if self.dissimilarity is None else fleet.get(self.dissimilarity)
        handles = self.client_measures
        return Outcomes(
            version,
            loss=report.loss,
            bad=report.bad,
            evaluated=evaluated,
            dissimilarity=dissimilarity,
            sound=report.sound,
            losses=report.losses,
            memory_limit=report.memory_limit,
            moved=report.moved,
            client_measures=None if handles is None else tuple(chain.from_iterable(map(fleet.get, handles))),
        )


@dataclass
class Flight:
    """A task in flight; `handles` is None before it is submitted."""

    task: RoundTask
    handles: RoundHandles | None = None
    raised: int = 0
    died: int = 0
    lost: int = 0  # how often a result was lost that this task starts from

    def count(self, fault: Fault) -> str:
        """Count a fault; return why the run has to end, or an empty string if the task is worth another try."""
        self.died += fault.died
        self.raised += not fault.died
        self.lost += fault.cause in _LOST
        failed = f"round {self.task.facts.version + 1}"
        if self.lost >= _MOST_LOST:
            return (
                f"{failed}: a machine was lost with what only it held, models or what clients keep"
                f" (accepted: go on from the last checkpoint); {fault}"
            )
        if fault.cause == UserCallError.__name__:  # it would raise on every host
            return f"{fault.text}\n{failed}"
        if self.raised >= MOST_RAISED or self.died >= _MOST_DIED:
            return f"{failed} failed {self.tries} times, last with {fault}"
        return ""

    @property
    def tries(self) -> int:
        """Return how often it failed."""
        return self.raised + self.died

"""The work of a pipeline's actors as tracks, one for each actor."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fedactors.fleet.base import Fault, Fleet
from fedactors.fleet.pipeline import Pipeline
from fedactors.fleet.profiling import Span, Track
from fedactors.fleet.stubs import WorkerStub


def collect(fleet: Fleet, pipeline: Pipeline, on_fault: Callable[[Fault], None] = lambda fault: None) -> list[Track]:
    """Return when the actors of a pipeline worked since this was last called.

    An actor that died while no result of it was waited for is left out; `on_fault` is called with its fault.
    """
    tracks = []
    for name, stub in _named(pipeline):
        try:
            tracks.append(Track(name, [Span(*span) for span in fleet.get(stub.worked())]))
        except Fault as fault:
            on_fault(fault)
    return tracks


def _named(pipeline: Pipeline) -> Iterator[tuple[str, WorkerStub]]:
    """Yield each actor with the name of its track."""
    kinds: dict[str, list[WorkerStub]] = {
        "client host": [*pipeline.hosts],
        "server": [pipeline.server],
        "central learner": [*pipeline.central],
        "evaluator": [pipeline.evaluator],
    }
    for kind, stubs in kinds.items():
        for number, stub in enumerate(stubs):
            yield f"{kind} {number}" if len(stubs) > 1 else kind, stub

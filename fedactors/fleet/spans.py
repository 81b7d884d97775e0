"""When each actor worked, by the wall clock: for finding out where real time goes, never for any result."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from fedactors.fleet.fleet import Actor, Fleet
    from fedactors.fleet.pipeline import Pipeline

MOST = 200_000  # spans that an actor keeps; older ones are forgotten


class Span(NamedTuple):
    """A piece of work: what was done, from when to when in seconds since 1970."""

    what: str
    began: float
    ended: float


class Lane(NamedTuple):
    """The work of one actor."""

    name: str
    spans: list[Span]


@contextmanager
def noted(role: Any, what: str) -> Iterator[None]:
    """Note work of a role that keeps spans; others are left alone."""
    began, kept = time.time(), getattr(role, "spans", None)
    try:
        yield
    finally:
        if isinstance(kept, deque):
            kept.append(Span(what, began, time.time()))


def collect(fleet: Fleet, pipeline: Pipeline) -> list[Lane]:
    """Return when the actors of a pipeline worked. One that cannot be asked is left out; what it did died with it."""
    from fedactors.fleet.fleet import Fault

    lanes = []
    for name, actor in _named(pipeline):
        try:
            lanes.append(Lane(name, [Span(*span) for span in fleet.get(fleet.call(actor, "worked"))]))
        except Fault:
            continue
    return lanes


def _named(pipeline: Pipeline) -> Iterator[tuple[str, Actor]]:
    """Yield each actor once, with a name for its lane."""
    seen = list[Any]()
    kinds = {"client host": pipeline.hosts, "server": [pipeline.server], "central learner": pipeline.central}
    for kind, actors in {**kinds, "evaluator": [pipeline.evaluator]}.items():
        for number, actor in enumerate(actors):
            if not any(actor is other for other in seen):
                seen.append(actor)
                yield f"{kind} {number}" if len(actors) > 1 else kind, actor

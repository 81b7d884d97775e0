"""When each actor worked, by the wall clock: for finding out where real time goes, never for any result."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from fedactors.fleet.base import Actor, Fault, Fleet
    from fedactors.fleet.pipeline import Pipeline

MOST = 200_000  # spans that an actor keeps; of more, the older half is forgotten


class Span(NamedTuple):
    """A piece of work: what was done, from when to when in seconds since 1970."""

    what: str
    began: float
    ended: float


class Track(NamedTuple):
    """The work of one actor."""

    name: str
    spans: list[Span]


class Spans:
    """What somebody noted of its work: 17 bytes for each span, in a run of any length."""

    def __init__(self, most: int = MOST) -> None:
        self._most, self._names = most, dict[str, int]()
        self._what, self._began, self._ended = array("B"), array("d"), array("d")

    def note(self, what: str, began: float, ended: float) -> None:
        """Note a piece of work."""
        if len(self._what) == self._most:
            for column in (self._what, self._began, self._ended):
                del column[: self._most // 2]
        self._what.append(self._names.setdefault(what, len(self._names)))
        self._began.append(began)
        self._ended.append(ended)

    def __iter__(self) -> Iterator[Span]:
        names = list(self._names)
        return (Span(names[what], *times) for what, *times in zip(self._what, self._began, self._ended, strict=True))

    def take(self) -> list[Span]:
        """Return what was noted since this was last asked for."""
        found = list(self)
        for column in (self._what, self._began, self._ended):
            del column[:]
        return found


@contextmanager
def noted(role: Any, what: str) -> Iterator[None]:
    """Note work of a role that keeps spans; others are left alone."""
    began, kept = time.time(), getattr(role, "spans", None)
    try:
        yield
    finally:
        if isinstance(kept, Spans):
            kept.note(what, began, time.time())


def collect(fleet: Fleet, pipeline: Pipeline, on_fault: Callable[[Fault], None] = lambda fault: None) -> list[Track]:
    """Return when the actors of a pipeline worked.

    `on_fault` is told of one that cannot be asked, and is left out: it died when nobody waited for it.
    """
    from fedactors.fleet.base import Fault

    tracks = []
    for name, actor in _named(pipeline):
        try:
            tracks.append(Track(name, [Span(*span) for span in fleet.get(fleet.call(actor, "worked"))]))
        except Fault as fault:
            on_fault(fault)
    return tracks


def _named(pipeline: Pipeline) -> Iterator[tuple[str, Actor]]:
    """Yield each actor once, with a name for its lane."""
    seen = list[Any]()
    kinds = {"client host": pipeline.hosts, "server": [pipeline.server], "central learner": pipeline.central}
    for kind, actors in {**kinds, "evaluator": [pipeline.evaluator]}.items():
        for number, actor in enumerate(actors):
            if not any(actor is other for other in seen):
                seen.append(actor)
                yield f"{kind} {number}" if len(actors) > 1 else kind, actor

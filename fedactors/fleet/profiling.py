"""When each actor worked, by the wall clock: for finding out where real time goes, never for any result."""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

MOST = 200_000  # spans that an actor keeps; when there are more, the older half is dropped


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
    """The spans of one worker: 17 bytes for each, and at most `most` of them."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._names: dict[str, int] = {}
        self._what = array("B")
        self._began = array("d")
        self._ended = array("d")

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
        """Return what was noted since the last call of this method."""
        found = list(self)
        for column in (self._what, self._began, self._ended):
            del column[:]
        return found


@contextmanager
def noted(worker: Any, what: str) -> Iterator[None]:
    """Note work of a worker that keeps `spans`; do nothing for others."""
    spans = getattr(worker, "spans", None)
    began = time.time()
    try:
        yield
    finally:
        if isinstance(spans, Spans):
            spans.note(what, began, time.time())

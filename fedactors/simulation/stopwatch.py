"""Where the real time of a run goes: spans of this process and of the actors, as a table in the run folder.

Nothing that is measured here enters a digest, or any decision.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from fedactors.fleet.profiling import Spans, Track
from fedactors.run_files.tables import write_table

FILE = "wall.parquet"
T = TypeVar("T")


class Stopwatch:
    """Notes what this process does; the run began `since` seconds ago."""

    def __init__(self, since: float) -> None:
        now = time.time()
        self._origin = now - since
        self.spans = Spans()
        self.spans.note("start", self._origin, now)

    @contextmanager
    def during(self, what: str) -> Iterator[None]:
        """Note the time that the context lasts."""
        began = time.time()
        try:
            yield
        finally:
            self.spans.note(what, began, time.time())

    def each(self, what: str, items: Iterable[T]) -> Iterator[T]:
        """Yield `items`, and note how long it takes to make each."""
        waiting = iter(items)
        while True:
            with self.during(what):
                item = next(waiting, None)
            if item is None:
                return
            yield item

    def write(self, folder: Path, tracks: Sequence[Track]) -> None:
        """Write wall.parquet: a row per span, with its track, what was done, and ns since the run began."""
        import pyarrow as pa

        rows = [(track.name, span) for track in (Track("driver", list(self.spans)), *tracks) for span in track.spans]
        columns = {
            "track": pa.array([track for track, _ in rows]).dictionary_encode(),
            "what": pa.array([span.what for _, span in rows]).dictionary_encode(),
            "began": pa.array([self._nanoseconds(span.began) for _, span in rows], pa.int64()),
            "ended": pa.array([self._nanoseconds(span.ended) for _, span in rows], pa.int64()),
        }
        write_table(folder / FILE, pa.table(columns))

    def _nanoseconds(self, instant: float) -> int:
        return round((instant - self._origin) * 1e9)


def spent(began: float, before: Mapping[str, float], hourly: float | None) -> dict[str, float]:
    """Return how long a run that began at `began` has taken, and what that cost if an hour has a price.

    `before` says what it had taken when it was resumed.
    """
    seconds = time.perf_counter() - began
    found = {"wall_seconds": round(before.get("wall_seconds", 0.0) + seconds, 3)}
    return found if hourly is None else found | {"cost": round(before.get("cost", 0.0) + seconds / 3600 * hourly, 6)}

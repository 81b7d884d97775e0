"""Progress that is also logged elsewhere, round by round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from fedactors.simulation.progress import Progress
from fedactors.simulation.tracking.base import Tracker
from fedactors.simulation.tracking.tracker_thread import TrackerThread


class Tracked:
    """Shows progress, and logs every row of metrics to trackers. One that fails is a single warning."""

    def __init__(self, shown: Progress, trackers: Sequence[Tracker]) -> None:
        self.note = shown.note
        self._shown = shown
        self._trackers = trackers
        self._threads: list[TrackerThread] = []

    @contextmanager
    def over(self, name: str, rounds: int) -> Iterator[None]:
        """Show progress while the context lasts, and close the trackers at its end."""
        with ExitStack() as stack:
            for tracker in self._trackers:
                thread = TrackerThread(tracker)
                self._threads.append(thread)
                stack.callback(self._end, thread)
            stack.enter_context(self._shown.over(name, rounds))
            yield

    def round(self, row: Mapping[str, Any]) -> None:
        """Log a row, and show it."""
        for thread in self._threads:
            thread.log(row["round"], numbers(row))
            self._warn(thread)
        self._shown.round(row)

    def _end(self, thread: TrackerThread) -> None:
        thread.close()
        self._warn(thread)

    def _warn(self, thread: TrackerThread) -> None:
        if text := thread.warning():
            self.note(text)


def numbers(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the figures of a row of metrics under flat names: "outcomes/partial"."""
    found: dict[str, float] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            found |= {f"{key}/{inner}": float(number) for inner, number in value.items() if _is_number(number)}
        elif key != "round" and _is_number(value):
            found[key] = float(value)
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def flat(data: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a scenario under their key paths: ("server.rounds", 60)."""
    items = data.items() if isinstance(data, Mapping) else enumerate(data) if isinstance(data, list) else None
    if items is None:
        yield path, data
        return
    for key, value in items:
        yield from flat(value, f"{path}.{key}" if path else str(key))

"""Calls a tracker in a thread of its own, so that a run neither waits for it nor ends with it."""

from __future__ import annotations

import queue
import threading

from fedactors.simulation.tracking.base import Figures, Tracker

_PATIENCE = 30.0  # seconds at the end of a run, for each round that is still to be logged
# a library that asks again and again, as that of MLflow does, keeps to itself what the server has answered
_HANGS = "nothing was taken within {:.0f} s (no answer, or errors on which its library tries again)"


class TrackerThread:
    """Hands rounds on to a tracker, in order. After the first error of the tracker, nothing more is logged to it."""

    def __init__(self, tracker: Tracker, patience: float = _PATIENCE) -> None:
        self._tracker = tracker
        self._patience = patience
        self._rounds: queue.SimpleQueue[tuple[int, Figures] | None] = queue.SimpleQueue()
        self._moved = threading.Event()  # set whenever the tracker has come back from a call
        self._failure = ""
        self._told = False
        self._thread = threading.Thread(target=self._work, name=f"tracker {tracker.name}", daemon=True)
        self._thread.start()

    def log(self, round: int, figures: Figures) -> None:
        """Have the figures of a round logged, soon."""
        self._rounds.put((round, figures))

    def close(self) -> None:
        """Wait until all is written, as long as the tracker comes back from its calls."""
        self._rounds.put(None)
        while self._thread.is_alive():
            self._moved.clear()
            self._thread.join(0.05)
            if self._thread.is_alive() and not self._moved.wait(self._patience):
                self._failure = self._failure or _HANGS.format(self._patience)
                return

    def warning(self) -> str:
        """Return what went wrong, once; empty if nothing did."""
        if not self._failure or self._told:
            return ""
        self._told = True
        return f"{self._tracker.name}: {self._failure}; the run goes on, and is not logged there any more"

    def _work(self) -> None:
        try:
            self._tracker.begin()
            while (row := self._rounds.get()) is not None:
                self._tracker.log(*row)
                self._moved.set()
            self._tracker.close()
        except Exception as error:
            self._failure = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        self._moved.set()

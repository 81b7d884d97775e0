"""Stop signals of the process, as `KeyboardInterrupt` and as an event that a run looks at."""

from __future__ import annotations

import signal
import threading

asked = threading.Event()


def listen() -> None:
    """Make SIGTERM and SIGINT end the command as Ctrl-C does."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _interrupt)


def _interrupt(number: int, frame: object) -> None:
    """Raise KeyboardInterrupt. Raised inside a destructor the exception is lost, so a run also looks at the event."""
    asked.set()
    raise KeyboardInterrupt

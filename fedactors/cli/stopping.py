"""Stop signals of the process, as `KeyboardInterrupt` and as an event that a run looks at."""

from __future__ import annotations

import signal
import threading

INTERRUPTED = 130  # exit code of a command that was
asked = threading.Event()


def listen() -> None:
    """Make SIGTERM and SIGINT end the command as Ctrl-C does, and SIGHUP unless it is ignored, as under nohup."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _interrupt)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _interrupt)


def _interrupt(number: int, frame: object) -> None:
    """Raise KeyboardInterrupt. Raised inside a destructor the exception is lost, so a run also looks at the event.

    Where a terminal is closed, its shell sends SIGHUP, and the system sends another when the shell has ended: that one
    must not stop the saving that the first has begun.
    """
    asked.set()
    if number == signal.SIGHUP:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    raise KeyboardInterrupt

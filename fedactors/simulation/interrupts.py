"""Keeps signals that end a run out of what must not be done by half."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def put_off() -> Iterator[None]:
    """Let signals that end a run wait until the block is done; those that are ignored, as under nohup, stay ignored.

    Threads other than the main one never receive any.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    met: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        met.append(number)

    with ExitStack() as restored:  # which restores every handler, even if a signal comes in between
        for number in _ENDING:
            if (handler := signal.getsignal(number)) not in (None, signal.SIG_IGN):
                restored.callback(signal.signal, number, handler)
                signal.signal(number, note)
        yield
    for late in met[:1]:
        os.kill(os.getpid(), late)

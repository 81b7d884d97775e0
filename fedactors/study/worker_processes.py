"""Processes of this machine that run the cells of a study, and end when the study does."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import TypeVar

from fedactors.errors import FleetError

Work = TypeVar("Work")
T = TypeVar("T")


def each(function: Callable[[Work], T], work: Sequence[Work], jobs: int) -> Iterator[T]:
    """Yield what `function` makes of each piece of work, in order, `jobs` at a time in processes of this machine.

    Raises FleetError if the system ends one of them.
    """
    if jobs == 1 or len(work) < 2:
        yield from map(function, work)
        return
    context = multiprocessing.get_context("spawn")
    watched, held = context.Pipe(duplex=False)  # workers see its end when this process closes it, or ends
    workers = ProcessPoolExecutor(min(jobs, len(work)), context, initializer=end_with, initargs=(watched,))
    with ends_told(), workers as pool:
        futures = [pool.submit(function, one) for one in work]
        try:
            for future in futures:
                yield future.result()
        except BaseException:
            held.close()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
            held.close()
            watched.close()


@contextmanager
def ends_told() -> Iterator[None]:
    """Say in a sentence that the system has ended a process of a pool. Raises FleetError."""
    try:
        yield
    except BrokenProcessPool as error:
        raise FleetError(
            "a process of the study was ended by the system, as it does where memory runs out; runs that are complete"
            " stay, and the same command goes on (accepted: fewer runs at a time, --jobs)"
        ) from error


def end_with(watched: Connection) -> None:
    """End this worker at once when the process that started it closes the other end, or ends, however it does.

    What a run has written stays whole: each file appears at once. A terminal's Ctrl-C is left to the process above.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_when_closed(watched)


def end_when_closed(watched: Connection) -> None:
    """End this worker at once when the other end of `watched` is closed, which it also is when its process ends."""

    def wait() -> None:
        with suppress(OSError, EOFError):
            watched.recv_bytes()
        os._exit(1)

    threading.Thread(target=wait, name="end-with-parent", daemon=True).start()

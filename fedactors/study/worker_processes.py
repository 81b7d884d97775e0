"""Processes of this machine that run the cells of a study, and end when the study does."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from typing import TypeVar

from fedactors.errors import FleetError

Work = TypeVar("Work")
T = TypeVar("T")


def each(function: Callable[[Work], T], work: Sequence[Work], jobs: int) -> Iterator[T]:
    """Yield what `function` makes of each piece of work, in order, `jobs` at a time in processes of this machine.

    If it raises an Exception, no other work begins, what is being done is finished, and then that Exception is raised.
    After an interrupt, or when nobody asks for the rest, all processes are ended at once. Raises FleetError if the
    system ends one of them.
    """
    if jobs == 1 or len(work) < 2:
        yield from map(function, work)
        return
    context = multiprocessing.get_context("spawn")
    watched, held = context.Pipe(duplex=False)  # workers see its end when this process closes it, or ends
    failed = context.Event()
    workers = ProcessPoolExecutor(min(jobs, len(work)), context, initializer=_begin, initargs=(watched, failed))
    with ends_told(), workers as pool:
        futures = [pool.submit(_unless_failed, function, one) for one in work]
        try:
            for future in futures:
                yield future.result()
        except Exception:
            try:
                wait(futures)
            except KeyboardInterrupt:  # nobody waits for the others; the first error is the one to raise
                held.close()
            raise
        except BaseException:
            held.close()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
            held.close()
            watched.close()


_failed: list[Event] = []  # in a worker: set once a piece of work has failed


def _begin(watched: Connection, failed: Event) -> None:
    """Begin a worker."""
    _failed.append(failed)
    end_with(watched)


def _unless_failed(function: Callable[[Work], T], work: Work) -> T:
    """Return what `function` makes of a piece of work. Raises CancelledError if another one has failed before."""
    (failed,) = _failed
    if failed.is_set():
        raise CancelledError
    try:
        return function(work)
    except Exception:
        failed.set()
        raise


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

    What a run has written stays whole: each file appears at once. A terminal's Ctrl-C is left to the process above, and
    so is its end.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    end_when_closed(watched)


def end_when_closed(watched: Connection) -> None:
    """End this worker at once when the other end of `watched` is closed, which it also is when its process ends."""

    def wait() -> None:
        with suppress(OSError, EOFError):
            watched.recv_bytes()
        os._exit(1)

    threading.Thread(target=wait, name="end-with-parent", daemon=True).start()

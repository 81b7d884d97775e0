"""Finds processes that will never answer: stopped ones, and a fleet in which no process works any more.

A process that waits cannot be told from one that hangs. So what counts is whether any process of the fleet uses its
processor: as long as one does, an answer may still come.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_WORKING = 0.02  # of a processor: more than idle processes use for their upkeep
_STATES = {"T": "stopped", "S": "sleeping", "R": "running", "D": "waiting for a disk", "Z": "ended", "t": "traced"}


class Process(NamedTuple):
    """The state of a process, from the operating system."""

    state: str  # one letter, as ps shows it
    seconds: float  # of processor time, so far


class Watched(NamedTuple):
    """An actor's process; `process` is None if it has ended or its state is unknown."""

    worker: str  # its class
    node: str
    pid: int
    process: Process | None

    @property
    def stopped(self) -> bool:
        """Whether the process is stopped, by SIGSTOP for example."""
        return self.process is not None and self.process.state == "T"

    def __str__(self) -> str:
        state = "unknown" if self.process is None else _STATES.get(self.process.state, self.process.state)
        return f"{self.worker}, process {self.pid} on {self.node}: {state}"


class Watchdog:
    """Looks at the processes of a fleet now and then; `patience` is how long none may work, in seconds."""

    def __init__(self, patience: float, now: Callable[[], float] = time.monotonic) -> None:
        self._patience = patience
        self._now = now
        self._before: Mapping[int, float] = {}  # processor time of each at the last look
        self._looked = now()
        self._moved = self._looked
        self._suspects: frozenset[int] = frozenset()

    def reset(self) -> None:
        """Begin again: there is progress."""
        self._looked = self._now()
        self._moved = self._looked
        self._before = {}
        self._suspects = frozenset()

    def look(self, fleet: Sequence[Watched]) -> list[Watched]:
        """Return those that were stopped at the last look, and still are."""
        now = self._now()
        seconds = {one.pid: one.process.seconds for one in fleet if one.process is not None}
        if not self._before or self._any_worked(seconds, now - self._looked):
            self._moved = now
        self._before = seconds
        self._looked = now
        stopped = [one for one in fleet if one.stopped]
        still = [one for one in stopped if one.pid in self._suspects]
        self._suspects = frozenset(one.pid for one in stopped)
        return still

    def _any_worked(self, seconds: Mapping[int, float], since: float) -> bool:
        """Return whether a process has used its processor since the last look."""
        working = _WORKING * since
        return any(spent - self._before.get(pid, spent) > working for pid, spent in seconds.items())

    def stuck(self) -> bool:
        """Whether no process has worked for longer than `patience`."""
        return self._now() - self._moved > self._patience


def processes(pids: Iterable[int]) -> dict[int, Process]:
    """Return the states of processes of this machine; none where there is no /proc."""
    found = {}
    for pid in pids:
        try:
            text = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue
        state, *numbers = text.rpartition(")")[2].split()
        found[pid] = Process(state, (int(numbers[10]) + int(numbers[11])) / os.sysconf("SC_CLK_TCK"))
    return found


def end(pid: int) -> None:
    """End a process of this machine that does not answer."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return

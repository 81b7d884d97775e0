"""Finds processes that will never answer: stopped ones, and a fleet in which nothing moves any more.

A process that waits looks like one that hangs, so what counts is whether anybody works: as long as one process of the
fleet uses its processor, somebody may yet answer.
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
    """What an operating system says of a process."""

    state: str  # one letter, as ps shows it
    seconds: float  # of processor time, so far


class Watched(NamedTuple):
    """An actor's process; `process` is None if it is gone, or nobody can tell."""

    role: str
    node: str
    pid: int
    process: Process | None

    def __str__(self) -> str:
        state = "unknown" if self.process is None else _STATES.get(self.process.state, self.process.state)
        return f"{self.role}, process {self.pid} on {self.node}: {state}"


class Watchdog:
    """Looks at the processes of a fleet from time to time; `patience` is how long nothing may move, in seconds."""

    def __init__(self, patience: float, now: Callable[[], float] = time.monotonic) -> None:
        self._patience, self._now = patience, now
        self._before: Mapping[int, float] = {}
        self._looked = self._moved = now()
        self._suspects: frozenset[int] = frozenset()

    def rest(self) -> None:
        """Begin anew: something has moved."""
        self._moved = self._looked = self._now()
        self._before, self._suspects = {}, frozenset()

    def look(self, fleet: Sequence[Watched]) -> list[Watched]:
        """Return those that were stopped when looked at last, and still are."""
        now, found = self._now(), [one for one in fleet if one.process is not None]
        seconds = {one.pid: one.process.seconds for one in found if one.process is not None}
        working = _WORKING * (now - self._looked)
        if not self._before or any(spent - self._before.get(pid, spent) > working for pid, spent in seconds.items()):
            self._moved = now
        self._before, self._looked = seconds, now
        stopped = [one for one in found if one.process is not None and one.process.state == "T"]
        again = [one for one in stopped if one.pid in self._suspects]
        self._suspects = frozenset(one.pid for one in stopped)
        return again

    def stuck(self) -> bool:
        """Whether nothing has moved for longer than patience lasts."""
        return self._now() - self._moved > self._patience


def processes(pids: Iterable[int]) -> dict[int, Process]:
    """Return what this machine says of processes; of none where it has no /proc."""
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

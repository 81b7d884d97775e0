"""Record how much of a real machine is left for training; needs Python and numpy only, also on a Raspberry Pi.

`participation` follows Ruan et al. (AISTATS 2021), section 5.1: a training process beside a competitor that takes 0,
30, 50, 70 or 90 % of a processor, a fixed deadline, and in each round the share of the required epochs that were done.
Alone, the machine just finishes them. Training and competitor are bound to one core, where the system allows it, so
that they really compete.

`usage` samples how much of the processor is free, and when the load is low enough for training.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedactors.errors import TraceError
from fedactors.plan import SECOND
from fedactors.traces import timeline as timelines
from fedactors.traces.series import FULL_SHARE, PPM, Series, SeriesRow, build
from fedactors.traces.timeline import Timeline

_FILL = 0.95  # of the deadline that all epochs take when nothing competes
_WARM = 50  # steps
_TRIES = 5  # rounds
_START = 0.1  # s that a competitor is given to start
_CYCLE = 0.05  # s: the competitor works and rests once in this time
_STAT = Path("/proc/stat")
_COMPETITOR = """
import os, sys, time
share, cycle, core = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
if core >= 0:
    os.sched_setaffinity(0, {core})
while os.getppid() == int(sys.argv[4]):
    begin = time.monotonic()
    while time.monotonic() < begin + share * cycle:
        pass
    time.sleep((1 - share) * cycle)
"""
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Protocol:
    """How to record participation."""

    competitors: Sequence[int] = (0, 30, 50, 70, 90)  # percent of a processor
    rounds: int = 30
    deadline: float = 2.0  # s
    epochs: int = 5


class Training:
    """Softmax regression by plain SGD in numpy, step by step; the data are arbitrary, only its time matters."""

    def __init__(self, inputs: int = 784, classes: int = 10, batch: int = 10) -> None:
        self._x = np.sin(np.arange(batch * inputs, dtype=np.float32)).reshape(batch, inputs)
        self._y = np.eye(classes, dtype=np.float32)[np.arange(batch) % classes]
        self._w = np.zeros((inputs, classes), dtype=np.float32)

    def step(self) -> None:
        """Take one local step."""
        logits = self._x @ self._w
        chances = np.exp(logits - logits.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        self._w -= 0.01 / len(self._x) * (self._x.T @ (chances - self._y))


def participation(protocol: Protocol, tell: Tell = lambda text: None) -> Series:
    """Record the share of the required epochs done in each round, ppm; a row T0, T30, … for each competitor.

    Pieces are rounds. Used as a processor's share, a row gives what was left of a machine that alone just finishes.
    """
    training = Training()
    with _bound_to_one_core() as core:
        wanted = protocol.epochs * _steps_per_epoch(training, protocol)
        tell(f"{wanted} steps in {protocol.epochs} epochs, {protocol.deadline} s for each round")
        done: dict[int, list[int]] = {percent: [] for percent in protocol.competitors}
        for _ in range(protocol.rounds):  # in turn, so that other work of the machine slows all of them alike
            for percent, steps in done.items():
                with _competitor(percent, core):
                    steps.append(_round(training, wanted, protocol.deadline))
    rows = []
    for percent, steps in done.items():
        shares = np.array([FULL_SHARE * count // wanted for count in steps], np.int64)
        tell(f"T{percent}: {shares.mean() / 10_000:.1f} % of the epochs, deviation {shares.std() / 10_000:.1f}")
        length = round(protocol.deadline * SECOND)
        rows.append(SeriesRow(f"T{percent}", np.arange(len(steps)) * length, shares, len(steps) * length))
    return build(rows, PPM)


def usage(
    seconds: float, every: float = 1.0, load_below: float = 0.5, name: str = "here", tell: Tell = lambda text: None
) -> tuple[Series, Timeline]:
    """Record for `seconds` the free share of all processors, ppm, and when the load is low.

    The load is that of the last minute, for each processor. Windows count from midnight UTC of the first day, so that
    `t mod 24 h` is the time of day in UTC. Raises TraceError where /proc/stat cannot be read.
    """
    begin = time.time_ns()
    free: list[int] = []
    quiet: list[bool] = []
    cores = os.cpu_count() or 1
    before = _processor_time()
    for number in range(max(1, round(seconds / every))):
        _sleep_until(begin + round((number + 1) * every * SECOND))
        now = _processor_time()
        total, idle = (after - earlier for after, earlier in zip(now, before, strict=True))
        before = now
        free.append(
            min(FULL_SHARE, max(0, FULL_SHARE * idle // total)) if total > 0 else FULL_SHARE
        )  # iowait, a part, may fall
        quiet.append(os.getloadavg()[0] / cores < load_below)
        tell(f"{free[-1] / 10_000:.0f} % free, load {os.getloadavg()[0]:.2f}")
    step = round(every * SECOND)
    series = build([SeriesRow(name, np.arange(len(free)) * step, free, len(free) * step)], PPM)
    first = begin % (86_400 * SECOND)
    windows = [(first + k * step, first + (k + 1) * step) for k, calm in enumerate(quiet) if calm]
    return series, timelines.build([(name, windows, first, first + len(quiet) * step)])


def machine() -> str:
    """Return on what this is recorded: system, processor, cores, Python and numpy."""
    import platform

    model = platform.processor() or platform.machine()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    versions = f"Python {platform.python_version()}, numpy {np.__version__}"
    return f"{model}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, {versions}"


def _steps_per_epoch(training: Training, protocol: Protocol) -> int:
    """Return how many steps make an epoch, so that all epochs take most of the deadline when nothing competes."""
    for _ in range(_WARM):
        training.step()
    tries = [_round(training, sys.maxsize, protocol.deadline) for _ in range(_TRIES)]
    return max(1, int(_FILL * sorted(tries)[len(tries) // 2]) // protocol.epochs)


def _round(training: Training, wanted: int, deadline: float) -> int:
    """Train until `wanted` steps are done or the deadline is there, and wait for it; return the steps done."""
    end, done = time.monotonic() + deadline, 0
    while done < wanted:
        training.step()
        if time.monotonic() > end:  # a step that ends after the deadline does not count
            return done
        done += 1
    time.sleep(max(0.0, end - time.monotonic()))
    return done


@contextmanager
def _bound_to_one_core() -> Iterator[int]:
    """Keep this process on one core while the block runs; yield its number, -1 where that is not possible."""
    try:
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {max(before)})
    except (AttributeError, OSError):
        yield -1
        return
    try:
        yield max(before)
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def _competitor(percent: int, core: int) -> Iterator[None]:
    """Have another process take `percent` of a processor while the block runs."""
    if not percent:
        yield
        return
    words = [str(percent / 100), str(_CYCLE), str(core), str(os.getpid())]
    process = subprocess.Popen([sys.executable, "-c", _COMPETITOR, *words])
    try:
        time.sleep(_START)
        yield
    finally:
        process.kill()
        process.wait()


def _processor_time() -> tuple[int, int]:
    """Return (all, idle) ticks of all processors so far. Raises TraceError where the system does not give them."""
    try:
        ticks = [int(word) for word in _STAT.read_text(encoding="ascii").splitlines()[0].split()[1:9]]
    except (OSError, ValueError, IndexError) as error:
        raise TraceError(
            f"{_STAT}: cannot be read: {error} (accepted: Linux, where this file counts processor time)"
        ) from error
    return sum(ticks), ticks[3] + ticks[4]


def _sleep_until(instant: int) -> None:
    time.sleep(max(0.0, (instant - time.time_ns()) / SECOND))

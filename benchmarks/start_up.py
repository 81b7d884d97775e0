"""What a run on Ray does before its first round is done, as a timeline: which process does what, and since when.

    python -m benchmarks.start_up                 # the quickstart
    python -m benchmarks.start_up my.yaml

The run is a process of its own, which is looked at every 20 ms: Ray writes the method that an actor works on into its
command line. Each line is a process and what it does; a bar is drawn where it does so. `driver` ends with the first
line of progress, which comes after the first round.
"""

from __future__ import annotations

import argparse
import re
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import psutil

_EVERY = 0.02  # seconds
_WIDTH = 60  # characters of a bar
_ACTOR = re.compile(r"ray::(IDLE|ActorProcess)(?:\.(\w+))?")
_SERVICES = ("gcs_server", "raylet")


def doing(process: psutil.Process) -> str:
    """Return what a process of the run does, in a word or two; empty if it is none that matters."""
    words = process.cmdline()
    if not words:
        return ""
    if found := _ACTOR.match(words[0]):
        return found[2] or ("worker starts" if found[1] == "IDLE" else "actor, idle")
    if "default_worker.py" in " ".join(words):
        return "worker starts"
    name = words[0].rpartition("/")[2]
    return name if name in _SERVICES else ""


def looked_at(run: subprocess.Popen[str], began: float) -> dict[tuple[int, str], list[float]]:
    """Return the seconds at which each process was seen at each of its works, until the run writes its first round."""
    seen: dict[tuple[int, str], list[float]] = {}
    main = psutil.Process(run.pid)
    assert run.stdout is not None
    waiting = selectors.DefaultSelector()
    waiting.register(run.stdout, selectors.EVENT_READ)
    while True:
        now = time.perf_counter() - began
        seen.setdefault((run.pid, "driver"), []).append(now)
        for process, work in works(main):
            seen.setdefault((process.pid, work), []).append(now)
        if waiting.select(_EVERY) and (run.stdout.readline().startswith("round ") or run.poll() is not None):
            return seen


def works(main: psutil.Process) -> Iterator[tuple[psutil.Process, str]]:
    """Yield the processes below the run, and what each does."""
    for process in main.children(recursive=True):
        try:
            work = doing(process)
        except psutil.Error:
            continue
        if work:
            yield process, work


def drawn(seen: dict[tuple[int, str], list[float]]) -> Iterator[str]:
    """Yield the lines of the timeline."""
    end = max(max(times) for times in seen.values())
    numbers = {pid: number for number, pid in enumerate(dict.fromkeys(pid for pid, _ in seen))}
    for (pid, work), times in sorted(seen.items(), key=lambda one: one[1][0]):
        first, last = times[0], times[-1]
        if last - first < 5 * _EVERY:
            continue
        start, stop = (int(_WIDTH * second / end) for second in (first, last))
        bar = " " * start + "#" * max(1, stop - start)
        yield f"{numbers[pid]:>3} {work:<14}{first:>6.1f}{last:>6.1f}  |{bar:<{_WIDTH}}|"


def main() -> None:
    """Print the timeline of a run's start."""
    parser = argparse.ArgumentParser(description="Draw what a run does before its first round.")
    parser.add_argument("scenario", nargs="?", default="quickstart")
    scenario = parser.parse_args().scenario
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-u", "-m", "fedactors", "run", scenario, "--out", f"{folder}/run"]
        began = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
            seen = looked_at(run, began)
            for line in drawn(seen):
                print(line, flush=True)
            run.terminate()
            run.communicate()


if __name__ == "__main__":
    main()

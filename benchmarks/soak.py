"""A long run in one process: memory, files, threads and shared memory must not grow with the rounds.

    python -m benchmarks.soak                       # 10,000 rounds of a small scenario
    python -m benchmarks.soak --rounds 500 --fleet ray

What grows by design are notes of when each process worked, 17 bytes for a call, up to 200,000 of them, and columns of
tables, until 10,000 rows are together and written. Prints a line for every tenth of the run, and what grew from the
second tenth, when caches are warm, to the last one.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import psutil

import fedactors
from fedactors.simulation.progress import Silent

SCENARIO = Path(__file__).parents[1] / "scenarios/quickstart.yaml"


class Sizes(NamedTuple):
    """What a run holds at a moment: of this process and of those it has started."""

    round: int
    resident_mb: float  # of all processes; what they share counts in each of them
    own_mb: float  # of all processes, without what they share
    files: int
    threads: int
    shared: int
    children: int


class Noting(Silent):
    """Takes the sizes at every tenth of a run."""

    def __init__(self, rounds: int) -> None:
        self.every, self.seen = max(1, rounds // 10), list[Sizes]()

    def round(self, row: Mapping[str, Any]) -> None:
        if row["round"] % self.every == 0:
            self.seen.append(sizes(row["round"]))
            print("  ".join(f"{name} {value:,.6g}" for name, value in self.seen[-1]._asdict().items()), flush=True)


def sizes(number: int) -> Sizes:
    mine = psutil.Process()
    family = [mine, *mine.children(recursive=True)]
    memory = [process.memory_full_info() for process in family]
    dataset, own = sum(one.rss for one in memory) / 1e6, sum(one.uss for one in memory) / 1e6
    shared = len(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else 0
    return Sizes(number, dataset, own, mine.num_fds(), threading.active_count(), shared, len(family) - 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--fleet", choices=["local", "ray"], default="local")
    options = parser.parse_args()
    small = ["server.cohort=5", "server.local.epochs=1", "server.evaluate_every=100", f"server.rounds={options.rounds}"]
    noting = Noting(options.rounds)
    with tempfile.TemporaryDirectory(prefix="fedactors-soak-") as folder:
        scenario = fedactors.Scenario.load(SCENARIO, small)
        fedactors.run(scenario, Path(folder) / "run", fleet=options.fleet, progress=noting, report=False)
    _, warm, *_, last = noting.seen
    for name, before, after in zip(Sizes._fields[1:], warm[1:], last[1:], strict=True):
        print(f"{name}: {before:,.6g} after a fifth of the rounds, {after:,.6g} at the end")


if __name__ == "__main__":
    main()

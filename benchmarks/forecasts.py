"""How far the forecast of `fedactors check` is from what the benchmark's jobs then take: wall time, memory of a host.

python benchmarks/forecasts.py --repeat 3 --seconds 15
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
from jobs import JOBS, Job

SCRIPT = Path(__file__).resolve().parent / "peers" / "fedactors_job.py"
HOST = "ray::"  # how the processes of actors are called


def command(job: Job, rounds: int, fleet: str, *more: str) -> list[str]:
    return [sys.executable, str(SCRIPT), job.name, "--rounds", str(rounds), "--fleet", fleet, *more]


def foreseen(job: Job, rounds: int, fleet: str) -> dict[str, Any]:
    """Return the forecast of a process of its own."""
    done = subprocess.run(command(job, rounds, fleet, "--forecast"), capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def taken(job: Job, rounds: int, fleet: str) -> tuple[float, float]:
    """Return (seconds, bytes): from the start of the process to the end of the last round; of the largest host."""
    with subprocess.Popen(command(job, rounds, fleet), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        most = 0
        while process.poll() is None:
            most = max([most, *_dataset(process.pid, fleet)])
            time.sleep(0.3)
        assert process.stdout is not None
        row = json.loads(process.stdout.read().splitlines()[-1])
    return row["startup_seconds"] + row["train_seconds"], most


def _dataset(parent: int, fleet: str) -> list[int]:
    """Return the memory of each host: of Ray's actors, or of the process itself."""
    try:
        family = [psutil.Process(parent)] if fleet == "local" else psutil.Process(parent).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    found = []
    for process in family:
        try:
            if fleet == "local" or any(part.startswith(HOST) for part in process.cmdline()):
                found.append(process.memory_info().rss)
        except psutil.NoSuchProcess:
            continue
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15, help="of learning in each run, by the forecast")
    parser.add_argument("--fleet", choices=["ray", "local"], default="ray")
    parser.add_argument("--jobs", nargs="+", choices=list(JOBS), default=list(JOBS))
    options = parser.parse_args()
    print(f"{'job':10}{'rounds':>8}{'seconds: foreseen':>20}{'taken':>10}{'ratio':>8}", end="")
    print(f"{'MB: foreseen':>15}{'taken':>8}{'ratio':>8}")
    for job in (JOBS[name] for name in options.jobs):
        rounds = max(4, round(options.seconds / foreseen(job, 4, options.fleet)["seconds_per_round"]))
        ratios = []
        for _ in range(options.repeat):
            told = foreseen(job, rounds, options.fleet)
            seconds, size = taken(job, rounds, options.fleet)
            ratios.append((told["wall_seconds"] / seconds, told["host_bytes"] / size))
            print(
                f"{job.name:10}{rounds:8}{told['wall_seconds']:20.1f}{seconds:10.1f}{ratios[-1][0]:8.2f}"
                f"{told['host_bytes'] / 1e6:15.0f}{size / 1e6:8.0f}{ratios[-1][1]:8.2f}",
                flush=True,
            )
        middle = [statistics.median(column) for column in zip(*ratios, strict=True)]
        print(f"{job.name:10}{'median':>46}{middle[0]:8.2f}{middle[1]:31.2f}", flush=True)


if __name__ == "__main__":
    main()

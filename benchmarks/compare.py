"""Runs the same jobs in fedactors and in its peers, in turn on this machine, and prints medians, spreads and ratios.

python benchmarks/compare.py --repeat 5 --seconds 10 --jobs logistic,mlp --peers fedactors,flower
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from environments import python, version
from jobs import JOBS, Job

HERE = Path(__file__).resolve().parent
PILOT = 4  # rounds of the run that tells how many rounds to run; the first is start-up
TOLD = 0.02  # seconds that it takes at least: some peers write down their first rounds together


@dataclass(frozen=True)
class Peer:
    """How a peer is started."""

    environment: str
    script: str
    options: tuple[str, ...] = ()


PEERS = {
    "fedactors": Peer("project", "fedactors_job.py"),
    "fedactors-native": Peer("project", "fedactors_job.py", ("--bits", "native")),
    "fedactors-local": Peer("project", "fedactors_job.py", ("--fleet", "local")),
    "flower": Peer("flower", "flower_job.py"),
    "flower-lean": Peer("flower", "flower_job.py", ("--loop", "lean")),
    "pfl": Peer("pfl", "pfl_job.py"),
    "pfl-2": Peer("pfl", "pfl_job.py", ("--processes", "2")),
    "lean": Peer("project", "lean_job.py"),
    "lean-2": Peer("project", "lean_job.py", ("--processes", "2")),
}
USUAL = [name for name in PEERS if name not in ("fedactors-native", "fedactors-local")]
OURS = "fedactors"
COLUMNS = ("repeat", "job", "peer", "steps", "train_seconds", "steps_per_second", "startup_seconds")
COLUMNS += ("loss_first", "loss_last", "load_before")


class FailedError(Exception):
    """A peer did not do the job; the message says how."""


def measured(job: Job, name: str, rounds: int) -> dict[str, Any]:
    """Run a peer in a process of its own and return its line, checked. Raises FailedError if it did other work."""
    peer, load = PEERS[name], os.getloadavg()[0]
    command = [python(peer.environment), str(HERE / "peers" / peer.script), job.name, *peer.options]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    command += ["--rounds", str(rounds)]
    done = subprocess.run(command, env=os.environ | threads, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        raise FailedError(f"{name} {job.name}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    row: dict[str, Any] = json.loads(lines[-1])
    wanted = (rounds - 1) * job.round_steps
    if row["steps"] != wanted:
        raise FailedError(f"{name} {job.name}: {row['steps']} local steps instead of {wanted}")
    if not row["loss_last"] < row["loss_first"]:
        raise FailedError(f"{name} {job.name}: the loss went from {row['loss_first']} to {row['loss_last']}")
    return row | {"steps_per_second": row["steps"] / row["train_seconds"], "load_before": load}


def rounds_for(job: Job, name: str, seconds: float) -> int:
    """Return the rounds that take about so many seconds, found by a short run; at least `PILOT`."""
    rounds = PILOT
    while (pilot := measured(job, name, rounds))["train_seconds"] < TOLD:
        rounds *= PILOT
    return max(PILOT, 1 + round(seconds * pilot["steps_per_second"] / job.round_steps))


def campaign(jobs: Sequence[str], peers: Sequence[str], repeat: int, seconds: float) -> Iterable[dict[str, Any]]:
    """Yield a row per run: all peers one after the other, again and again."""
    for job in (JOBS[name] for name in jobs):
        rounds = {name: rounds_for(job, name, seconds) for name in peers}
        for number in range(repeat):
            for name in peers:
                yield {"repeat": number, **measured(job, name, rounds[name]), "peer": name}


def spread(values: Sequence[float], form: str) -> str:
    """Return "median (min-max)"."""
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"{middle:{form}} ({low:{form}}-{high:{form}})"


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the table of all jobs: speeds, and the ratio of ours to each peer repeat by repeat."""
    lines = []
    for job in dict.fromkeys(row["job"] for row in rows):
        mine = [row for row in rows if row["job"] == job]
        ours = {row["repeat"]: row["steps_per_second"] for row in mine if row["peer"] == OURS}
        head = f"{'peer':16}{'local steps/s':>32}{'fedactors is faster by':>32}{'start-up s':>22}"
        lines += [f"\n{job}", head, "-" * len(head)]
        for name in dict.fromkeys(row["peer"] for row in mine):
            runs = [row for row in mine if row["peer"] == name]
            speeds = [row["steps_per_second"] for row in runs]
            speed = spread(speeds, ",.0f" if min(speeds) >= 100 else ".1f")
            ratios = [ours[row["repeat"]] / row["steps_per_second"] for row in runs if row["repeat"] in ours]
            ratio = spread(ratios, ".2f") if ratios and name != OURS else ""
            start = spread([row["startup_seconds"] for row in runs], ".1f")
            lines.append(f"{name:16}{speed:>32}{ratio:>32}{start:>22}")
    return "\n".join(lines)


def machine(peers: Sequence[str]) -> str:
    """Return what the figures depend on."""
    used = {PEERS[name].environment for name in peers}
    found = [f"{package} {version(name, package)}" for name, package in _PACKAGES.items() if name in used]
    torch = version("project", "torch")
    return (
        f"{_processor()}, {os.cpu_count()} cores, Python {platform.python_version()}, torch {torch}, {', '.join(found)}"
    )


_PACKAGES = {"project": "fedactors", "flower": "flwr", "pfl": "pfl"}


def _processor() -> str:
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return names[0].partition(": ")[2] if names else platform.processor()


def _listed(accepted: Iterable[str]) -> Any:
    def parse(text: str) -> list[str]:
        unknown = [name for name in text.split(",") if name not in accepted]
        if unknown:
            raise argparse.ArgumentTypeError(f"found {', '.join(unknown)} (accepted: {', '.join(accepted)})")
        return text.split(",")

    return parse


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare the speed of federated learning simulators.")
    parser.add_argument("--jobs", type=_listed(JOBS), default=list(JOBS), help=",".join(JOBS))
    parser.add_argument("--peers", type=_listed(PEERS), default=USUAL, help=",".join(PEERS))
    parser.add_argument("--repeat", type=int, default=3, help="runs of each peer and job (default 3)")
    parser.add_argument("--seconds", type=float, default=10.0, help="of training in a run, about (default 10)")
    parser.add_argument("--out", type=Path, help="CSV file (default: a new one in benchmarks/results/)")
    options = parser.parse_args()
    out = options.out or HERE / "results" / f"{datetime.now():%Y%m%d-%H%M%S}.csv"
    out.parent.mkdir(parents=True, exist_ok=True)
    print(machine(options.peers), flush=True)
    rows = []
    with out.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for row in campaign(options.jobs, options.peers, options.repeat, options.seconds):
            rows.append(row)
            writer.writerow({name: row[name] for name in COLUMNS})
            file.flush()
            speed, loss = row["steps_per_second"], f"{row['loss_first']:.3f} -> {row['loss_last']:.3f}"
            told = f"{row['job']:9} {row['peer']:16} {speed:10,.1f} steps/s  loss {loss}  load {row['load_before']:.2f}"
            print(told, file=sys.stderr, flush=True)
    print(table(rows))
    print(f"\nmedian (min-max) of {options.repeat} runs; every run is in {out}")


if __name__ == "__main__":
    try:
        main()
    except FailedError as error:
        sys.exit(f"compare: {error}")

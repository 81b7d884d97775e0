"""What all peers share: the same modules, the same command line, the same line of JSON.

PyTorch is imported where it is needed: what drives fedactors does not, and would wait three seconds for it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
# Ray turns a node address of 127.0.0.1 into the machine's own; only this keeps all its ports on the loopback interface
os.environ |= {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}

from jobs import CLASSES, JOBS, Job

if TYPE_CHECKING:
    from torch import nn

WORKERS = 2  # processes of the peers that have several: one per core of the machine that the figures are from


def module(job: Job) -> nn.Module:
    """Return the job's model as a PyTorch user writes it."""
    from torch import nn

    if job.model == "resnet18":
        from residual_network import network

        return network()
    if job.model == "logistic":
        return nn.Sequential(nn.Flatten(), nn.Linear(60, CLASSES))
    if job.model == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, CLASSES))
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2),
        nn.Dropout(0.25), nn.Flatten(), nn.Linear(4096, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, CLASSES),
    )  # fmt: skip


def arguments(*more: tuple[str, dict[str, object]]) -> tuple[Job, argparse.Namespace]:
    """Parse JOB and --rounds, and what a peer adds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("job", choices=list(JOBS))
    parser.add_argument("--rounds", type=int, default=6, help="the first one counts as start-up")
    for name, options in more:
        parser.add_argument(name, **options)
    found = parser.parse_args()
    if found.rounds < 2:
        parser.error("--rounds: at least 2, the first one counts as start-up")
    return JOBS[found.job], found


def one_thread() -> None:
    """Compute with one thread from here on."""
    import torch

    torch.set_num_threads(1)


def process_age() -> float:
    """Return the seconds since this process began, imports and all."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")


class Rounds:
    """Notes the end of every round; the first round belongs to the start-up."""

    def __init__(self) -> None:
        self._ends: list[float] = []
        self._startup = 0.0

    def end(self) -> None:
        """Note that a round has ended now."""
        self._startup = self._startup or process_age()
        self._ends.append(time.perf_counter())

    def report(self, peer: str, job: Job, steps: int, losses: Sequence[float]) -> None:
        """Print the line of JSON; `steps` are those of all rounds but the first, `losses` one per round."""
        report(peer, job, steps, self._startup, self._ends[-1] - self._ends[0], losses)


def report(peer: str, job: Job, steps: int, startup: float, seconds: float, losses: Sequence[float]) -> None:
    """Print the line of JSON that `compare.py` reads."""
    line = {
        "peer": peer, "job": job.name, "steps": steps, "startup_seconds": round(startup, 3),
        "train_seconds": round(seconds, 4), "loss_first": round(losses[0], 4), "loss_last": round(losses[-1], 4),
    }  # fmt: skip
    print(json.dumps(line), flush=True)

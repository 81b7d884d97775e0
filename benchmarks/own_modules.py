"""Speed of modules of the user: under vmap beside our own layers, and one by one beside a hand-written loop.

    python benchmarks/own_modules.py --seconds 5

Calls of the two sides alternate in one process with one thread; the figure is the median of the ratios of neighbours.
Each call is one round: a cohort trained by `Trainer.learn`, or by the loop of `peers/lean_job.py`, from one model, with
the weighted sum of the updates.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, count, pairwise
from pathlib import Path
from typing import Any

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))

import lean_job
import torch
from common import CLASSES, JOBS, Job, module
from fedactors_job import _MODELS
from torch.nn.utils import parameters_to_vector

from fedactors import registry
from fedactors.algorithms.fedavg import FedAvg
from fedactors.data.holdings import Holdings
from fedactors.fleet import freed_memory
from fedactors.learning.chunks import chunk_sizes
from fedactors.learning.trainer import Trainer
from fedactors.learning.training_task import Chunk, TrainingData, TrainingTask
from fedactors.models.layers import Model
from fedactors.models.module_description import describe
from fedactors.models.module_layer import InputSpec, ModuleMaker
from fedactors.models.network import initial
from fedactors.own_code.user_code import Reference
from fedactors.workload import workload

Call = Callable[[int], object]  # takes the number of the round


@dataclass(frozen=True)
class Pair:
    """Two ways to do the same round, and how quick the first has to be."""

    name: str
    ours: str
    theirs: str
    wanted: float


PAIRS = (
    Pair("mlp", "module, vmap", "our layers, vmap", 0.8),
    Pair("cnn", "module, vmap", "our layers, vmap", 0.8),
    Pair("mlp", "module, one by one", "loop by hand", 0.9),
    Pair("cnn", "module, one by one", "loop by hand", 0.9),
    Pair("resnet18", "module, one by one", "loop by hand", 0.9),
)


def network(job: str) -> torch.nn.Module:
    """Return a job's module: the factory of the models below."""
    return module(JOBS[job])


def module_model(job: Job) -> Model:
    """Return the model of a job's module, run as it is: chains of known layers are not recognised."""
    factory = Reference(f"own_modules:{job.name}", "own_modules", "network", None)
    maker = ModuleMaker(factory, f'{{"job": "{job.name}"}}')
    return Model(job.name, job.shape, (describe(maker, (InputSpec("", job.shape),)),))


def layers_model(job: Job) -> Model:
    """Return the model of a job by our own layers."""
    options: dict[str, Any] = _MODELS[job.model]
    found: Model = registry.lookup("models", options["name"]).model_validate(options).build(job.shape, CLASSES)
    return found


class Held(Holdings):
    """Client k holds samples k n to k n + n - 1."""

    def __init__(self, samples: int) -> None:
        self._samples = samples

    def of(self, client: int) -> Any:
        import numpy as np

        return np.arange(client * self._samples, (client + 1) * self._samples, dtype=np.int64)


def trained(job: Job, model: Model, engine: str) -> Call:
    """Return rounds by an engine."""
    work = workload(job.samples, job.batch, epochs=1, steps=None)
    task = TrainingTask(model, FedAvg(), 1, (work,) * job.clients, engine=engine)
    x, y = job.everything()
    trainer = Trainer(task, TrainingData(x.reshape(-1, *job.shape), y.ravel(), Held(job.samples)))
    start = {"x": initial(model, 1)}
    ends = list(accumulate(chunk_sizes(job.cohort, model, "cpu"), initial=0))

    def call(version: int) -> object:
        learned: list[object] = []
        for first, last in pairwise(ends):
            rows = last - first
            columns = (0,) * rows, (version,) * rows, (job.client_steps,) * rows, (1 / job.cohort,) * rows
            learned.append(trainer.learn(Chunk(version, tuple(range(first, last)), *columns, job.lr), [start]))
        return learned

    return call


def by_hand(job: Job) -> Call:
    """Return rounds by the loop that a peer has."""
    net = module(job).train()
    start = parameters_to_vector(net.parameters()).detach()
    x, y = (torch.from_numpy(part) for part in job.everything())

    def call(version: int) -> object:
        torch.manual_seed(version)
        total = torch.zeros_like(start)
        for client in range(job.cohort):
            total.add_(lean_job.train(net, start, x[client], y[client], job)[0], alpha=1 / job.cohort)
        return total

    return call


def way(job: Job, name: str) -> Call:
    """Return rounds in one of the ways that `PAIRS` name."""
    if name == "loop by hand":
        return by_hand(job)
    model = layers_model(job) if name.startswith("our") else module_model(job)
    return trained(job, model, "sequential" if name.endswith("one by one") else "vmap")


def ratios(one: Call, other: Call, seconds: float) -> tuple[list[float], list[float]]:
    """Return seconds of calls of both, in turn, for about so long."""
    took: tuple[list[float], list[float]] = ([], [])
    began, numbers = time.perf_counter(), count()
    for call in (one, other):
        call(next(numbers))  # the first is start-up
    while not took[1] or time.perf_counter() - began < seconds:
        for call, found in zip((one, other), took, strict=True):
            at = time.perf_counter()
            call(next(numbers))
            found.append(time.perf_counter() - at)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the user's modules beside our layers and loops by hand.")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each pair (default 5)")
    parser.add_argument("--jobs", default="mlp,cnn,resnet18", help="of mlp, cnn, resnet18")
    options = parser.parse_args()
    torch.set_num_threads(1)
    freed_memory.keep()  # as workers do
    head = f"{'job':10}{'A':22}{'B':20}{'A steps/s':>12}{'B steps/s':>12}{'A / B':>8}{'wanted':>8}{'pairs':>7}"
    print(f"{head}\n{'-' * len(head)}")
    for pair in (pair for pair in PAIRS if pair.name in options.jobs.split(",")):
        job = JOBS[pair.name]
        ours, theirs = ratios(way(job, pair.ours), way(job, pair.theirs), options.seconds)
        speeds = [job.round_steps / statistics.median(took) for took in (ours, theirs)]
        faster = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
        told = f"{pair.name:10}{pair.ours:22}{pair.theirs:20}{speeds[0]:12,.0f}{speeds[1]:12,.0f}"
        print(f"{told}{faster:8.2f}{pair.wanted:8.1f}{len(ours):7}", flush=True)


if __name__ == "__main__":
    main()

"""Looks for the fastest hand-written loop of each job: variants by chunk size, on one and on two processes.

    python benchmarks/best_loop.py logistic --seconds 2 --processes 2

What was found, and what did not pay, is in NOTES.md.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))

import torch
from common import JOBS, Job, module
from loops import cnn, dense
from loops.work import Loop, Work, lean_loop, module_loop
from torch import Tensor, multiprocessing


def variants(job: Job, *, training: bool = True) -> dict[str, tuple[Loop, tuple[int, ...]]]:
    """Return name -> (loop, chunk sizes to try); the first one is the reference. Dropout acts only in `training`."""
    network = module(job).train(training)
    found: dict[str, tuple[Loop, tuple[int, ...]]] = {
        "lean": (lean_loop(network), (1,)),
        "module": (module_loop(network), (1,)),
    }
    if job.model == "cnn":
        return found | cnn.variants(training=training)
    found["vmap"] = dense.vmap_loop, (4, 20, 100)
    found["bmm"] = dense.bmm_loop, (1, 4, 8, 20, 50, 100)
    if job.model == "mlp":
        found["span"] = dense.span_loop(keep_gram=False), (1, 4, 10, 20)
        found["span, Gram kept"] = dense.span_loop(keep_gram=True), (1, 4, 10, 20)
    return found


def work_of(job: Job, data: tuple[Tensor, Tensor], chunk: int, lot: int) -> Work:
    """Return a round's work; `lot` decides who and in which order."""
    torch.manual_seed(0)
    model = [parameter.detach() for parameter in module(job).parameters()]
    draws = torch.Generator().manual_seed(lot)
    cohort = torch.randperm(job.clients, generator=draws)[: job.cohort].tolist()
    order = torch.stack([torch.randperm(job.samples, generator=draws) for _ in cohort])
    return Work(model, *data, cohort, order, job.batch, job.lr, chunk)


def difference(job: Job, data: tuple[Tensor, Tensor], name: str, chunk: int) -> float:
    """Return the largest difference of a variant's update from the reference's, relative to the largest entry."""
    loops, work = variants(job, training=False), work_of(job, data, chunk, 0)
    (wanted, loss), (sums, found) = loops["lean"][0](work), loops[name][0](work)
    most = max(float(tensor.abs().max()) for tensor in wanted)
    apart = max(float((a - b).abs().max()) for a, b in zip(wanted, sums, strict=True)) / most
    return max(apart, abs(loss - found))


def speed(job: Job, name: str, chunk: int, seconds: float, barrier: Any, results: Any) -> None:
    """Put local steps per second, of the wall and of a core, into `results`; every round has another cohort."""
    torch.set_num_threads(1)
    data = tuple(torch.from_numpy(part) for part in job.everything())
    loop, works = variants(job)[name][0], [work_of(job, data, chunk, lot) for lot in range(8)]
    for work in works:  # everything that is kept between rounds is there after this
        loop(work)
    barrier.wait()
    began, computing, rounds = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - began < seconds:
        loop(works[rounds % len(works)])
        rounds += 1
    steps = rounds * job.round_steps
    results.put((steps / (time.perf_counter() - began), steps / (time.process_time() - computing)))


def together(job: Job, name: str, chunk: int, seconds: float, processes: int) -> tuple[float, float]:
    """Return the local steps of several processes at once, per second of the wall clock and per second of a core.

    The latter, times the processes, is what the former would be if nobody else used the machine.
    """
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(processes), context.SimpleQueue()
    started = [
        context.Process(target=speed, args=(job, name, chunk, seconds, barrier, results)) for _ in range(processes)
    ]
    for process in started:
        process.start()
    found = [results.get() for _ in started]
    for process in started:
        process.join()
    return sum(wall for wall, _ in found), sum(core for _, core in found) / processes


def main() -> None:
    parser = argparse.ArgumentParser(description="Find the fastest loop for a job.")
    parser.add_argument("job", choices=list(JOBS))
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--variants", default="", help="only those whose name contains this")
    options = parser.parse_args()
    job = JOBS[options.job]
    torch.set_num_threads(1)
    data = tuple(torch.from_numpy(part) for part in job.everything())
    print(f"{job.name}, {options.processes} processes, load {os.getloadavg()[0]:.2f}")
    for name, (_, chunks) in variants(job).items():
        for chunk in chunks if options.variants in name else ():
            apart = difference(job, data, name, chunk)
            wall, core = together(job, name, chunk, options.seconds, options.processes)
            speeds = f"{wall:11,.0f} steps/s {core:11,.0f} per core-second"
            print(f"{name:20} chunk {chunk:4} {speeds}   differs by {apart:.1e}", flush=True)


if __name__ == "__main__":
    main()

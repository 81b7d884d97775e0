"""Forecasts time and memory of a run on this machine: `calibration` times the engine, the clock gives the steps.

What Ray, moving models and recording take in a round are figures measured once, see benchmarks/NOTES.md; so is the
start.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import torch

from fedactors.fleet.base import device_of
from fedactors.fleet.chunk_placement import spread
from fedactors.fleet.messages import RoundTask
from fedactors.job_limits import usable_cores
from fedactors.plan import Plan
from fedactors.simulation.checks.budget import Budget
from fedactors.simulation.checks.calibration import Speeds, measure
from fedactors.simulation.checks.memory_forecast import evaluation_bytes, host_bytes
from fedactors.simulation.feedback import heeding
from fedactors.simulation.fleet_choice import has_few_vectors
from fedactors.simulation.prepared import Prepared
from fedactors.simulation.tasks import task_of

_ROUNDS = 20  # looked at
IMPORTING = 2.9  # seconds, if the time to import torch was not measured
# seconds besides learning, of all processes together, by the way of calls: of a round, and of each byte that moves
_ROUND = {"ray": 0.014, "socket": 0.012, "local": 0.005}
_BYTE = {"ray": 12e-9, "socket": 3e-9, "local": 3e-9}
_RECORDING = {"ray": 0, "local": 10**8}  # bytes that recording takes in the process of a host


def forecast(
    prepared: Prepared,
    kind: str = "ray",
    actors: int | None = None,
    importing: float = IMPORTING,
    budget: Budget | None = None,
    rounds: int = _ROUNDS,
) -> dict[str, Any]:
    """Return the wall time in seconds and the memory in bytes that a run will take, and what they were made from.

    `kind` is the fleet, "ray" or "local"; `actors` take the place of those in the scenario's cluster; `importing` are
    the seconds that one process alone takes to import torch here. At most so many `rounds` are looked at. What the
    `budget` does not allow to be timed is estimated from one step, or from the model's operations, and noted there.
    """
    with _one_thread():
        return _timed(prepared, kind, actors, importing, budget, rounds)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Have torch compute in one thread, as a host of clients does, while the context lasts."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _timed(
    prepared: Prepared, kind: str, actors: int | None, importing: float, budget: Budget | None, rounds: int
) -> dict[str, Any]:
    """Return what `forecast` returns, timed with the threads that torch has."""
    cluster = prepared.scenario.cluster
    cores = usable_cores()
    hosts, busy = (1, 1) if kind == "local" else (actors or cluster.actors or cores, cores)
    device = _device(prepared)
    began = time.perf_counter()
    clock = prepared.clock()
    plans = list(islice(heeding(clock), rounds))
    tasks = [task_of(plan, prepared, device, last=False) for plan in plans]
    speeds = measure(prepared, tasks, device, hosts, budget)
    way = _way(prepared, kind)
    each = sum(round_seconds(task, prepared, speeds, hosts, busy, way) for task in tasks) / max(1, len(tasks))
    count = len(tasks) if clock.ended_because else _rounds(prepared, plans)
    return {
        "fleet": kind,
        "actors": hosts,
        "wall_seconds": start_seconds(kind, hosts, cores, importing) + _transforming(prepared) + count * each,
        "seconds_per_round": each,
        "steps_per_second": _steps(tasks) / each if each else 0.0,
        "host_bytes": _host_bytes(prepared, kind),
        "gpu_bytes": _gpu_bytes(prepared) if device == "cuda" else 0,
        "calibration_seconds": time.perf_counter() - began,
    }


def _transforming(prepared: Prepared) -> float:
    """Return the seconds that transforms at random take before the first round."""
    scenario = prepared.scenario
    return scenario.task.transform_seconds(scenario.seed, scenario.devices)


def _device(prepared: Prepared) -> str:
    """Return the device type of the client hosts here."""
    return device_of(prepared.scenario.cluster.gpus_per_actor if torch.cuda.is_available() else 0.0)


def _way(prepared: Prepared, kind: str) -> str:
    """Return how calls reach the hosts: "ray", "socket" for those beside Ray, or "local"."""
    scenario = prepared.scenario
    return "socket" if kind == "ray" and has_few_vectors(prepared) and not scenario.cluster.address else kind


def _steps(tasks: Sequence[RoundTask]) -> float:
    """Return the local steps of a round on average."""
    return sum(chunk.cost for task in tasks for chunk in task.chunks) / max(1, len(tasks))


def _rounds(prepared: Prepared, plans: Sequence[Plan]) -> int:
    """Return the rounds of a run whose first `plans` are given, if later ones take as long in virtual time."""
    server = prepared.scenario.server
    if server.until is None or not plans or not plans[-1].ready:
        return int(server.rounds)
    return int(min(server.rounds, server.until * len(plans) // plans[-1].ready))


def _process_bytes() -> int:
    """Return the most memory that this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def start_seconds(kind: str, hosts: int, cores: int, importing: float) -> float:
    """Return the seconds before the first round, without the data: importing torch is the measure of all that starts.

    On Ray, its services and the driver come first, then all actors at once, the server and the evaluator among them.
    """
    return 1.5 * importing if kind == "local" else importing * (2 + 2 * max(1.0, (hosts + 2) / cores))


def round_seconds(task: RoundTask, prepared: Prepared, speeds: Speeds, hosts: int, cores: int, way: str) -> float:
    """Return the seconds of a round: those of its longest path, or of all its work on all cores, whatever is more.

    Calls go by `way` of "ray", a "socket", or within one process on the "local" fleet.
    """
    server = prepared.scenario.server
    info = prepared.info
    loads = [0.0] * hosts
    costs = [chunk.cost * speeds.step for chunk in task.chunks]
    for chunk, place in enumerate(spread([chunk.cost for chunk in task.chunks], hosts, 0)):
        loads[place] += costs[chunk]
    payload = prepared.payload
    moved = (payload.down + payload.up) * prepared.model_bytes * (min(hosts, len(task.chunks)) + 1)
    beside = _ROUND[way] + moved * _BYTE[way]
    evaluated = info.evaluated_size * speeds.evaluated / server.evaluate_every
    gradient_sums = (
        0.0 if server.dissimilarity_every is None else info.train_size * speeds.sample / server.dissimilarity_every
    )
    work = sum(costs) + speeds.central + beside + evaluated + gradient_sums
    return max(max(loads) + speeds.central + beside / cores, work / cores)


def _host_bytes(prepared: Prepared, kind: str) -> int:
    """Return the memory of the process of a host, which on the "local" fleet also records and evaluates."""
    most = max(_process_bytes(), host_bytes(prepared) + (evaluation_bytes(prepared) if kind == "local" else 0))
    return most + _data_bytes(prepared) + _RECORDING[kind]


def _gpu_bytes(prepared: Prepared) -> int:
    """Return the GPU memory of a host: what the calibration took, and the training samples."""
    return int(torch.cuda.max_memory_allocated()) + _data_bytes(prepared)


def _data_bytes(prepared: Prepared) -> int:
    """Return the size of the training samples; the hosts of a machine share them, and count them each."""
    return prepared.train_bytes

"""Forecasts time and memory of a run on this machine: its engine is timed for two seconds, the clock gives the steps.

Nothing is loaded: the engine runs on noise of the data's shape. What Ray, moving models and recording take in
a round are figures measured once, see benchmarks/NOTES.md; so is the start.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from fedactors.data.base import Info
from fedactors.data.evaluation_set import EvaluationSet
from fedactors.fleet.chunk_placement import spread
from fedactors.fleet.messages import RoundTask
from fedactors.learning.central_learner import CentralLearner
from fedactors.learning.chunks import joined
from fedactors.learning.evaluation import ModelEvaluator
from fedactors.learning.trainer import Trainer
from fedactors.learning.training_task import Chunk, TrainingData, TrainingTask
from fedactors.models.network import initial
from fedactors.plan import Plan
from fedactors.simulation.feedback import heeding
from fedactors.simulation.fleet_choice import is_near
from fedactors.simulation.prepare import BYTES_PER_PARAMETER, Prepared
from fedactors.simulation.tasks import task_of
from fedactors.workload import workload

_ROUNDS = 20  # looked at
_SECONDS = 0.7  # of timing for each of the engine, the server's learning and an evaluation
_SAMPLES = 1_000  # of noise
IMPORTING = 2.9  # seconds, if the time to import torch was not measured
# seconds besides learning, of all processes together, by the way of calls: of a round, and of each byte that moves
_ROUND = {"ray": 0.014, "near": 0.012, "local": 0.005}
_BYTE = {"ray": 12e-9, "near": 3e-9, "local": 3e-9}
_RECORDING = {"ray": 0, "local": 10**8}  # bytes that recording takes in the process of a host


class Speeds(NamedTuple):
    """Seconds of one core (or GPU) for one of each."""

    step: float  # local step
    central: float  # round of the server's own learning
    evaluated: float  # test sample
    sample: float  # forward and backward, in a local step


@dataclass(frozen=True)
class _Noise:
    """The samples of each client: some of the same few."""

    held: NDArray[np.int64]

    def of(self, client: int) -> NDArray[np.int64]:
        return np.arange(self.held[client], dtype=np.int64) % _SAMPLES


def forecast(
    prepared: Prepared, kind: str = "ray", actors: int | None = None, importing: float = IMPORTING
) -> dict[str, Any]:
    """Return the wall time in seconds and the memory in bytes that a run will take, and what they were made from.

    `kind` is the fleet, "ray" or "local"; `actors` take the place of those in the scenario's cluster; `importing` are
    the seconds that one process alone takes to import torch here.
    """
    cluster = prepared.scenario.cluster
    cores = os.cpu_count() or 1
    hosts, busy = (1, 1) if kind == "local" else (actors or cluster.actors or cores, cores)
    device = _device(prepared)
    torch.set_num_threads(1)
    began = time.perf_counter()
    clock = prepared.clock()
    plans = list(islice(heeding(clock), _ROUNDS))
    tasks = [task_of(plan, prepared, device, last=False) for plan in plans]
    speeds = measure(prepared, tasks, device, hosts)
    way = _way(prepared, kind)
    each = sum(round_seconds(task, prepared, speeds, hosts, busy, way) for task in tasks) / max(1, len(tasks))
    count = len(tasks) if clock.ended_because else _rounds(prepared, plans)
    return {
        "fleet": kind,
        "actors": hosts,
        "wall_seconds": start_seconds(kind, hosts, cores, importing) + count * each,
        "seconds_per_round": each,
        "steps_per_second": _steps(tasks) / each if each else 0.0,
        "host_bytes": _process_bytes() + _data_bytes(prepared) + _RECORDING[kind],
        "gpu_bytes": _gpu_bytes(prepared) if device == "cuda" else 0,
        "calibration_seconds": time.perf_counter() - began,
    }


def _device(prepared: Prepared) -> str:
    """Return the device type of the client hosts here."""
    return "cuda" if prepared.scenario.cluster.gpus_per_actor and torch.cuda.is_available() else "cpu"


def _way(prepared: Prepared, kind: str) -> str:
    """Return how calls reach the hosts: "ray", "near" for the sockets beside Ray, or "local"."""
    scenario = prepared.scenario
    return "near" if kind == "ray" and is_near(prepared) and not scenario.cluster.address else kind


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

    Calls go by `way` of "ray", a "near" line, or within one process on the "local" fleet.
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
    evaluated = info.test_size * speeds.evaluated / server.evaluate_every
    gradient_sums = (
        0.0 if server.dissimilarity_every is None else info.train_size * speeds.sample / server.dissimilarity_every
    )
    work = sum(costs) + speeds.central + beside + evaluated + gradient_sums
    return max(max(loads) + speeds.central + beside / cores, work / cores)


def measure(prepared: Prepared, tasks: Sequence[RoundTask], device: str, hosts: int) -> Speeds:
    """Time the engine on noise, in chunks as the first rounds have them."""
    server = prepared.scenario.server
    x, y = _noise(prepared.info)
    training_task = TrainingTask(
        prepared.model,
        server.algorithm,
        prepared.scenario.seed,
        tuple(prepared.workloads),
        prepared.setting,
        engine=prepared.scenario.task.engine,
        clip=server.local.clip,
    )
    trainer = Trainer(training_task, TrainingData(x, y, _Noise(prepared.held)), device)
    step = sample = 0.0
    chunk = _longest(trainer, tasks, hosts)
    if chunk is not None and chunk.cost:
        step = _step_seconds(trainer, chunk, _sent(prepared))
        sample = step / prepared.workloads[chunk.clients[0]].batch
    evaluated = _evaluated(prepared, x, y, device)
    return Speeds(step, _central(prepared, training_task, x, y, device), evaluated, sample)


def _noise(info: Info) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """Return samples of the data's shape, and labels of their kind."""
    draws = np.random.Generator(np.random.Philox(0))
    x = draws.random((_SAMPLES, *info.input_shape), dtype=np.float32)
    y = draws.integers(0, info.classes, (_SAMPLES, *info.label_shape))
    return x, y.astype(np.float32) if info.kind in ("value", "multi-label") else y


def _sent(prepared: Prepared) -> dict[str, NDArray[np.float32]]:
    """Return what clients are sent in the first round; the model stands for what a central learner finds before it."""
    algorithm = prepared.scenario.server.algorithm
    names = algorithm.sends + (algorithm.finds if algorithm.centre == "before" else ())
    start = initial(prepared.model, 0)
    state = {name: value.numpy() for name, value in algorithm.start(torch.from_numpy(start)).items()}
    return {name: state.get(name, start) for name in names}


def _longest(trainer: Trainer, tasks: Sequence[RoundTask], hosts: int) -> Chunk | None:
    """Return the chunks with the most steps that one of the hosts trains together, joined; None if there are none."""
    shares = [trainer.groups(task.chunks[: -(-len(task.chunks) // hosts)]) for task in tasks]
    together = [joined(group) for groups in shares for group in groups]
    return max(together, key=lambda chunk: chunk.cost, default=None)


def _step_seconds(trainer: Trainer, chunk: Chunk, sent: dict[str, NDArray[np.float32]]) -> float:
    """Return the seconds of a local step."""
    most = max(chunk.steps)
    each, steps = _each(lambda steps: _learn(trainer, _cut(chunk, steps), sent), min(2, most), most)
    return each * steps / _cut(chunk, steps).cost


def _evaluated(prepared: Prepared, x: NDArray[np.float32], y: NDArray[Any], device: str) -> float:
    """Return the seconds that the evaluation of a test sample takes; 0 if there are none."""
    size = min(prepared.info.test_size, _SAMPLES)
    if not size:
        return 0.0
    start = initial(prepared.model, 0)

    def evaluate(some: int) -> None:
        ModelEvaluator(prepared.model, EvaluationSet(x[:some], y[:some]), device).evaluate(start)

    each, _ = _each(evaluate, min(16, size), size)
    return each


def _learn(trainer: Trainer, chunk: Chunk, sent: dict[str, NDArray[np.float32]]) -> None:
    trainer.learn(chunk, [sent] * (1 + max(chunk.bases)), [None] * len(chunk.clients))


def _cut(chunk: Chunk, most: int) -> Chunk:
    """Return the chunk with at most `most` steps of each client."""
    return chunk._replace(steps=tuple(min(steps, most) for steps in chunk.steps))


def _central(prepared: Prepared, training_task: TrainingTask, x: NDArray[Any], y: NDArray[Any], device: str) -> float:
    """Return the seconds that the server learns in a round."""
    work = training_task.algorithm.central_work(prepared.setting)
    if not work.wanted:
        return 0.0
    size = min(max(1, prepared.setting.central), _SAMPLES)  # a regulariser looks at one sample
    learner = CentralLearner(training_task.central_model, 0, x[:size], y[:size], device)
    start = torch.from_numpy(initial(prepared.model, 0))

    def learn(batch: int) -> None:
        learner.learn(start, 0.01, workload(size, batch, epochs=None, steps=1), 0)

    most = min(work.batch, size)  # samples of a batch, as far as there is noise for it
    each, _ = _each(learn, min(16, most), most)
    return each * work.batch * work.wanted


def _each(call: Callable[[int], object], few: int, most: int) -> tuple[float, int]:
    """Return (seconds of one unit, units timed) of a call that takes a number of units, `most` if that is not long.

    A model may be so large that `few` take longer than all of the timing should.
    """
    call(few)  # what is done once is not timed
    began = time.perf_counter()
    call(few)
    once = time.perf_counter() - began
    units = max(few, min(most, int(few * _SECONDS / 3 / once)))
    return (once if once > _SECONDS else _timed(lambda: call(units))) / units, units


def _timed(call: Callable[[], object]) -> float:
    """Return the median of several durations of a call, after one that is not timed."""
    call()
    durations: list[float] = []
    while len(durations) < 2 or (sum(durations) < _SECONDS and len(durations) < 50):
        began = time.perf_counter()
        call()
        durations.append(time.perf_counter() - began)
    return float(np.median(durations))


def _gpu_bytes(prepared: Prepared) -> int:
    """Return the GPU memory of a host: what the calibration took, and the training samples."""
    return int(torch.cuda.max_memory_allocated()) + _data_bytes(prepared)


def _data_bytes(prepared: Prepared) -> int:
    """Return the size of the training samples; the hosts of a machine share them, and count them each."""
    return prepared.info.train_size * prod(prepared.info.input_shape) * BYTES_PER_PARAMETER

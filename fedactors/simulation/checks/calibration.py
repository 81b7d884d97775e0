"""Times the engine of a run on this machine, for two seconds or as far as a budget goes.

Nothing is loaded: the engine runs on noise of the data's shape.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from fedactors.data.base import Info, LabelledSamples
from fedactors.data.evaluation_set import EvaluationSet
from fedactors.data.holdings import Part, raw
from fedactors.fleet.messages import RoundTask
from fedactors.learning.central_learner import CentralLearner
from fedactors.learning.chunks import evaluation_batch, joined
from fedactors.learning.evaluation import ModelEvaluator
from fedactors.learning.trainer import Trainer
from fedactors.learning.training_task import Chunk, TrainingData, TrainingTask
from fedactors.models.network import initial
from fedactors.simulation.checks.budget import Budget
from fedactors.simulation.prepared import Prepared
from fedactors.simulation.training_tasks import training_task_of
from fedactors.workload import workload

_SECONDS = 0.7  # of timing for each of the engine, the server's learning and an evaluation
_LEAST_SECONDS = 2.0  # of timing, however little of a budget is left
_STEPS = 20  # that timing takes at least, in steps of one client
_SLOW_FLOPS = 1e10  # operations a second that every machine has
_SAMPLES = 1_000  # of noise


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

    def signature(self) -> Iterator[Part]:
        yield raw(self.held)


def measure(
    prepared: Prepared, tasks: Sequence[RoundTask], device: str, hosts: int, budget: Budget | None = None
) -> Speeds:
    """Time the engine on noise, in chunks as the first rounds have them, as far as the `budget` goes."""
    x, y = _noise(prepared.info)
    training_task = training_task_of(prepared)
    trainer = Trainer(training_task, TrainingData(x, y, _Noise(prepared.held)), device)
    if (
        found := _unaffordable(prepared, trainer, tasks, budget, lambda: _evaluated(prepared, x, y, device))
    ) is not None:
        return found
    step = sample = 0.0
    chunk = _longest(trainer, tasks, hosts)
    if chunk is not None and chunk.cost:
        step = _step_seconds(trainer, chunk, _sent(prepared))
        sample = step / prepared.workloads[chunk.clients[0]].batch
    evaluated = _evaluated(prepared, x, y, device)
    return Speeds(step, _central(prepared, training_task, LabelledSamples(x, y), device), evaluated, sample)


def _noise(info: Info) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """Return samples of the data's shape, and labels of their kind."""
    draws = np.random.Generator(np.random.Philox(0))
    x = draws.random((_SAMPLES, *info.input_shape), dtype=np.float32)
    y = draws.integers(0, info.classes, (_SAMPLES, *info.label_shape))
    return x, y.astype(np.float32) if info.kind in ("value", "multi-label") else y


def _sent(prepared: Prepared) -> dict[str, NDArray[np.float32]]:
    """Return what clients are sent in the first round; the model stands for what a central learner finds before it."""
    algorithm = prepared.scenario.server.algorithm
    names = algorithm.sends + (algorithm.central_results if algorithm.centre == "before" else ())
    start = initial(prepared.model, 0)
    state = {name: value.numpy() for name, value in algorithm.start(torch.from_numpy(start)).items()}
    broadcast = {name: np.array([value], np.float32) for name, value in prepared.broadcast_values.items()}
    return {name: state.get(name, start) for name in names} | broadcast


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

    each, units = _each(evaluate, min(16, size), size)
    at_once = min(evaluation_batch(prepared.model), prepared.info.test_size)
    return each if units >= at_once else _in_batches(evaluate, each * units, units, at_once)


def _in_batches(evaluate: Callable[[int], None], took: float, units: int, at_once: int) -> float:
    """Return the seconds of a sample among `at_once`, of which `units` took `took` seconds.

    What an evaluation takes however many samples it has, as reading a large model does, is told by a larger one.
    """
    more = min(4 * units, at_once, _SAMPLES)
    began = time.perf_counter()
    evaluate(more)
    growing = max(0.0, (time.perf_counter() - began - took) / (more - units))
    return growing + max(0.0, took - growing * units) / at_once


def _unaffordable(
    prepared: Prepared,
    trainer: Trainer,
    tasks: Sequence[RoundTask],
    budget: Budget | None,
    evaluated: Callable[[], float],
) -> Speeds | None:
    """Return an estimate, and note it, if timing would take longer than the budget allows; else None.

    It is made from one step of one client, or from the model's operations where that step is too long itself. What a
    step takes beyond its operations, as calls of many layers do, is taken once for clients that train together and
    for samples that are evaluated together. An evaluation is timed (`evaluated`) where there is time for it.
    """
    chunk = max((chunk for task in tasks for chunk in task.chunks), key=lambda chunk: chunk.cost, default=None)
    if budget is None or chunk is None or not chunk.cost:
        return None
    allowed = max(budget.left, min(budget.seconds, _LEAST_SECONDS))
    batch = prepared.workloads[chunk.clients[0]].batch
    operations = step = prepared.model.flops * batch / _SLOW_FLOPS
    basis = "the operations of its model"
    if step < allowed:
        step = _one_step(trainer, chunk, _sent(prepared), allowed)
        basis = "one step of one client"
        if _STEPS * step < allowed:
            return None
    budget.note(f"a local step of one client takes about {step:.2g} s: the forecast is an estimate from {basis}")
    central = prepared.scenario.server.algorithm.central_work(prepared.setting).wanted
    growing = min(step, operations)
    fixed = step - growing
    together = growing + fixed * max(chunk.steps) / chunk.cost
    if step < allowed:  # a small evaluation takes about as long
        return Speeds(together, central * step, evaluated(), step / batch)
    at_once = min(evaluation_batch(prepared.model), max(1, prepared.info.test_size))
    return Speeds(together, central * step, (growing / batch + fixed / at_once) / 3, step / batch)


def _one_step(trainer: Trainer, chunk: Chunk, sent: dict[str, NDArray[np.float32]], allowed: float) -> float:
    """Return the seconds of one step of one client; of one in a trip of two, if there is time for it.

    A trip begins with a copy of its model and ends with an update, which are as many bytes as a step moves.
    """
    took = float("inf")
    for steps in (1, min(2, chunk.steps[0])):
        began = time.perf_counter()
        _learn(trainer, chunk.only(0, steps), sent)
        took = min(took, (time.perf_counter() - began) / steps)
        if 3 * took > allowed:
            break
    return took


def _learn(trainer: Trainer, chunk: Chunk, sent: dict[str, NDArray[np.float32]]) -> None:
    trainer.learn(chunk, [sent] * (1 + max(chunk.model_indices)), [None] * len(chunk.clients))


def _cut(chunk: Chunk, most: int) -> Chunk:
    """Return the chunk with at most `most` steps of each client."""
    return chunk._replace(steps=tuple(min(steps, most) for steps in chunk.steps))


def _central(prepared: Prepared, training_task: TrainingTask, noise: LabelledSamples, device: str) -> float:
    """Return the seconds that the server learns in a round."""
    work = training_task.algorithm.central_work(prepared.setting)
    if not work.wanted:
        return 0.0
    size = min(max(1, prepared.setting.central), _SAMPLES)  # a regulariser looks at one sample
    few = LabelledSamples(noise.x[:size], noise.y[:size])
    learner = CentralLearner(training_task.central_model, 0, few, device)
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

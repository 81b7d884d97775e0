"""Measures the engine on one GPU: steps per second, bits of recorded steps, memory, and accuracy by precision.

    python benchmarks/gpu.py                        # meant for one H100
    python benchmarks/gpu.py --device cpu --tiny    # seconds; shows that the script works, measures nothing

Everything goes through `Trainer.learn`, on chunks as a run on this device has them. Needs torch, numpy and pydantic,
and no installed fedactors, Ray or SimPy. With FEDACTORS_DATA (and torchvision) MNIST is trained on as well.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise, zip_longest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

try:
    import numpy as np
    import torch

    from fedactors.algorithms.fedavg import FedAvg
    from fedactors.engines.cuda_graph import CudaGraphEngine
    from fedactors.learning.batch_planner import BatchPlanner
    from fedactors.learning.chunks import chunk_sizes
    from fedactors.learning.evaluation import EvaluationSet, ModelEvaluator
    from fedactors.learning.trainer import Trainer
    from fedactors.learning.training_task import Chunk, TrainingData, TrainingTask
    from fedactors.models.network import initial
    from fedactors.models.paper_models import FslCifar, Logistic, Mlp
    from fedactors.workload import workload
except ModuleNotFoundError as error:
    sys.exit(f"benchmarks/gpu.py: {error.name} is missing (needed: torch, numpy, pydantic; pip install {error.name})")

CLASSES, POOL, TEST = 10, 20_000, 2_000
PRECISIONS = ("fp32", "tf32", "bf16")
_PATIENCE = 180  # seconds for all hosts to be ready, and to be done


@dataclass(frozen=True)
class Job:
    """What a cohort trains on: `clients` clients with `samples` samples each, drawn from a pool that they share."""

    name: str
    model: Any
    shape: tuple[int, ...]
    clients: int
    samples: int
    batch: int
    epochs: int
    lr: float
    signal: float  # standard deviation of the class prototypes; the noise has 1
    rounds: int  # before accuracy is looked at
    target: float = 0.0  # steps per second in fp32: 60 % of what vmap in a CUDA graph reached on an H100

    def tiny(self) -> Job:
        return replace(self, clients=6, samples=3 * self.batch, epochs=1, rounds=2, target=0.0)


JOBS = (
    Job("logistic", Logistic(), (60,), 1000, 100, 20, 20, 0.05, 0.35, 10, 5.4e6),
    Job("mlp", Mlp(hidden=(200,)), (1, 28, 28), 1000, 100, 10, 2, 0.05, 0.1, 10, 330e3),
    Job("cnn", FslCifar(), (3, 32, 32), 100, 50, 10, 2, 0.05, 0.3, 20, 9.8e3),
)


class Held:
    """Client k holds samples k n, …, k n + n - 1 of a pool that begins again at its end."""

    def __init__(self, job: Job, pool: int) -> None:
        self._rows = (np.arange(job.clients * job.samples, dtype=np.int64) % pool).reshape(job.clients, job.samples)

    def of(self, client: int) -> np.ndarray:
        return self._rows[client]


def generated(job: Job, tiny: bool) -> tuple[TrainingData, EvaluationSet]:
    """Return training samples and a test set: prototypes with noise."""
    draws = np.random.default_rng(0)
    prototypes = job.signal * draws.standard_normal((CLASSES, *job.shape), dtype=np.float32)
    pool = min(POOL, job.clients * job.samples)
    y = draws.integers(0, CLASSES, pool + (100 if tiny else TEST))
    x = prototypes[y] + draws.standard_normal((len(y), *job.shape), dtype=np.float32)
    return TrainingData(x[:pool], y[:pool], Held(job, pool)), EvaluationSet(x[pool:], y[pool:])


def mnist(job: Job) -> tuple[TrainingData, EvaluationSet] | None:
    """Return MNIST for the clients of a job, if it is there."""
    if "FEDACTORS_DATA" not in os.environ or job.shape != (1, 28, 28):
        return None
    from fedactors.data.sets.mnist import Mnist

    data = Mnist().load(0, 1)
    return TrainingData(data.x, data.y, Held(job, len(data.y))), EvaluationSet(data.test_x, data.test_y)


class Cohort:
    """A job's cohort on a device, in one precision: rounds of federated averaging by the engine of a run."""

    def __init__(
        self, job: Job, precision: str, samples: TrainingData, device: str, engine: CudaGraphEngine | None = None
    ) -> None:
        model = replace(job.model.build(job.shape, CLASSES), precision=precision)
        work = workload(job.samples, job.batch, epochs=job.epochs, steps=None)
        task = TrainingTask(model, FedAvg(), 1, (work,) * job.clients)
        self.job = job
        self.model = model
        self.steps = job.clients * work.wanted
        self.trainer = Trainer(task, samples, device, engine)
        self._wanted = work.wanted
        self._device = device
        self.x = initial(model, 1)

    def chunks(self, version: int, steps: int | None = None) -> list[Chunk]:
        ends = accumulate(chunk_sizes(self.job.clients, self.model, self._device), initial=0)
        return [self._chunk(version, first, last, steps or self._wanted) for first, last in pairwise(ends)]

    def _chunk(self, version: int, first: int, last: int, steps: int) -> Chunk:
        count, weight = last - first, 1 / self.job.clients
        clients = tuple(range(first, last))
        return Chunk(
            version, clients, (0,) * count, (version,) * count, (steps,) * count, (weight,) * count, self.job.lr
        )

    def update(self, version: int, steps: int | None = None) -> np.ndarray:
        chunks = self.chunks(version, steps)
        pairs = zip_longest(chunks, chunks[1:] if self._device == "cuda" else ())  # as a client host has them
        learned = [self.trainer.learn(chunk, [{"x": self.x}], (), following) for chunk, following in pairs]
        return np.sum([one.sums["delta"] for one in learned], axis=0)

    def round(self, version: int) -> None:
        self.x = self.x + self.update(version)


@contextmanager
def shuffled_once() -> Iterator[None]:
    """Keep the order of samples that each trip once had: the engine without shuffling, if versions repeat."""
    original, kept = BatchPlanner.plan, dict[tuple[Any, ...], Any]()

    def plan(planner: BatchPlanner, chunk: Chunk) -> Any:
        key = chunk.clients, chunk.base_versions, chunk.steps
        if key not in kept:
            kept[key] = original(planner, chunk)
        return kept[key]

    BatchPlanner.plan = plan  # type: ignore[method-assign]
    try:
        yield
    finally:
        BatchPlanner.plan = original  # type: ignore[method-assign]


def speed(
    cohort: Cohort, seconds: float, version: int | None = None, ready: Callable[[], object] = lambda: None
) -> float:
    """Return steps per second of whole rounds: of new versions, or of one `version` over and over.

    Timing begins when `ready` returns.
    """
    cohort.update(version or 0)  # records, and lets libraries choose
    ready()
    began, rounds = time.perf_counter(), 0
    while rounds < 2 or time.perf_counter() - began < seconds:
        rounds += 1
        cohort.update(version or rounds)  # ends when its sums are on the host
    return rounds * cohort.steps / (time.perf_counter() - began)


def shared(job: Job, options: argparse.Namespace) -> dict[str, Any]:
    """Return a row for several hosts that share the device, each with a cohort of its own."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(options.hosts), context.Queue()
    hosts = [context.Process(target=_host, args=(job, options, barrier, results)) for _ in range(options.hosts)]
    for host in hosts:
        host.start()
    try:
        found = [results.get(timeout=_PATIENCE) for _ in hosts]
    finally:
        for host in hosts:
            host.terminate()
            host.join()
    if wrong := [one for one in found if isinstance(one, str)]:
        raise RuntimeError(wrong[0])
    return {"job": job.name, "precision": "fp32", "hosts": options.hosts, "steps_per_second": sum(found)}


def _host(job: Job, options: argparse.Namespace, barrier: Any, results: Any) -> None:
    """Put the steps per second of one host into `results`, or what went wrong."""
    torch.set_num_threads(1)
    try:
        cohort = Cohort(job, "fp32", generated(job, options.tiny)[0], options.device)
        results.put(speed(cohort, options.seconds, ready=lambda: barrier.wait(_PATIENCE)))
    except Exception as error:
        barrier.abort()
        results.put(f"{type(error).__name__}: {error}")


def bits(cohort: Cohort, samples: TrainingData) -> dict[str, Any]:
    """Compare an update of few steps by the run's engine with the same steps launched one by one."""
    engine = CudaGraphEngine(lambda step: step)
    other = Cohort(cohort.job, cohort.model.precision, samples, cohort._device, engine)
    one, two = (each.update(0, 3) for each in (cohort, other))
    return {"same_bits": bool(np.array_equal(one, two)), "apart": float(np.abs(one - two).max() / np.abs(two).max())}


def accuracy(cohort: Cohort, evaluation_set: EvaluationSet) -> float:
    for version in range(cohort.job.rounds):
        cohort.round(version)
    return float(ModelEvaluator(cohort.model, evaluation_set).evaluate(cohort.x)["accuracy"])


def measured(
    job: Job, precision: str, data: tuple[TrainingData, EvaluationSet], device: str, seconds: float
) -> dict[str, Any]:
    """Return one row of the table."""
    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    cohort = Cohort(job, precision, data[0], device)
    chunks = [len(chunk.clients) for chunk in cohort.chunks(0)]
    row: dict[str, Any] = {"job": job.name, "precision": precision, "cohort": job.clients, "chunks": chunks}
    row["steps_per_second"] = speed(cohort, seconds)
    with shuffled_once():
        row["shuffled_once"] = speed(cohort, seconds, version=1)
    if device == "cuda":
        row["gpu_bytes"] = torch.cuda.max_memory_reserved()
    row |= bits(cohort, data[0])
    row["accuracy"] = accuracy(cohort, data[1])
    if precision == "fp32" and device == "cuda":
        judge(job, row)
    if (real := mnist(job)) is not None:
        row["mnist"] = accuracy(Cohort(job, precision, real[0], device), real[1])
    return row


def judge(job: Job, row: dict[str, Any]) -> None:
    if job.target:
        row["target"], row["met"] = job.target, row["steps_per_second"] >= job.target


def line(row: dict[str, Any], device: str) -> str:
    target = f"{row['target']:>10,.0f} {'met' if row['met'] else 'MISSED'}" if "target" in row else ""
    if "hosts" in row:
        name = f"{row['hosts']} hosts share the device"
        return f"{row['job']:9} {row['precision']:5} {row['steps_per_second']:>12,.0f}  {name:49}  {target}"
    same = "same bits" if row["same_bits"] else f"apart {row['apart']:.0e}"
    memory = f"{row['gpu_bytes'] / 2**30:6.2f} GiB" if device == "cuda" else "no GPU"
    real = f"  MNIST {row['mnist']:.4f}" if "mnist" in row else ""
    return (
        f"{row['job']:9} {row['precision']:5} {row['steps_per_second']:>12,.0f} {row['shuffled_once']:>13,.0f}"
        f"  {same:12} {memory:>10}  {row['accuracy']:.4f}{real}  {target}"
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure the engine on one GPU.")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--tiny", action="store_true", help="a handful of clients: to see that it works")
    parser.add_argument("--seconds", type=float, default=2.0, help="of timing for each row")
    parser.add_argument("--hosts", type=int, help="that share the device where one misses the target (4 on a GPU)")
    parser.add_argument("--jobs", default=",".join(job.name for job in JOBS))
    parser.add_argument("--precisions", default=",".join(PRECISIONS))
    parser.add_argument("--out", type=Path, help="write all figures to this file, as lines of JSON")
    options = parser.parse_args(arguments)
    if options.device == "cuda" and not torch.cuda.is_available():
        print("benchmarks/gpu.py: torch finds no GPU here (accepted: --device cpu --tiny)", file=sys.stderr)
        return 2
    options.hosts = options.hosts or (4 if options.device == "cuda" else 1)
    torch.set_num_threads(1)
    where = torch.cuda.get_device_name() if options.device == "cuda" else f"CPU ({platform.machine()}), not a GPU"
    print(f"{where}, PyTorch {torch.__version__}, Python {platform.python_version()}")
    print("job       prec.      steps/s shuffled once  graph            memory  accuracy  target (fp32)")
    rows, failed = [], False
    for job in (job.tiny() if options.tiny else job for job in JOBS if job.name in options.jobs.split(",")):
        data = generated(job, options.tiny)
        for precision in options.precisions.split(","):
            if precision == "tf32" and options.device == "cpu":
                print(f"{job.name:9} tf32  only on GPUs")
                continue
            try:
                rows.append(measured(job, precision, data, options.device, options.seconds) | {"device": where})
                print(line(rows[-1], options.device), flush=True)
                if precision == "fp32" and options.hosts > 1 and not rows[-1].get("met", not options.tiny):
                    rows.append(shared(job, options) | {"device": where})
                    judge(job, rows[-1])
                    print(line(rows[-1], options.device), flush=True)
            except Exception as error:  # one that fails must not cost the others their device time
                failed = True
                print(f"{job.name:9} {precision:5} FAILED: {type(error).__name__}: {error}", flush=True)
    if options.out:
        options.out.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

"""Runs a scenario: takes Plans from the clock, has the fleet execute them, writes down what came of it.

The clock and the submission run ahead of training by a bounded window. What is written depends on the Plans and the
gradients alone; the wall clock appears only in the keys that say so.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedactors.errors import ClusterError, DivergedError, FleetError
from fedactors.fleet.fleet import Fault, Fleet
from fedactors.fleet.pipeline import Outcomes, Pipeline, Task
from fedactors.learning.lesson import Lesson, Pretraining, Samples, share
from fedactors.plan import SECOND, Plan
from fedactors.report.html import write as write_report
from fedactors.run.digests import Digests, model_digest
from fedactors.run.folder import RunFolder, check_free, new_path
from fedactors.run.learning_curve import summary as curve
from fedactors.run.ledger import Ledger
from fedactors.run.milestones import milestones
from fedactors.run.prepare import Prepared, check_files, prepare
from fedactors.run.progress import Progress, Silent
from fedactors.run.tasks import task_of
from fedactors.scenario.model import Cluster, Scenario

_WINDOW = 4  # rounds in flight: enough to keep every host busy while one round is reduced and the next is made

FleetKind = Literal["ray", "local"]
Labelled = tuple[NDArray[np.float32], NDArray[np.int64]]  # samples (n, *shape) and labels (n,)
Loaded = tuple[Lesson, Samples, Labelled, Labelled]  # and the test set, and the server's own samples
T = TypeVar("T")


@dataclass(frozen=True)
class Result:
    """What a run leaves: its folder, its summary, its rows of metrics and the final state."""

    folder: Path | None
    summary: dict[str, Any]
    metrics: list[dict[str, Any]]
    state: dict[str, NDArray[np.float32]]


def run(
    scenario: Scenario,
    out: str | Path | None = None,
    *,
    fleet: FleetKind = "ray",
    actors: int | None = None,
    address: str | None = None,
    progress: Progress | None = None,
    report: bool = True,
) -> Result:
    """Run `scenario` and return its result; the run folder is `out`, by default a new one under runs/.

    `actors` and `address` take the place of those in the scenario's cluster; without `report` no page is drawn. Raises
    UsageError for what the user can mend, FleetError if the fleet fails twice, DivergedError if an update holds NaN or
    Inf.
    """
    began = time.perf_counter()
    prepared = prepare(scenario)
    check_files(scenario)
    if out is not None:
        check_free(Path(out))
    with open_fleet(scenario.cluster, fleet, actors, address) as opened:
        data = load(prepared)
        with RunFolder(new_path(scenario.name) if out is None else Path(out), scenario) as folder:
            result = _Run(prepared, opened, data, folder, progress or Silent(), began).play()
    if report:
        _draw(folder.path, progress or Silent())
    return result


def _draw(folder: Path, progress: Progress) -> None:
    """Draw the report; a run whose figures cannot be drawn is a run all the same."""
    try:
        write_report(folder)
    except Exception as error:
        progress.note(f"{folder}: the report could not be drawn: {type(error).__name__}: {error}")


def open_fleet(cluster: Cluster, kind: FleetKind, actors: int | None = None, address: str | None = None) -> Fleet:
    """Return the fleet a run is executed on. Raises ClusterError if Ray or its resources cannot be had."""
    if kind == "local":
        if (actors or 1) > 1 or address:
            raise ClusterError("--fleet local computes in this process (accepted: no --actors and no --address)")
        from fedactors.fleet.local import LocalFleet

        return LocalFleet("cuda" if cluster.gpus_per_actor else "cpu", cluster.server_gpus)
    import os

    from fedactors.fleet.ray_fleet import RayFleet

    hosts = actors or cluster.actors or os.cpu_count() or 1
    return RayFleet(
        hosts,
        cluster.cpus_per_actor,
        cluster.gpus_per_actor,
        address or cluster.address,
        server_gpus=cluster.server_gpus,
        store=cluster.object_store,
    )


def load(prepared: Prepared) -> Loaded:
    """Load the data, deal them, and return (lesson, the clients' samples, the test set, the server's samples)."""
    scenario, task, server = prepared.scenario, prepared.scenario.task, prepared.scenario.server
    data = task.dataset.load(scenario.seed, scenario.devices)
    split = task.partition.split(data.y, data.classes, prepared.sizes, scenario.seed)
    own = (data.x[:0], data.y[:0]) if server.data is None else server.data.draw(data, split, scenario.seed)
    samples = Samples(data.x, data.y, split)
    before = Pretraining(prepared.pretraining, server.pretraining.lr) if server.pretraining else None
    lesson = Lesson(
        prepared.model,
        server.algorithm,
        scenario.seed,
        tuple(prepared.workloads),
        prepared.setting,
        before,
    )
    return lesson, share(samples, *own) if server.algorithm.shares else samples, (data.test_x, data.test_y), own


class _Run:
    """One run in progress."""

    def __init__(
        self, prepared: Prepared, fleet: Fleet, data: Loaded, folder: RunFolder, progress: Progress, began: float
    ) -> None:
        self._prepared, self._folder, self._progress, self._began = prepared, folder, progress, began
        self._ledger = Ledger(prepared.ahead, prepared.tariff)
        self._digests, self._rows = Digests(), list[dict[str, Any]]()
        self._final: dict[str, float] | None = None
        self._pending: deque[tuple[Plan, Task]] = deque()
        self._clock = prepared.clock()
        self._fleet, self._nodes = fleet, fleet.nodes
        self._pipeline = Pipeline(fleet, *data, on_fault=self._fault)

    def play(self) -> Result:
        """Execute every plan; return when the clock has ended and the last task is done."""
        scenario, ended = self._prepared.scenario, ""
        with self._progress.over(scenario.name, scenario.server.rounds):
            try:
                for plan, last in with_last(self._clock):
                    task = task_of(plan, self._prepared, self._fleet.device, last=last)
                    self._pipeline.submit(task)
                    self._pending.append((plan, task))
                    if len(self._pending) >= _WINDOW:
                        self._settle()
                while self._pending:
                    self._settle()
                ended = self._clock.ended_because
            finally:
                result = self._conclude(ended or "stopped by an error or by hand")
        return result

    def _settle(self) -> None:
        """Wait for the oldest task and write it down."""
        plan, task = self._pending[0]
        try:
            outcomes = self._pipeline.finish()
        except FleetError as error:
            raise FleetError(f"{error}\nat virtual time {plan.closed / SECOND:.3f} s") from None
        self._pending.popleft()
        _refuse_bad(outcomes, plan)
        row = self._ledger.add(plan) | _learned(outcomes, task)
        self._final = outcomes.examined or self._final
        self._digests.plan(plan)
        self._digests.metrics(row)
        row |= self._wall()
        self._rows.append(row)
        self._folder.plan(plan)
        self._folder.metrics(row)
        self._progress.round(row)

    def _conclude(self, ended: str) -> Result:
        summary = {
            "name": self._prepared.scenario.name,
            "seed": self._prepared.scenario.seed,
            "sampled_devices": self._prepared.sampled,
            **self._ledger.summary(),
            **self._wall(),
            "ended_because": ended,
            "final": self._final,
            "curve": curve(self._rows),
            "to_accuracy": milestones(self._rows),
        }
        state = self._state()
        summary["digests"] = {
            "plans": self._digests.plans_digest(),
            "metrics": self._digests.metrics_digest(),
            "model": model_digest(state),
        }
        if state:
            self._folder.model(state)
        self._folder.summary(summary)
        return Result(self._folder.path, summary, self._rows, state)

    def _wall(self) -> dict[str, float]:
        """Return how long the run has taken on this machine, and what that cost if an hour has a price."""
        seconds = round(time.perf_counter() - self._began, 3)
        price = self._prepared.scenario.cluster.price_per_node_hour
        return {
            "wall_seconds": seconds,
            **({} if price is None else {"cost": round(seconds / 3600 * self._nodes * price, 6)}),
        }

    def _state(self) -> dict[str, NDArray[np.float32]]:
        """Return the last state that is complete; nothing if the fleet is gone."""
        try:
            return self._pipeline.state(self._ledger.plans)
        except Fault:
            return {}

    def _fault(self, version: int, fault: Fault) -> None:
        self._folder.fault({"round": version + 1, "cause": fault.cause, "died": fault.died, "text": fault.text})
        self._progress.note(f"round {version + 1}: {fault.cause}; the work is given to another host")


def _learned(outcomes: Outcomes, task: Task) -> dict[str, Any]:
    """Return the columns of a metrics row that come from training."""
    steps = sum(chunk.cost for chunk in task.chunks)
    row: dict[str, Any] = {"lr": task.facts.lr, "train_loss": outcomes.loss / steps if steps else None}
    return row | (outcomes.examined or {}) | (outcomes.dissimilarity or {})


def _refuse_bad(outcomes: Outcomes, plan: Plan) -> None:
    """Raise DivergedError if an update of this plan held NaN or Inf."""
    if outcomes.bad:
        named = "; ".join(f"client {client} from local step {step}" for client, step in outcomes.bad[:5])
        more = f" and {len(outcomes.bad) - 5} more" if len(outcomes.bad) > 5 else ""
        raise DivergedError(
            f"round {plan.version + 1} (virtual time {plan.closed / SECOND:.3f} s): NaN or Inf in the update of"
            f" {named}{more}; a smaller server.schedule.lr often helps"
        )


def with_last(items: Iterable[T]) -> Iterator[tuple[T, bool]]:
    """Yield each item with whether it is the last one."""
    waiting: list[T] = []
    for item in items:
        if waiting:
            yield waiting.pop(), False
        waiting.append(item)
    for item in waiting:
        yield item, True

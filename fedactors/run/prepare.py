"""From a scenario to everything the clock needs, without loading data, torch or ray."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from fedactors.clock.clock import Clock
from fedactors.clock.population import Population, build
from fedactors.errors import ScenarioError, UsageError
from fedactors.learning.datasets import Info
from fedactors.learning.layers import Model
from fedactors.plan import SECOND
from fedactors.scenario.model import Local, Scenario
from fedactors.scenario.units import show_duration
from fedactors.workload import Workload, workload

BYTES_PER_PARAMETER = 4  # float32


@dataclass(frozen=True)
class Prepared:
    """A scenario with its numbers worked out."""

    scenario: Scenario
    info: Info
    sizes: NDArray[np.int64]  # (clients,): training samples
    model: Model
    population: Population
    workloads: list[Workload]

    @property
    def model_bytes(self) -> int:
        """Size of one model on the wire."""
        return self.model.parameters * BYTES_PER_PARAMETER

    def clock(self) -> Clock:
        """Return a new clock, at time 0."""
        payload = self.scenario.server.algorithm.payload()
        return Clock(self.scenario, self.population, self.workloads, payload, self.model_bytes)


def prepare(scenario: Scenario) -> Prepared:
    """Work out sizes, model and population.

    Raises ScenarioError, DataError or TraceError, naming the scenario's file, if the parts do not fit together or a
    file is missing.
    """
    try:
        return _prepared(scenario)
    except UsageError as error:
        raise type(error)(f"{scenario.source}: {error}") from error


def _prepared(scenario: Scenario) -> Prepared:
    task, clients = scenario.task, scenario.devices
    info = task.dataset.info(scenario.seed, clients)
    model = task.model.build(info.input_shape, info.classes)
    sizes = task.partition.sizes(info, clients, scenario.seed)
    works = _workloads(sizes, scenario.server.local)
    if not any(work.wanted for work in works):
        raise ScenarioError("server.local: no client has a single step to do (accepted: a smaller batch, or more data)")
    prepared = Prepared(scenario, info, sizes, model, build(scenario), works)
    _check_deadline(prepared)
    return prepared


def _workloads(sizes: NDArray[np.int64], local: Local) -> list[Workload]:
    @cache
    def of(samples: int) -> Workload:
        return workload(
            samples,
            local.batch,
            epochs=local.epochs,
            steps=local.steps,
            drop_last=local.drop_last,
            whole_passes=local.update_unit == "epoch",
        )

    return [of(samples) for samples in sizes.tolist()]


def _check_deadline(prepared: Prepared) -> None:
    """Refuse a deadline that no device can meet, even undisturbed. Raises ScenarioError."""
    deadline = prepared.scenario.server.deadline
    if deadline is None:
        return
    fastest = int(least_times(prepared).min())
    if fastest > deadline:
        rounded = -(-fastest // (SECOND // 1000)) * (SECOND // 1000)
        raise ScenarioError(
            f"server.deadline: no device can download, do one step and upload in {show_duration(deadline)}"
            f" (accepted: at least {show_duration(rounded)}, what the fastest device needs)"
        )


def least_times(prepared: Prepared) -> NDArray[np.int64]:
    """Return the ns that each device needs, undisturbed, to download, do the least that counts, and upload.

    `(clients,)`; a naive device counts only with all its steps.
    """
    people, payload = prepared.population, prepared.scenario.server.algorithm.payload()
    least = [
        w.samples(w.unit if aware else w.wanted) for w, aware in zip(prepared.workloads, people.aware, strict=True)
    ]
    compute = np.array(least, dtype=float) * people.per_sample
    transfer = payload.down * prepared.model_bytes / people.down + payload.up * prepared.model_bytes / people.up
    times: NDArray[np.int64] = np.minimum(compute + transfer * SECOND + 2 * people.latency, 2.0**62).astype(np.int64)
    return times

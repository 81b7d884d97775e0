"""From a scenario to everything the clock needs, without loading data, torch or ray."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedactors import registry
from fedactors.clock.clock import Clock
from fedactors.clock.cohort import WorkloadTable
from fedactors.clock.device_columns import Population, build
from fedactors.clock.timings.base import Asynchronous
from fedactors.data.base import Info
from fedactors.data.partitions.partition import Reassignable
from fedactors.errors import ScenarioError, UsageError
from fedactors.learning.algorithm import TaskSetting
from fedactors.models.layers import Model
from fedactors.models.personal import personal_positions
from fedactors.models.table_rows import floats, regulariser_flops, table_of
from fedactors.plan import SECOND, Payload
from fedactors.scenario.model import Scenario
from fedactors.simulation.checks.algorithm_checks import check_algorithm, check_alternate, refuse_personal
from fedactors.simulation.checks.budget import slow_laws
from fedactors.simulation.checks.machine_memory import refuse_too_many
from fedactors.simulation.checks.prepare_task import check_metrics, model_of, workloads_of
from fedactors.simulation.checks.scenario_checks import (
    check_available,
    check_deadline,
    check_labels,
    check_reallocation,
    check_samples,
    check_variants,
    check_work,
    no_round,
)
from fedactors.simulation.record.energy import Tariff, tariff
from fedactors.user_errors import user_errors
from fedactors.workload import IDLE, Workload, workload

BYTES_PER_PARAMETER = 4  # float32


@dataclass(frozen=True)
class Prepared:
    """A scenario with its numbers worked out."""

    scenario: Scenario
    info: Info
    sizes: NDArray[np.int64]  # (clients,): training samples dealt to each
    held: NDArray[np.int64]  # (clients,): samples each trains on: those dealt to it, and the server's if it shares them
    model: Model
    population: Population
    workloads: list[Workload]
    setting: TaskSetting

    @property
    def sampled(self) -> int:
        """Devices whose participation is drawn from a law, instead of emerging from timing."""
        return sum(law is not None for law in self.population.laws)

    @property
    def reallocates(self) -> bool:
        """Whether the data are dealt anew to the clients asked in each round."""
        partition = self.scenario.task.partition
        return isinstance(partition, Reassignable) and partition.reallocate

    @property
    def model_bytes(self) -> int:
        """Size of one model on the wire."""
        return self.model.parameters * BYTES_PER_PARAMETER

    @cached_property
    def client_bytes(self) -> int | NDArray[np.int64]:
        """Size of a model as it travels: whole, or `(clients,)` where clients have some rows of its table only."""
        rows = self.info.client_rows
        if rows is None or table_of(self.model) is None or not self.scenario.server.algorithm.travels_by_rows:
            return self.model_bytes
        return floats(self.model, rows) * BYTES_PER_PARAMETER

    @cached_property
    def personal(self) -> NDArray[np.int64]:
        """Positions in the flat vector of what stays at the clients."""
        return personal_positions(self.model, self.scenario.server.personal)

    @property
    def personal_steps(self) -> tuple[int, ...]:
        """Steps of each client that train its personal part alone; empty if all steps train all."""
        alternate = self.scenario.server.alternate
        return () if alternate is None else tuple(map(alternate.steps_of, self.workloads))

    @property
    def pretraining(self) -> Workload:
        """What the server does before the first round."""
        server = self.scenario.server
        before = server.pretraining
        if before is None:
            return IDLE
        return workload(self.setting.central, before.batch or server.local.batch, epochs=before.epochs, steps=None)

    @property
    def payload(self) -> Payload:
        """What a trip moves and what the server computes."""
        payload: Payload = self.scenario.server.algorithm.payload(self.setting)
        shared = 1 - len(self.personal) / max(1, self.model.parameters)
        return payload._replace(
            down=payload.down * shared,
            up=payload.up * shared,
            once=payload.once + (1 - shared) * bool(self.pretraining.wanted),  # a client's first values, trained
            first=payload.first + self.pretraining.samples(self.pretraining.wanted),
        )

    @property
    def ahead(self) -> int:
        """Bytes sent to all devices before the first round."""
        return round(self.payload.ahead * self.model_bytes) * len(self.population)

    @property
    def wire(self) -> dict[str, Any]:
        """Bytes of a model, of a trip `down` (and `once` more in a client's first) and `up`, and sent `ahead`.

        `down` and `up` are one for each client where those have models of different sizes.
        """
        payload = self.payload
        size = self.model_bytes
        each = np.asarray(self.client_bytes)
        parts = {name: np.rint(getattr(payload, name) * each).astype(int).tolist() for name in ("down", "up")}
        return {"model": size, **parts, "once": round(payload.once * size), "ahead": self.ahead}

    @property
    def tariff(self) -> Tariff | None:
        """What devices pay in joules; None if the scenario does not say."""
        return tariff(self.scenario)

    def clock(self) -> Clock:
        """Return a new clock, at time 0."""
        return Clock(self.scenario, self.population, self.workloads, self.payload, self.client_bytes)


def prepare(scenario: Scenario, seconds: float | None = None) -> Prepared:
    """Work out sizes, model and population.

    If availability by a law takes longer than `seconds` to draw, it is an estimate, for a forecast only.
    Raises ScenarioError, DataError or TraceError, naming the scenario's file, if the parts do not fit together or a
    file is missing.
    """
    try:
        with registry.in_scope(scenario.own), user_errors(ScenarioError):
            return _prepared(scenario, seconds)
    except UsageError as error:
        raise type(error)(f"{scenario.source}: {error}") from error


def _prepared(scenario: Scenario, seconds: float | None) -> Prepared:
    task = scenario.task
    server = scenario.server
    clients = scenario.devices
    refuse_too_many(clients)
    info = task.info(scenario.seed, clients)
    model = replace(model_of(task, info), precision=scenario.precision)
    check_labels(model, info)
    check_metrics(task, model)
    sizes = task.partition.sizes(info, clients, scenario.seed)
    check_variants(server, info)
    central = server.data.size(info) if server.data else 0
    check_samples(sizes)
    held = sizes + central if server.algorithm.shares else sizes
    works = workloads_of(held, scenario)
    check_work(works)
    setting = _setting(scenario, info, sizes, works, central, model)
    check_algorithm(server, setting)
    people = build(scenario, model.flops, seconds).scaled_by(server.algorithm.effort(setting))
    if seconds is None or not slow_laws(scenario, seconds):
        check_available(scenario, people)
    prepared = Prepared(scenario, info, sizes, held, model, people, works, setting)
    for check in _LAST_CHECKS:
        check(prepared)
    return prepared


def _setting(
    scenario: Scenario, info: Info, sizes: NDArray[np.int64], works: list[Workload], central: int, model: Model
) -> TaskSetting:
    server = scenario.server
    clients = scenario.devices
    wanted = [work.wanted for work in works if work.wanted]
    pixels = prod(info.input_shape)
    return TaskSetting(
        clients=clients,
        cohort=_cohort(scenario),
        samples=int(sizes.sum()),
        central=central,
        batch=server.local.batch,
        epochs=server.local.epochs,
        steps=sum(wanted) / len(wanted),
        # images travel as bytes, other samples as float32; a label takes one byte
        sample_size=(pixels * (1 if len(info.input_shape) == 3 else BYTES_PER_PARAMETER) + 1)
        / (model.parameters * BYTES_PER_PARAMETER),
        optimizer=server.local.optimizer,
        evaluation=regulariser_flops(model) / max(1, model.flops),
    )


def _cohort(scenario: Scenario) -> int:
    """Return how many updates an aggregation wants, S."""
    server = scenario.server
    timing = server.timing
    if isinstance(timing, Asynchronous):
        return timing.updates or timing.concurrency
    return scenario.devices if server.cohort == "all" else server.cohort


def least_times(prepared: Prepared) -> NDArray[np.int64]:
    """Return the ns that each device needs, undisturbed, to download, do the least that counts, and upload.

    `(clients,)`; a naive device counts only with all its steps.
    """
    people = prepared.population
    payload = prepared.payload
    work = WorkloadTable(prepared.workloads).all()
    least = work.samples(np.where(people.deadline_aware, work.unit, work.wanted))
    compute = least.astype(float) * people.per_sample
    down = payload.down + payload.once
    size = prepared.client_bytes
    transfer = down * size / people.down + payload.up * size / people.up
    times: NDArray[np.int64] = np.minimum(compute + transfer * SECOND + 2 * people.latency, 2.0**62).astype(np.int64)
    return times


def _check_personal(prepared: Prepared) -> None:
    """Refuse parts of a model that stay at the clients where that has no meaning. Raises ScenarioError."""
    if len(prepared.personal):
        refuse_personal(prepared.scenario.server, prepared.setting)
    check_alternate(prepared.scenario.server, prepared.personal, prepared.workloads)


def _check_reallocation(prepared: Prepared) -> None:
    """Refuse to deal anew what the server holds too, or more than there is. Raises ScenarioError."""
    if prepared.reallocates:
        check_reallocation(prepared.scenario, prepared.info, prepared.sizes)


def _check_deadline(prepared: Prepared) -> None:
    """Refuse a deadline that the fastest device cannot meet, even undisturbed. Raises ScenarioError."""
    deadline = prepared.scenario.server.deadline
    if deadline is not None:
        check_deadline(deadline, least_times(prepared).min())


def _check_lookahead(prepared: Prepared) -> None:
    """Refuse to look ahead where what is learned decides who is asked next. Raises ScenarioError."""
    membership = prepared.scenario.server.membership
    if membership and membership.departures == "lookahead" and prepared.clock().steered:
        raise ScenarioError(
            "server.membership.departures: lookahead cannot try futures in which clients are selected by what"
            " was learned (accepted: auto, include or exclude)"
        )


def check_first_round(prepared: Prepared) -> None:
    """Refuse a run that would end without a round, where that may be: let the clock play one. Raises ScenarioError."""
    idle = not all(work.wanted for work in prepared.workloads)
    if idle or prepared.population.behaving or prepared.scenario.server.until is not None:
        clock = prepared.clock()
        if next(clock, None) is None:
            raise no_round(prepared.scenario, clock)


_LAST_CHECKS = (
    _check_personal,
    _check_reallocation,
    _check_deadline,
    _check_lookahead,
    check_first_round,
)  # in this order


def check_files(scenario: Scenario) -> None:
    """Look for the files of all data. Raises DataError, naming the scenario's file, if one is missing."""
    try:
        with user_errors(ScenarioError):
            scenario.task.check()
            if scenario.server.data is not None:
                scenario.server.data.check()
    except UsageError as error:
        raise type(error)(f"{scenario.source}: {error}") from error

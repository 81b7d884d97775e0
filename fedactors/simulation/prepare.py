"""From a scenario to everything the clock needs, without loading data, torch or ray."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from fedactors import registry
from fedactors.clock.device_columns import build
from fedactors.clock.recording_paths import look_for_recordings
from fedactors.clock.timings.base import Asynchronous
from fedactors.data.base import Info
from fedactors.data.validation import info_with_validation
from fedactors.errors import ScenarioError, naming
from fedactors.learning.algorithm import TaskSetting
from fedactors.models.layers import Model
from fedactors.models.table_rows import regulariser_flops
from fedactors.own_code.user_errors import user_errors
from fedactors.scenario.costs.secure_options import MESSAGES
from fedactors.scenario.model import Scenario
from fedactors.simulation.checks.algorithm_checks import check_algorithm
from fedactors.simulation.checks.budget import slow_laws
from fedactors.simulation.checks.last_checks import LAST_CHECKS
from fedactors.simulation.checks.population_memory import refuse_too_many
from fedactors.simulation.checks.prepare_task import check_metrics, check_packages, model_of, workloads_of
from fedactors.simulation.checks.scenario_checks import (
    check_available,
    check_labels,
    check_samples,
    check_server_data,
    check_work,
)
from fedactors.simulation.prepared import BYTES_PER_PARAMETER, Prepared
from fedactors.workload import Workload


def prepare(scenario: Scenario, seconds: float | None = None) -> Prepared:
    """Work out sizes, model and population.

    If availability by a law takes longer than `seconds` to draw, it is an estimate, for a forecast only.
    Raises ScenarioError, DataError or TraceError, naming the scenario's file, if the parts do not fit together or a
    file is missing.
    """
    with naming(scenario.source), registry.in_scope(scenario.own), user_errors(ScenarioError):
        return _prepared(scenario, seconds)


def _prepared(scenario: Scenario, seconds: float | None) -> Prepared:
    task = scenario.task
    server = scenario.server
    clients = scenario.devices
    refuse_too_many(clients)
    check_packages(task)
    info = info_with_validation(task.info(scenario.seed, clients), task.validation)
    model = replace(model_of(task, info, scenario.seed), precision=scenario.precision)
    check_labels(model, info)
    check_metrics(task, model)
    sizes = task.partition.sizes(info, clients, scenario.seed)
    check_server_data(task, server, info)
    central = server.data.size(info) if server.data else 0
    check_samples(sizes)
    held = sizes + central if server.algorithm.shares else sizes
    works = workloads_of(held, scenario)
    check_work(works)
    setting = _setting(scenario, info, sizes, works, central, model)
    check_algorithm(server, setting)
    people = build(scenario, model.flops, seconds).scaled_by(server.algorithm.effort(setting))
    if server.secure is not None:
        people = replace(people, latency=MESSAGES * people.latency)
    if seconds is None or not slow_laws(scenario, seconds):
        check_available(scenario, people)
    prepared = Prepared(scenario, info, sizes, held, model, people, works, setting)
    for check in LAST_CHECKS:
        check(prepared)
    return prepared


def _setting(
    scenario: Scenario, info: Info, sizes: NDArray[np.int64], works: list[Workload], central: int, model: Model
) -> TaskSetting:
    server = scenario.server
    wanted = [work.wanted for work in works if work.wanted]
    working = [work.wanted > 0 for work in works]
    pixels = prod(info.input_shape)
    return TaskSetting(
        clients=len(wanted),
        cohort=cohort_of(scenario, len(wanted)),
        samples=int(sizes[working].sum()),
        central=central,
        batch=server.local.batch,
        epochs=server.local.epochs,
        steps=sum(wanted) / len(wanted),
        # images travel as bytes, other samples as float32; a label takes one byte
        sample_size=(pixels * (1 if len(info.input_shape) == 3 else BYTES_PER_PARAMETER) + 1)
        / (model.parameters * BYTES_PER_PARAMETER),
        optimizer=server.local.optimizer,
        evaluation=regulariser_flops(model) / max(1, model.flops),
        with_replacement=server.local.with_replacement,
        loss=str(model.loss),
        output_shape=model.output_shape,
    )


def cohort_of(scenario: Scenario, working: int) -> int:
    """Return how many updates an aggregation wants, S, where so many devices have work."""
    server = scenario.server
    timing = server.timing
    if isinstance(timing, Asynchronous):
        return timing.updates or timing.concurrency
    return working if server.cohort == "all" else server.cohort


def check_files(scenario: Scenario) -> None:
    """Look for the files of all recordings and data, before code of the user's model is imported.

    Raises TraceError or DataError, naming the scenario's file, if one is missing.
    """
    with naming(scenario.source), user_errors(ScenarioError):
        look_for_recordings(scenario.population, scenario.folder)
        scenario.task.check()
        if scenario.server.data is not None:
            scenario.server.data.check()

"""Refuses scenarios whose parts do not fit together, before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from fedactors.clock.clock import Clock
from fedactors.clock.device_columns import Population
from fedactors.data.base import Info
from fedactors.data.partitions.partition import Reassignable
from fedactors.errors import ScenarioError
from fedactors.models.layers import Model
from fedactors.models.loss_description import LossDescription
from fedactors.plan import SECOND, Time
from fedactors.scenario.model import Scenario
from fedactors.scenario.population import GroupOptions
from fedactors.scenario.process_behaviour import ProcessBehaviour
from fedactors.scenario.server_options import ServerOptions
from fedactors.scenario.task.task_options import TaskOptions
from fedactors.scenario.trace_options import Trace
from fedactors.scenario.units import show_duration
from fedactors.workload import Workload

_MOST_SAMPLES = 10**11  # more cannot be meant: their numbers alone would take 800 GB
_OF_CLASSES = ("cross_entropy", "binary", "squared", "hinge", "nll", "multi_margin", "ctc")  # losses


def check_labels(model: Model, info: Info) -> None:
    """Refuse labels that the loss of the model cannot judge. Raises ScenarioError."""
    if info.kind in ("value", "multi-label") and str(model.loss) in _OF_CLASSES:
        raise ScenarioError(
            f'task: the labels of "{info.name}" are of the kind {info.kind}, and the loss {model.loss} of'
            f' "{model.name}" judges classes (accepted: another loss, or target: class)'
        )
    several = isinstance(model.loss, LossDescription) and model.loss.label_kind == "multi-label"
    if several and prod(info.label_shape) != model.output_shape[-1]:
        raise ScenarioError(
            f'task.loss: {model.loss} judges rows of 0 and 1, the labels of "{info.name}" are of the kind {info.kind}'
            " (accepted: another loss, or data with several labels for each sample)"
        )
    if model.loss == "cross_entropy" and model.output_shape[-1] < info.outputs:
        raise ScenarioError(
            f'task.model: "{model.name}" answers {model.output_shape[-1]} numbers, "{info.name}" has {info.outputs}'
            f" labels (accepted: at least {info.outputs} numbers)"
        )


def check_server_data(task: TaskOptions, server: ServerOptions, info: Info) -> None:
    """Refuse data of the server's own that cannot be transformed as those of clients are. Raises ScenarioError."""
    if not server.data or not task.transform:
        return
    if info.variants > 1:
        raise ScenarioError(
            "task.transform.variants: server.data would have one variant of each sample (accepted: transforms that are"
            " not random, or no server.data)"
        )
    if getattr(server.data, "elsewhere", False):
        one = np.full((1, *info.input_shape), 0.5, np.float32)
        known = hasattr(task.transform, "of_training")
        found = task.transform.of_training(one).shape[1:] if known else None
        if found != info.input_shape:
            raise ScenarioError(
                f"task.transform: made for images of another shape than {info.input_shape}, which"
                f" server.data: {server.data.name} gives (accepted: transforms that keep a shape, or other server.data)"
            )


def check_samples(sizes: NDArray[np.int64]) -> None:
    """Refuse more samples than can be meant. Raises ScenarioError."""
    if (total := int(sizes.sum(dtype=object))) > _MOST_SAMPLES:
        raise ScenarioError(f"task.partition: {total:,} samples in all (accepted: at most {_MOST_SAMPLES:,})")


def check_work(works: Sequence[Workload]) -> None:
    """Refuse clients of whom none has anything to do. Raises ScenarioError."""
    if not any(work.wanted for work in works):
        raise ScenarioError("server.local: no client has a single step to do (accepted: a smaller batch, or more data)")


def check_reallocation(scenario: Scenario, info: Info, sizes: NDArray[np.int64]) -> None:
    """Refuse to assign anew what the server holds too, or more than there is. Raises ScenarioError."""
    server = scenario.server
    partition = scenario.task.partition
    if not isinstance(partition, Reassignable):
        return
    if server.data is not None:
        raise ScenarioError("task.partition.reallocate: server.data are taken from data that stay (accepted: no data)")
    needs_data_that_stay = {
        "server.membership.departures: auto": server.membership and server.membership.departures == "auto",
        "server.evaluation.fine_tune": server.evaluation and server.evaluation.fine_tune,
        "server.dissimilarity_every": server.dissimilarity_every,
    }
    for key, wanted in needs_data_that_stay.items():
        if wanted:
            raise ScenarioError(f"{key} looks at data that stay with a client (accepted: without partition.reallocate)")
    asked = scenario.devices if server.cohort == "all" else server.cohort + server.over_selection
    partition.check_rounds(info, sizes, asked)


def check_deadline(deadline: Time, fastest: Time) -> None:
    """Refuse a deadline that the fastest device cannot meet, even undisturbed. Raises ScenarioError."""
    if fastest > deadline:
        rounded = -(-fastest // (SECOND // 1000)) * (SECOND // 1000)
        raise ScenarioError(
            f"server.deadline: no device can download, do one step and upload in {show_duration(deadline)}"
            f" (accepted: at least {show_duration(rounded)}, what the fastest device needs)"
        )


def check_available(scenario: Scenario, people: Population) -> None:
    """Refuse a population of which no device is ever on. Raises ScenarioError."""
    if not people.ever_available():
        raise ScenarioError(
            f"{_rules(scenario)}: no device is ever available under this rule (accepted: one that some device fits at"
            " some time between its arrival and its departure)"
        )


def no_round(scenario: Scenario, clock: Clock) -> ScenarioError:
    """Return the error for a `clock` that ended without a single Plan."""
    until = scenario.server.until
    if until is not None and clock.now >= until:
        return ScenarioError(
            f"server.until: no round ends, because no device can be asked before {show_duration(until)}"
            " (accepted: a later time)"
        )
    return ScenarioError(
        f"{_rules(scenario)}: no device is ever available under this rule ({clock.ended_because}; accepted: one that"
        " some device with data fits at some time between its arrival and its departure)"
    )


def _rules(scenario: Scenario) -> str:
    """Return what says when the devices of each group are on."""
    return "; ".join(
        f"population.{number}.availability: {_rule(group)}" for number, group in enumerate(scenario.population)
    )


def _rule(group: GroupOptions) -> str:
    """Return what says when the devices of a group are on, in words."""
    found = group.availability
    if isinstance(found, ProcessBehaviour):
        return str(found.behaviour)
    if not isinstance(found, Trace):
        return found.name
    return f'{found.path}, when "{found.when}"' if found.when else found.path

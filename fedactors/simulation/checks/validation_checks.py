"""Checks of samples for validation, once it is known whether the data have any."""

from __future__ import annotations

from fedactors.errors import ScenarioError
from fedactors.metric_names import VALIDATION
from fedactors.simulation.prepared import Prepared


def check_validation(prepared: Prepared) -> None:
    """Refuse samples for validation where they mean nothing, and a stop by them without any. Raises ScenarioError."""
    task = prepared.scenario.task
    if not prepared.info.validation_size:
        _refuse_unmeasured(prepared)
        return
    if prepared.scenario.server.membership is not None:
        raise ScenarioError(
            "server.membership: its test set follows the members, and samples for validation do not (accepted: no"
            " task.validation and data without a part for validation, or no server.membership)"
        )
    for metric in task.metrics:
        if metric.name.startswith(VALIDATION):
            raise ScenarioError(
                f'task.metrics: "{metric.name}": "{VALIDATION}" is the beginning of the columns of samples for'
                " validation (accepted: another name)"
            )


def _refuse_unmeasured(prepared: Prepared) -> None:
    """Raise ScenarioError if the run is to stop by a measure of samples for validation."""
    stop = prepared.scenario.server.stop
    own = prepared.scenario.task.own_metrics
    for name in stop.names if stop else ():
        if name.startswith(VALIDATION) and name not in own:
            raise ScenarioError(
                f'server.stop: "{name}" is not measured: the data have no samples for validation (accepted:'
                f" task.validation: 0.2, or {name.removeprefix(VALIDATION)}, of the test samples)"
            )

"""Figures over the clients of an evaluation: mean, worst tenth, variance, and the mean of each population group."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from math import ceil
from typing import Any

from fedactors.learning.training_task import ClientMeasures
from fedactors.scenario.population import GroupOptions

_WORST = 0.1  # of the clients


def client_figures(measured: Sequence[ClientMeasures], groups: Sequence[GroupOptions]) -> dict[str, Any]:
    """Return the columns of a metrics row; every client counts the same, however many samples it has.

    Where labels are no classes there is a loss only. Clients that attack count in the mean of their group alone.

    The worst tenth are the clients with the lowest accuracy, one at the least; the variance is that of all measured.
    """
    row: dict[str, Any] = {"clients_evaluated": len(measured)}
    of_client = _groups_of(measured, groups)
    honest = [one for one, group in zip(measured, of_client, strict=True) if group.attack is None]
    if not honest:
        return row
    loss = _mean([one.loss for one in honest])
    accuracies = sorted(one.accuracy for one in honest if one.accuracy is not None)
    if not accuracies:
        return row | {"client_loss": loss}
    mean = _mean(accuracies)
    return row | {
        "client_accuracy": mean,
        "client_accuracy_worst": _mean(accuracies[: ceil(_WORST * len(accuracies))]),
        "client_accuracy_variance": _mean([(one - mean) ** 2 for one in accuracies]),
        "client_loss": loss,
        "client_accuracy_of": _by_group(measured, of_client, groups),
    }


def client_columns(measured: Sequence[ClientMeasures]) -> dict[str, list[Any]]:
    """Return who was measured, on how many samples, and each measure, None where a client has none: `(clients,)`."""
    accuracies = [one.accuracy for one in measured]
    names = dict.fromkeys(name for one in measured for name in one.further)
    return {
        "client": [one.client for one in measured],
        "samples": [one.samples for one in measured],
        **({} if accuracies.count(None) == len(measured) else {"accuracy": accuracies}),
        "loss": [one.loss for one in measured],
        **{name: [one.further.get(name) for one in measured] for name in names},
    }


def _groups_of(measured: Sequence[ClientMeasures], groups: Sequence[GroupOptions]) -> list[GroupOptions]:
    """Return the group of each client."""
    first = list(accumulate((group.count for group in groups[:-1]), initial=0))
    return [groups[bisect_right(first, one.client) - 1] for one in measured]


def _by_group(
    measured: Sequence[ClientMeasures], of_client: Sequence[GroupOptions], groups: Sequence[GroupOptions]
) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for one, group in zip(measured, of_client, strict=True):
        if one.accuracy is not None:
            found.setdefault(group.name, []).append(one.accuracy)
    return {group.name: _mean(found[group.name]) for group in groups if group.name in found}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)

"""The cells of a study: which values of which keys, and what that makes of a scenario."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import yaml

from fedactors.errors import ScenarioError
from fedactors.report.variant_names import Label as Label
from fedactors.report.variant_names import labelled


class StudyCell(NamedTuple):
    """One run of a study: where it stands on each axis, and what that changes in the scenario."""

    labels: tuple[tuple[str, Label], ...]
    overrides: tuple[str, ...]

    def at(self, axis: str) -> Label | None:
        """Return where the cell stands on an axis; None if it has no such axis."""
        return dict(self.labels).get(axis)


class StudyAxis(NamedTuple):
    """One thing that is varied: its name, and the overrides that each label stands for."""

    name: str
    values: Mapping[Label, Sequence[str]]


SEED = "seed"


def crossed(axes: Sequence[StudyAxis], seeds: Iterable[int]) -> Iterator[StudyCell]:
    """Yield the product of the axes, with every seed at each of its places.

    Raises ScenarioError if an axis sets the seed, since runs would be counted twice, or if two axes are the same.
    """
    numbers = tuple(seeds)
    _refuse_double_counts(axes)
    for labels in product(*(axis.values for axis in axes)):
        at = tuple((axis.name, label) for axis, label in zip(axes, labels, strict=True))
        changes = tuple(change for axis, label in zip(axes, labels, strict=True) for change in axis.values[label])
        for seed in numbers:
            yield StudyCell((*at, (SEED, seed)), (*changes, f"seed={seed}"))


def _refuse_double_counts(axes: Sequence[StudyAxis]) -> None:
    names = [axis.name for axis in axes]
    for axis in axes:
        if any(change.partition("=")[0].strip() == SEED for changes in axis.values.values() for change in changes):
            raise ScenarioError(
                f"{axis.name}: a seed is not varied: every variant is run with the same seeds"
                " (accepted: --seeds N, or seeds of a sweep)"
            )
        if names.count(axis.name) > 1:
            raise ScenarioError(f"{axis.name}: varied twice (accepted: all of its values in one list)")


def axis_of(text: str) -> StudyAxis:
    """Return the axis of `KEY=VALUE,VALUE,…`; a value is what YAML makes of it. Raises ScenarioError."""
    key, equals, values = text.partition("=")
    accepted = "(accepted: KEY=VALUE,VALUE, such as server.algorithm=fedavg,fsl)"
    if not equals or not key.strip():
        raise ScenarioError(f"--vary {text}: {accepted}")
    try:
        found = yaml.safe_load(f"[{values}]")
    except yaml.YAMLError:
        raise ScenarioError(f"--vary {text}: the values are not valid YAML {accepted}") from None
    if not found or any(value is None for value in found):
        raise ScenarioError(f"--vary {text}: no values, or an empty one {accepted}")
    return axis(key.strip(), found)


def axis(key: str, values: Sequence[Any]) -> StudyAxis:
    """Return the axis of the values of one key. Raises ScenarioError if two are the same."""
    labels = [labelled(value) for value in values]
    for label in labels:
        if labels.count(label) > 1:
            raise ScenarioError(f"{key}: the value {label} is given twice")
    return StudyAxis(key, {label: (change(key, value),) for label, value in zip(labels, values, strict=True)})


def change(key: str, value: Any) -> str:
    """Return the override that sets `key` to `value`."""
    return f"{key}={json.dumps(value)}"

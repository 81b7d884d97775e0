"""The cells of a study: which values of which keys, and what that makes of a scenario."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from fedactors.errors import ScenarioError
from fedactors.report.variant_names import Label as Label
from fedactors.report.variant_names import labelled
from fedactors.scenario.yaml_text import parse_value


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
RECORDING = "recording"  # an axis whose values hold what the scenario and its overrides say of the groups
_ACCEPTED = "(accepted: KEY=VALUE,VALUE, such as server.algorithm=fedavg,fsl)"
_Path = tuple[str, ...]


def crossed(axes: Sequence[StudyAxis], seeds: Iterable[int]) -> Iterator[StudyCell]:
    """Yield the product of the axes, with every seed at each of its places.

    What an axis sets within what another one sets comes after it, whatever the order of the axes. Raises ScenarioError
    if an axis sets the seed, since runs would be counted twice, or the cluster, or if two axes are the same.
    """
    numbers = tuple(seeds)
    _refuse_double_counts(axes)
    for labels in product(*(axis.values for axis in axes)):
        at = tuple((axis.name, label) for axis, label in zip(axes, labels, strict=True))
        changes = [change for axis, label in zip(axes, labels, strict=True) for change in axis.values[label]]
        changes.sort(key=lambda change: len(_path(change)))
        for seed in numbers:
            yield StudyCell((*at, (SEED, seed)), (*changes, f"seed={seed}"))


def merged(changes: Iterable[str], cell: StudyCell, groups: Sequence[str]) -> tuple[str, ...]:
    """Return the overrides of the run of a `cell` of a study that makes `changes` in all runs.

    What the cell sets again is left out of the changes. `groups` are the names of the population's groups.
    """
    again = [_path(change, groups) for change in cell.overrides]
    kept = [one for one in changes if not any(_path(one, groups)[: len(path)] == path for path in again)]
    return (*kept, *cell.overrides)


def refuse_lost(overrides: Iterable[str], axes: Iterable[StudyAxis], groups: Sequence[str]) -> None:
    """Raise ScenarioError if an override sets what every value of an axis sets again, so that it would be lost."""
    varied = {
        axis.name: [[_path(change, groups) for change in changes] for changes in axis.values.values()]
        for axis in axes
        if axis.name != RECORDING
    }
    for override in overrides:
        mine = _path(override, groups)
        for name, values in varied.items():
            if all(any(mine[: len(path)] == path for path in paths) for paths in values):
                raise ScenarioError(
                    f"--set {override}: without effect, since every value of {name} sets it again (accepted: keys that"
                    " are not varied; or, within a value that is varied, {name: fsl, global_lr: 0.5})"
                )


def _path(change: str, groups: Sequence[str] = ()) -> _Path:
    """Return the key of an override in its parts; a group by its number."""
    first, *rest = change.partition("=")[0].strip().split(".")
    if first == "population" and rest and rest[0] in groups:
        rest[0] = str(groups.index(rest[0]))
    return (first, *rest)


def _refuse_double_counts(axes: Sequence[StudyAxis]) -> None:
    names = [axis.name for axis in axes]
    for axis in axes:
        keys = [_path(change) for changes in axis.values.values() for change in changes]
        if (SEED,) in keys:
            raise ScenarioError(
                f"{axis.name}: a seed is not varied: every variant is run with the same seeds"
                " (accepted: --seeds N, or seeds of a sweep)"
            )
        if "cluster" in [first for first, *_ in keys]:
            raise ScenarioError(
                f"{axis.name}: a cluster is not varied: results do not depend on it, but for its bits, of which a"
                " process computes one kind (accepted: two studies, each with --set cluster.bits=… and a folder --out)"
            )
        if names.count(axis.name) > 1:
            raise ScenarioError(f"{axis.name}: varied twice (accepted: all of its values in one list)")


def axis_of(text: str) -> StudyAxis:
    """Return the axis of `KEY=VALUE,VALUE,…`; values are read as those of --set are. Raises ScenarioError."""
    key, equals, values = text.partition("=")
    if not equals or not key.strip():
        raise ScenarioError(f"--vary {text}: {_ACCEPTED}")
    try:
        found = parse_value(f"[{values}]", f"--vary {text}")
    except ScenarioError as error:
        raise ScenarioError(f"{error} {_ACCEPTED}") from None
    if not isinstance(found, list) or not found or any(value is None for value in found):
        raise ScenarioError(f"--vary {text}: no values, or an empty one {_ACCEPTED}")
    return axis(key.strip(), found)


def axis(key: str, values: Sequence[Any]) -> StudyAxis:
    """Return the axis of the values of one key. Raises ScenarioError if there are none, or two are the same."""
    if not values:
        raise ScenarioError(f"{key}: no values (accepted: one or more)")
    labels = [labelled(value) for value in values]
    for label in labels:
        if labels.count(label) > 1:
            raise ScenarioError(f"{key}: the value {label} is given twice")
    return StudyAxis(key, {label: (change(key, value),) for label, value in zip(labels, values, strict=True)})


def change(key: str, value: Any) -> str:
    """Return the override that sets `key` to `value`."""
    return f"{key}={json.dumps(value)}"

"""Refuses attacks that do not go with the rest of a scenario."""

from __future__ import annotations

import numpy as np

from fedactors.attacks.base import Attack
from fedactors.errors import ScenarioError
from fedactors.simulation.prepared import Prepared


def check_attacks(prepared: Prepared) -> None:
    """Refuse attacks on updates that are not known as such, and on labels that are no classes. Raises ScenarioError."""
    for group in prepared.scenario.population:
        if group.attack is None:
            continue
        where = f"population.{group.name}.attack"
        if group.attack.relabels:
            _check_labels(prepared, where)
            _try_labels(group.attack, prepared.info.classes, where)
        elif not prepared.scenario.server.algorithm.changes:
            raise ScenarioError(
                f'{where}: algorithm "{prepared.scenario.server.algorithm.name}" does not say which of its uploads are'
                " updates (accepted: label-flip, or another algorithm)"
            )


def _try_labels(attack: Attack, classes: int, where: str) -> None:
    try:
        attack.labels(np.arange(classes), classes)
    except ScenarioError as error:
        raise ScenarioError(f"{where}: {error}") from None


def _check_labels(prepared: Prepared, where: str) -> None:
    info = prepared.info
    reasons = {
        f'"{info.name}" has labels of the kind {info.kind}': info.kind != "class" or info.label_shape != (),
        "samples are reallocated in every round": prepared.reallocates,
        "samples have several variants (task.transform.variants)": info.variants > 1,
    }
    for reason, holds in reasons.items():
        if holds:
            raise ScenarioError(f"{where}: {reason}, which label-flip cannot flip (accepted: another attack)")

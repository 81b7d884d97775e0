"""Refuses attacks that do not go with the rest of a scenario."""

from __future__ import annotations

import numpy as np

from fedactors.attacks.base import LabelAttack, UpdateAttack, wrong_labels
from fedactors.errors import ScenarioError
from fedactors.simulation.prepared import Prepared


def check_attacks(prepared: Prepared) -> None:
    """Refuse attacks that can do nothing, or that are none. Raises ScenarioError."""
    for group in prepared.scenario.population:
        if group.attack is None:
            continue
        where = f"population.{group.name}.attack"
        if isinstance(group.attack, LabelAttack):
            _check_labels(prepared, where)
            _try_labels(group.attack, prepared.info.classes, where)
        elif not isinstance(group.attack, UpdateAttack):
            raise ScenarioError(f"{where}: found an Attack (accepted: an UpdateAttack or a LabelAttack)")


def _check_labels(prepared: Prepared, where: str) -> None:
    info = prepared.info
    reasons = {
        f'"{info.name}" has labels of the kind {info.kind}': info.kind != "class" or info.label_shape != (),
        "samples are reallocated in every round": prepared.reallocates,
        "samples have several variants (task.transform.variants)": info.variants > 1,
    }
    for reason, holds in reasons.items():
        if holds:
            raise ScenarioError(f"{where}: {reason}, which no attack on labels can alter (accepted: one on updates)")


def _try_labels(attack: LabelAttack, classes: int, where: str) -> None:
    try:
        wrong_labels(attack, np.arange(classes), classes)
    except ScenarioError as error:
        raise ScenarioError(f"{where}: {error}") from None

"""Attackers that learn from wrong labels: Tolpegin et al., Data Poisoning Attacks Against Federated Learning, 2020.

Labels are flipped before the run: `label` becomes `to`. Without options every label y becomes C - 1 - y, as in
Karimireddy et al., Learning from History for Byzantine Robust Optimization, 2021.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import NonNegativeInt, model_validator

from fedactors.attacks.base import LabelAttack
from fedactors.errors import ScenarioError


class LabelFlip(LabelAttack):
    """Learns from labels that are flipped."""

    name: Literal["label-flip"] = "label-flip"
    label: NonNegativeInt | None = None
    """The label that is flipped; all of them if not given."""
    to: NonNegativeInt | None = None
    """What it becomes."""

    @model_validator(mode="after")
    def _check_label_and_to(self) -> LabelFlip:
        if (self.label is None) != (self.to is None):
            raise ValueError("give both of label and to, or none of them")
        if self.label is not None and self.label == self.to:
            raise ValueError("label and to must differ")
        return self

    def labels(self, labels: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
        """Return the flipped labels. Raises ScenarioError if the data have no such label."""
        if self.label is None or self.to is None:
            return classes - 1 - labels
        if (largest := max(self.label, self.to)) >= classes:
            raise ScenarioError(f"label-flip: found label {largest} (accepted: 0 to {classes - 1})")
        return np.where(labels == self.label, self.to, labels)

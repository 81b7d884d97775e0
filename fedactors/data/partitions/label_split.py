"""Two sources out of one data set: some labels lie with the central learner and none of them at a client.

Source: Augenstein et al., Mixed Federated Learning, 2022, section 5.1, where phones keep smiling faces only and the
rest of CelebA is central. What is to be learned may be coarser than what divides: labels can be merged into two.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, NonNegativeInt

from fedactors.data.base import Data, Info, Int64
from fedactors.errors import ScenarioError
from fedactors.options import Options

_WHERE = "task.split"

Labels = Annotated[tuple[NonNegativeInt, ...], Field(strict=False)]


class LabelSplit(Options):
    """Which labels are the central learner's, and which are merged."""

    name: Literal["labels"] = "labels"
    central: Labels = ()
    """Labels whose samples lie with the central learner (`server.data: central`) and at no client."""
    positive: Labels = ()
    """Labels that become label 1; all others become label 0. Empty: labels stay as they are."""

    def info(self, info: Info) -> Info:
        """Return what is known of the divided data. Raises ScenarioError if labels are unknown or cannot be counted."""
        unknown = [label for label in (*self.central, *self.positive) if label >= info.classes]
        if unknown:
            raise ScenarioError(f"{_WHERE}: found label {unknown[0]}, accepted: 0 to {info.classes - 1}")
        if info.class_counts is None or info.client_sizes is not None:
            raise ScenarioError(f'{_WHERE}: "{info.name}" does not say how many samples of each label it has')
        counts, central = np.array(info.class_counts), self._of(np.arange(info.classes), self.central)
        kept = np.where(central, 0, counts)
        merged = self._merged(np.arange(info.classes))
        classes = int(merged.max()) + 1
        return replace(
            info,
            train_size=int(kept.sum()),
            classes=classes,
            class_counts=tuple(np.bincount(merged, weights=kept, minlength=classes).astype(int).tolist()),
            central_size=int(counts[central].sum()),
        )

    def apply(self, data: Data) -> Data:
        """Return `data` in two parts; all test samples stay, each known by its source."""
        central = self._of(data.strata, self.central)
        merged = self._merged(data.y)
        return replace(
            data,
            x=data.x[~central],
            y=merged[~central],
            test_y=self._merged(data.test_y),
            classes=2 if self.positive else data.classes,
            central_x=data.x[central],
            central_y=merged[central],
            weights=None if data.weights is None else data.weights[~central],
            central_weights=None if data.weights is None else data.weights[central],
            test_central=self._of(data.strata_of(data.test_y), self.central),
            **self._of_validation(data),
        )

    def _of_validation(self, data: Data) -> dict[str, Any]:
        """Return the labels of the samples for validation, if there are some, and which are the central learner's."""
        y = data.validation_y
        if y is None:
            return {}
        return {"validation_y": self._merged(y), "validation_central": self._of(data.strata_of(y), self.central)}

    def _of(self, labels: Int64, which: tuple[int, ...]) -> NDArray[np.bool_]:
        return np.isin(labels, which)

    def _merged(self, labels: Int64) -> Int64:
        return self._of(labels, self.positive).astype(np.int64) if self.positive else labels

"""The samples on which models are evaluated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class EvaluationSet:
    """A test set. Where `central` is given, it says which samples are like the central learner's data.

    A test set's samples count alike; those of a client that is to be trained may have `weights`.
    """

    x: NDArray[np.float32]  # (n, *shape)
    y: NDArray[np.int64]  # (n,), or (n, places) for sequences
    central: NDArray[np.bool_] | None = None  # (n,)
    weights: NDArray[np.float32] | None = None  # (n,): how much each sample counts in the loss; None if all count 1
    validation: EvaluationSet | None = (
        None  # further samples, by which settings are chosen; none of them is among these
    )

    def parts(self) -> dict[str, NDArray[np.bool_]]:
        """Return which samples belong to each part, by the prefix of its measures: everything is ""."""
        whole = {"": np.ones(len(self.y), dtype=bool)}
        if self.central is None or not self.central.any():
            return whole
        return whole | {"federated_": ~self.central, "central_": self.central}

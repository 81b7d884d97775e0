"""A data set: points around one centre for each class, drawn with the scenario's seed.

Replace `load` by what reads your files. It returns numpy arrays: samples `(n, *shape)` in float32, labels `(n,)` in
int64, for training and for the test. How samples are given to clients is the matter of `task.partition`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedactors.data.base import Data, Info, verified
from fedactors.options import Options
from fedactors.streams import Purpose, stream

_CLASSES = 4


class StarterDataset(Options):
    """Points in a plane, of four classes."""

    # The fields are what a scenario may write:  dataset: {name: starter, samples: 1000}
    name: Literal["starter"] = "starter"
    samples: int = Field(default=800, ge=40)
    """Training samples; a quarter as many are for the test."""
    noise: float = Field(default=0.5, ge=0.0)
    """Standard deviation around the centres."""

    def info(self, seed: int, clients: int) -> Info:
        """Return what is known without loading: name, sizes, shape of a sample, classes, samples of each class."""
        counts = tuple(len(range(label, self.samples, _CLASSES)) for label in range(_CLASSES))
        return Info("starter", self.samples, self.samples // 4, (2,), _CLASSES, counts)

    def check(self) -> None:
        """Look whether the files are there, and raise fedactors.errors.DataError if not; here there are none."""

    def load(self, seed: int, clients: int) -> Data:
        """Return all samples. Random numbers come from a stream of the run, so that they are the same everywhere."""
        random = stream(seed, Purpose.DATASET)
        x, y = self._draw(random, self.samples)
        test_x, test_y = self._draw(random, self.samples // 4)
        return verified(Data(x, y, test_x, test_y, classes=_CLASSES), self.info(seed, clients))

    def _draw(self, random: np.random.Generator, count: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        y = np.arange(count, dtype=np.int64) % _CLASSES
        angle = y * (2 * np.pi / _CLASSES)
        centres = 2 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        return (centres + random.normal(0, self.noise, centres.shape)).astype(np.float32), y

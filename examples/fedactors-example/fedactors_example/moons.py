"""Two interleaved half circles, drawn with the scenario's seed."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from fedactors.data.base import Data, Info, verified
from fedactors.options import Options
from fedactors.streams import Purpose, stream


class Moons(Options):
    """Points of two half circles with noise: two coordinates, two classes."""

    name: Literal["moons"] = "moons"
    samples: int = Field(default=1000, ge=10)
    """Training samples; as many test samples are half of that."""
    noise: float = Field(default=0.15, ge=0.0)
    """Standard deviation of the noise."""

    def info(self, seed: int, clients: int) -> Info:
        """Return sizes and shapes, without drawing anything."""
        counts = (self.samples - self.samples // 2, self.samples // 2)
        return Info("moons", self.samples, self.samples // 2, (2,), 2, counts)

    def check(self) -> None:
        """Do nothing: there are no files, the points are drawn."""

    def load(self, seed: int, clients: int) -> Data:
        """Return the points."""
        random = stream(seed, Purpose.DATASET)
        (x, y), (test_x, test_y) = self._draw(random, self.samples), self._draw(random, self.samples // 2)
        return verified(Data(x, y, test_x, test_y, classes=2), self.info(seed, clients))

    def _draw(self, random: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
        y = np.arange(count, dtype=np.int64) % 2
        angle = random.uniform(0, np.pi, count)
        x = np.stack([np.cos(angle) + y, np.sin(angle)], axis=1)
        x[y == 1, 1] = 0.5 - x[y == 1, 1]
        return (x + random.normal(0, self.noise, x.shape)).astype(np.float32), y

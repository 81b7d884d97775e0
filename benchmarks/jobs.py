"""The jobs as data: who trains what on how much, and the random samples they train on.

Samples are class prototypes with noise, so that a loss falls if and only if somebody trains. Needs numpy only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

CLASSES = 10
TEST_SAMPLES = 100


@dataclass(frozen=True)
class Job:
    """One federated averaging job; every client holds `samples` samples and passes over them once."""

    name: str
    model: str  # "logistic", "mlp", "cnn" or "resnet18"
    shape: tuple[int, ...]  # of one sample
    clients: int
    cohort: int
    samples: int
    batch: int
    lr: float
    signal: float  # standard deviation of the prototypes; the noise has 1

    @property
    def client_steps(self) -> int:
        """Local steps of one client in one round."""
        return self.samples // self.batch

    @property
    def round_steps(self) -> int:
        """Local steps of one round."""
        return self.cohort * self.client_steps

    @cached_property
    def _prototypes(self) -> NDArray[np.float32]:
        draws = np.random.default_rng(0)
        return (self.signal * draws.standard_normal((CLASSES, *self.shape))).astype(np.float32)

    def client(self, number: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return inputs `(samples, *shape)` and labels `(samples,)` of one client."""
        return self._drawn(number + 1, self.samples)

    def test(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return a small test set."""
        return self._drawn(0, TEST_SAMPLES)

    def everything(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the samples of all clients: `(clients, samples, *shape)` and `(clients, samples)`."""
        return _everything(self)

    def _drawn(self, stream: int, samples: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        draws = np.random.default_rng((1, stream))
        labels = draws.integers(0, CLASSES, samples)
        noise = draws.standard_normal((samples, *self.shape), dtype=np.float32)
        return self._prototypes[labels] + noise, labels


@lru_cache(maxsize=1)
def _everything(job: Job) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    parts = [job.client(number) for number in range(job.clients)]
    return np.stack([x for x, _ in parts]), np.stack([y for _, y in parts])


JOBS = {
    job.name: job
    for job in (
        Job("logistic", "logistic", (60,), clients=1000, cohort=100, samples=100, batch=10, lr=0.05, signal=0.5),
        Job("mlp", "mlp", (1, 28, 28), clients=100, cohort=20, samples=100, batch=10, lr=0.05, signal=0.25),
        Job("cnn", "cnn", (3, 32, 32), clients=100, cohort=10, samples=50, batch=10, lr=0.05, signal=1.0),
        Job("resnet18", "resnet18", (3, 32, 32), clients=20, cohort=4, samples=50, batch=10, lr=0.01, signal=1.0),
    )
}

"""How many samples a number of local steps processes, and the reverse. Shared by the clock and the training engine.

A client with n samples and batch size B makes passes over its data. One pass is cut into ceil(n/B) steps, the last
one short (or left out with `drop_last`). Batches drawn with replacement are all full; the steps of a pass are as many.
The clock turns samples into time with it, the engine into batches, so both agree on every step.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]


class Workload(NamedTuple):
    """The local work of one client: `wanted` steps over passes of `pass_samples` samples in `pass_steps` steps."""

    pass_steps: int
    pass_samples: int
    batch: int
    wanted: int
    unit: int = 1  # steps are counted in multiples of this when time runs out
    drawn_from: int = 0  # samples from which each one of a batch is drawn, with replacement; 0: each comes once a pass

    @property
    def held(self) -> int:
        """Return the samples that are trained on."""
        return self.drawn_from or self.pass_samples

    def samples(self, steps: int) -> int:
        """Return the samples processed by the first `steps` steps."""
        passes, rest = divmod(steps, self.pass_steps)
        return passes * self.pass_samples + min(rest * self.batch, self.pass_samples)

    def steps_within(self, samples: int) -> int:
        """Return the most steps, of those wanted, that process at most `samples` samples; in whole units."""
        if samples <= 0:
            return 0
        passes, rest = divmod(samples, self.pass_samples)
        steps = min(self.wanted, passes * self.pass_steps + rest // self.batch)
        return steps - steps % self.unit


IDLE = Workload(pass_steps=1, pass_samples=1, batch=1, wanted=0)  # a client without data


def workload(
    samples: int,
    batch: int,
    *,
    epochs: int | None,
    steps: int | None,
    drop_last: bool = False,
    whole_passes: bool = False,
    with_replacement: bool = False,
) -> Workload:
    """Return what a client with `samples` samples does in one trip; give either `epochs` or `steps`.

    A batch larger than the data is cut to the data. `with_replacement`, each sample of a batch is drawn by itself among
    all of them, and an epoch has the steps of a pass. Without data, or with `drop_last` and fewer samples than a
    batch, there is nothing to do (0 steps).
    """
    if samples < 1 or (drop_last and samples < batch):
        return IDLE
    size = min(batch, samples)
    pass_steps = samples // size if drop_last else -(-samples // size)
    pass_samples = pass_steps * size if drop_last or with_replacement else samples
    wanted = steps if steps is not None else (epochs or 0) * pass_steps
    found = Workload(pass_steps, pass_samples, size, wanted, drawn_from=samples * with_replacement)
    return found._replace(unit=pass_steps) if whole_passes else found


class CohortWork:
    """What each client of a cohort is asked to do, in columns `(clients,)`; see `Workload`."""

    def __init__(self, table: Int64) -> None:
        self.pass_steps, self.pass_samples, self.batch, self.wanted, self.unit, drawn_from = table.T
        self.held = np.where(drawn_from > 0, drawn_from, self.pass_samples)

    def samples(self, steps: Int64) -> Int64:
        """Return the samples processed by the first `steps` steps of each client."""
        passes, rest = steps // self.pass_steps, steps % self.pass_steps
        samples: Int64 = passes * self.pass_samples + np.minimum(rest * self.batch, self.pass_samples)
        return samples

    def steps_within(self, samples: Int64) -> Int64:
        """Return the most steps, of those wanted, that process at most `samples` samples; in whole units."""
        samples = np.maximum(samples, 0)
        passes, rest = samples // self.pass_samples, samples % self.pass_samples
        steps: Int64 = np.minimum(self.wanted, passes * self.pass_steps + rest // self.batch)
        steps -= steps % self.unit
        return steps


class WorkloadTable:
    """The workloads of all clients: few different ones, and which of them each client has."""

    def __init__(self, workloads: Sequence[Workload]) -> None:
        different: dict[int, int] = {}  # by identity: preparing gives equal clients one object
        kinds = [different.setdefault(id(work), len(different)) for work in workloads]
        table = {id(work): work for work in workloads}
        self._kinds = np.array(kinds, np.int64)
        self._table = np.array([table[key] for key in different], np.int64)

    def of(self, clients: Int64) -> CohortWork:
        """Return the work of `clients`."""
        return CohortWork(self._table[self._kinds[clients]])

    def all(self) -> CohortWork:
        """Return the work of all clients."""
        return CohortWork(self._table[self._kinds])

    @cached_property
    def has_work(self) -> NDArray[np.bool_]:
        """Which clients have something to do, `(clients,)`: no other is ever asked, and N counts these alone."""
        kinds: NDArray[np.bool_] = CohortWork(self._table).wanted > 0
        return kinds[self._kinds]


class PretrainingWork(NamedTuple):
    """Local steps on the server's data before the first round."""

    work: Workload
    lr: float


class FineTuning(NamedTuple):
    """What a client does with a model before it is evaluated there: passes, or steps."""

    epochs: int | None
    steps: int | None
    batch: int
    lr: float

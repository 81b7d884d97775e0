"""What devices pay in joules: picojoules per local step and per byte, summed as whole numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedactors.plan import Orders
from fedactors.scenario.model import Scenario

PICO = 10**12


class Tariff(NamedTuple):
    """Picojoules of each device, in columns of length N."""

    step: NDArray[np.int64]
    byte: NDArray[np.int64]

    def total(self, orders: Orders) -> int:
        """Return the picojoules of trips: of their steps, seen by the server or not, and of their bytes."""
        columns = (orders.steps, self.step[orders.client], orders.down + orders.up, self.byte[orders.client])
        rows = zip(*(column.tolist() for column in columns), strict=True)  # Python's integers do not overflow
        return sum(steps * each + moved * per_byte for steps, each, moved, per_byte in rows)


def tariff(scenario: Scenario) -> Tariff | None:
    """Return what the devices of a scenario pay; None if it does not say."""
    groups = scenario.population
    if all(group.energy is None for group in groups):
        return None
    columns = (
        np.repeat([getattr(group.energy, key, 0) for group in groups], [group.count for group in groups])
        for key in ("per_step", "per_byte")
    )
    return Tariff(*(column.astype(np.int64) for column in columns))

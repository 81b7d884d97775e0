"""What devices pay in joules: picojoules per local step and per byte, summed as whole numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedactors.plan import Order
from fedactors.scenario.model import Scenario

PICO = 10**12


class Tariff(NamedTuple):
    """Picojoules of each device, in columns of length N."""

    step: NDArray[np.int64]
    byte: NDArray[np.int64]

    def of(self, order: Order) -> int:
        """Return the picojoules of one trip: of its steps, seen by the server or not, and of its bytes."""
        return order.steps * int(self.step[order.client]) + (order.down + order.up) * int(self.byte[order.client])

    def total(self, orders: Iterable[Order]) -> int:
        """Return the picojoules of several trips."""
        return sum(map(self.of, orders))


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

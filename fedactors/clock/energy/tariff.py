"""What devices pay for their trips: by local step, by byte, and by the watts of each stage.

    energy of a trip = per_step steps + per_byte bytes + down t_down + compute t_compute + up t_up + idle t_idle

with t the times for which the device was on in each stage. Prices are whole picojoules and microwatts, times whole
nanoseconds: energies are whole femtojoules, and sums over trips, groups, stages and rounds are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedactors.plan import Int64, Orders, Plan, StageTimes
from fedactors.scenario.costs.energy_options import STAGES, Consumption
from fedactors.scenario.model import Scenario

FEMTO = 10**15
PARTS = (*STAGES, "steps", "bytes")
_KWH = 3_600_000 * FEMTO
_LOW = 30  # bits that are summed by themselves, so that sums of times do not overflow


class Spent(NamedTuple):
    """Energies in fJ by group and part, `[group][part]`."""

    of: tuple[tuple[int, ...], ...]

    @property
    def total(self) -> int:
        """Energy of all groups and parts, fJ."""
        return sum(map(sum, self.of))

    def plus(self, other: Spent, sign: int = 1) -> Spent:
        """Return the sums of both, or the differences."""
        pairs = zip(self.of, other.of, strict=True)
        return Spent(tuple(tuple(a + sign * b for a, b in zip(*pair, strict=True)) for pair in pairs))


class GroupTariff(NamedTuple):
    """What the devices of one group pay."""

    name: str
    devices: int
    price: Consumption = Consumption()


class Tariff:
    """What the devices of each group pay; groups have the clients one after the other."""

    def __init__(self, groups: Sequence[GroupTariff]) -> None:
        self.names = tuple(group.name for group in groups)
        self._counts = [group.devices for group in groups]
        self._ends = np.cumsum(self._counts)
        self._prices = [group.price for group in groups]
        self.has_watts = any(price.has_watts for price in self._prices)
        self.has_carbon = any(price.carbon for price in self._prices)

    @property
    def devices(self) -> int:
        """Number of all devices."""
        return sum(self._counts)

    @property
    def nothing(self) -> Spent:
        """Return energies of 0."""
        return Spent(((0,) * len(PARTS),) * len(self._prices))

    def ahead(self, size: int) -> Spent:
        """Return what devices pay for `size` bytes that are sent to each before the first round."""
        pairs = zip(self._counts, self._prices, strict=True)
        return Spent(tuple((0, 0, 0, 0, 0, 1000 * price.per_byte * count * size) for count, price in pairs))

    def spent(self, plan: Plan, *, heard: bool = False) -> Spent:
        """Return what the trips of a plan cost, or those whose updates were heard: also what the server never saw."""
        orders, stages = plan.orders, plan.stages
        kept = orders.is_heard if heard else np.ones(len(orders), bool)
        group_of = np.searchsorted(self._ends, orders.client, side="right")
        found = []
        for number, price in enumerate(self._prices):
            chosen = np.flatnonzero(kept & (group_of == number))
            found.append(_parts(price, orders, stages, chosen))
        return Spent(tuple(found))

    def joules(self, plan: Plan) -> NDArray[np.float64]:
        """Return what each trip of a plan cost, `(orders,)` J, rounded as floats are."""
        orders, stages = plan.orders, plan.stages
        group_of = np.searchsorted(self._ends, orders.client, side="right")

        def price(key: str) -> NDArray[np.float64]:
            return np.array([getattr(one, key) for one in self._prices], np.float64)[group_of]

        found = 1000 * (price("per_step") * orders.steps + price("per_byte") * (orders.down + orders.up))
        if stages is not None:
            found += sum(price(stage) * time for stage, time in zip(STAGES, stages, strict=True))
        joules: NDArray[np.float64] = found / FEMTO
        return joules

    def ahead_each(self, size: int) -> NDArray[np.float64]:
        """Return what each device pays for `size` bytes that it was sent before the first round, `(devices,)` J."""
        return np.repeat([1000 * price.per_byte * size / FEMTO for price in self._prices], self._counts)

    def carbon_each(self, joules: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the grams of CO2 equivalents that the energy of each device stands for, `(devices,)`."""
        grams_per_joule = [(price.carbon or 0) * FEMTO / (1000 * _KWH) for price in self._prices]
        grams: NDArray[np.float64] = joules * np.repeat(grams_per_joule, self._counts)
        return grams

    def carbon(self, spent: Spent) -> float:
        """Return the grams of CO2 equivalents that energies stand for."""
        pairs = zip(spent.of, self._prices, strict=True)
        return sum(sum(parts) * (price.carbon or 0) for parts, price in pairs) / (1000 * _KWH)


def _parts(price: Consumption, orders: Orders, stages: StageTimes | None, chosen: Int64) -> tuple[int, ...]:
    """Return the energy of some trips, of one group, by part."""
    watts = [getattr(price, stage) for stage in STAGES]
    times = (0, 0, 0, 0) if stages is None else tuple(_sum(column[chosen]) for column in stages)
    moved = _sum(orders.down[chosen]) + _sum(orders.up[chosen])
    return (
        *(power * time for power, time in zip(watts, times, strict=True)),
        1000 * price.per_step * _sum(orders.steps[chosen]),
        1000 * price.per_byte * moved,
    )


def _sum(column: Int64) -> int:
    """Return a sum that may not fit into 64 bits."""
    return (int((column >> _LOW).sum()) << _LOW) + int((column & ((1 << _LOW) - 1)).sum())


def tariff_of(scenario: Scenario) -> Tariff | None:
    """Return what the devices of a scenario pay; None if it does not say."""
    groups = scenario.population
    if all(group.energy is None for group in groups):
        return None
    return Tariff([GroupTariff(group.name, group.count, group.energy or Consumption()) for group in groups])

"""What the devices of a run consumed: joules, of which stages, groups and devices, and the carbon that stands for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedactors.clock.energy.tariff import FEMTO, PARTS, Spent, Tariff
from fedactors.plan import Plan
from fedactors.report.measures import gini


class EnergyTotals:
    """Running sums over all plans; `ahead` bytes were sent to each device before the first."""

    def __init__(self, tariff: Tariff, ahead: int) -> None:
        self._tariff = tariff
        self._ahead = tariff.ahead(ahead)
        self._spent = self._ahead
        self._wasted = tariff.nothing
        self._of_device = np.zeros(tariff.devices)  # J, of trips
        self._ahead_each = tariff.ahead_each(ahead)

    def add(self, plan: Plan, tariff: Tariff | None = None) -> dict[str, Any]:
        """Take in a plan, by another `tariff` if it is given, and return its columns of metrics."""
        tariff = tariff or self._tariff
        spent = tariff.spent(plan)
        self._spent = self._spent.plus(spent)
        self._wasted = self._wasted.plus(spent).plus(tariff.spent(plan, heard=True), -1)
        np.add.at(self._of_device, plan.orders.client, tariff.joules(plan))
        return self._columns(spent, tariff)

    def _columns(self, spent: Spent, tariff: Tariff) -> dict[str, float]:
        """Return energies in columns of metrics."""
        row = {"joules": spent.total / FEMTO}
        return row | ({"co2_grams": tariff.carbon(spent)} if tariff.has_carbon else {})

    @property
    def ahead(self) -> dict[str, float]:
        """What was consumed before the first round, in columns of metrics."""
        return self._columns(self._ahead, self._tariff)

    @property
    def of_devices(self) -> dict[str, NDArray[np.float64]]:
        """What each device has consumed, `(devices,)`, by the names that columns of tables have."""
        joules = self._of_device + self._ahead_each
        return {"joules": joules} | ({"co2_grams": self._tariff.carbon_each(joules)} if self._tariff.has_carbon else {})

    def summary(self) -> dict[str, Any]:
        """Return the sums in the form of summary.json."""
        tariff, spent = self._tariff, self._spent
        found: dict[str, Any] = {"joules": spent.total / FEMTO, "joules_wasted": self._wasted.total / FEMTO}
        if tariff.has_carbon:
            found["co2_grams"] = tariff.carbon(spent)
        return found | (self._parts(spent) if tariff.has_watts else {})

    def _parts(self, spent: Spent) -> dict[str, Any]:
        """Return what was consumed by stage and by group, and how unevenly."""
        by_part = [sum(parts) for parts in zip(*spent.of, strict=True)]
        used = [(part, energy) for part, energy in zip(PARTS, by_part, strict=True) if energy]
        each = self._of_device
        return {
            "joules_of_stages": {part: energy / FEMTO for part, energy in used},
            "joules_of_groups": {
                name: sum(parts) / FEMTO for name, parts in zip(self._tariff.names, spent.of, strict=True)
            },
            "joules_of_device": {"mean": float(each.mean()), "max": float(each.max(initial=0.0)), "gini": gini(each)},
        }

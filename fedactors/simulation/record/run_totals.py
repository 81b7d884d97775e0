"""Totals of a run: clients asked, outcomes of their trips, steps and bytes. They are summed from Plans alone."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedactors.clock.energy.tariff import Tariff
from fedactors.errors import ConservationError
from fedactors.plan import OUTCOMES, SECOND, Int64, Outcome, Plan
from fedactors.report.measures import gini
from fedactors.simulation.record.energy_totals import EnergyTotals


class RunTotals:
    """Running totals over all plans; `ahead` bytes were sent down before the first, the same to each device.

    `devices` is the number of all. Where a `tariff` says what devices pay, joules are counted too.
    """

    def __init__(self, ahead: int = 0, tariff: Tariff | None = None, devices: int = 0) -> None:
        self.plans = 0
        self.asked = 0
        self.heard = 0
        self.empty = 0
        self.steps = 0
        self.wasted = 0
        self._ahead = ahead
        self.down = ahead
        self.up = 0
        self.backhaul = 0  # between edges and cloud
        self.outcomes = dict.fromkeys(Outcome, 0)
        self.virtual = 0  # ns
        self.behind: Counter[int] = Counter()  # updates by the versions they were behind
        self.given: Int64 = np.zeros(0, np.int64)  # updates heard of each client
        self._devices = devices
        self._energy = None if tariff is None else EnergyTotals(tariff, ahead // tariff.devices)

    def add(self, plan: Plan, tariff: Tariff | None = None) -> dict[str, Any]:
        """Take in a plan, in whose round another `tariff` may hold, and return its row.

        Raises ConservationError if its outcomes do not add up.
        """
        counts = _outcomes(plan)
        heard = plan.heard()
        steps = int(heard.steps.sum())
        down = int(plan.orders.down.sum())
        up = int(plan.orders.up.sum())
        self.plans += 1
        self.asked += len(plan.orders)
        self.heard += len(heard)
        self.empty += not len(heard)
        self.steps += steps
        self.wasted += int(plan.orders.steps.sum()) - steps
        self.down += down
        self.up += up
        self.virtual = plan.ready
        backhaul = {} if plan.tier is None else {"bytes_backhaul": plan.tier.moved}
        self.backhaul += sum(backhaul.values())
        self._count_given(heard.client)
        self.behind.update((plan.version - heard.base).tolist())
        for outcome, count in counts.items():
            self.outcomes[outcome] += count
        return {
            "round": plan.version + 1, "virtual_seconds": plan.ready / SECOND, "asked": len(plan.orders),
            "heard": len(heard), "outcomes": {outcome.value: count for outcome, count in counts.items()},
            "steps": steps, "bytes_down": down, "bytes_up": up,
            **backhaul, **(self._energy.add(plan, tariff) if self._energy else {}),
        }  # fmt: skip

    @property
    def ahead(self) -> dict[str, float]:
        """What was spent before the first round, in the columns of metrics; nothing where nothing was sent."""
        energy = self._energy.ahead if self._energy else {}
        return {"bytes_down": self._ahead, **energy} if self._ahead else {}

    @property
    def of_devices(self) -> dict[str, NDArray[np.float64]]:
        """What each device has consumed, by column; nothing where that is not counted."""
        return self._energy.of_devices if self._energy else {}

    def _count_given(self, clients: Int64) -> None:
        """Count an update of each of `clients`, of which one may stand there twice."""
        most = int(clients.max(initial=-1)) + 1
        if most > len(self.given):
            self.given = np.pad(self.given, (0, max(most, self._devices) - len(self.given)))
        np.add.at(self.given, clients, 1)

    def summary(self) -> dict[str, Any]:
        """Return the totals in the form of summary.json."""
        return {
            "plans": self.plans,
            "virtual_seconds": self.virtual / SECOND,
            "asked": self.asked,
            "heard": self.heard,
            "clients_heard": int(np.count_nonzero(self.given)),
            "empty_rounds": self.empty,
            "outcomes": {outcome.value: count for outcome, count in self.outcomes.items()},
            "steps": self.steps,
            "steps_wasted": self.wasted,
            "bytes": {"down": self.down, "up": self.up},
            **({"bytes_backhaul": self.backhaul} if self.backhaul else {}),
            **(self._energy.summary() if self._energy else {}),
            "staleness": {
                "mean": sum(tau * count for tau, count in self.behind.items()) / max(self.heard, 1),
                "max": max(self.behind, default=0),
            },
            "fairness": {"gini": self._gini()},
        }

    def _gini(self) -> float:
        """Return how unevenly updates come from all devices, those never heard among them."""
        return gini(np.pad(self.given, (0, max(0, self._devices - len(self.given)))))


def _outcomes(plan: Plan) -> dict[Outcome, int]:
    """Return how many orders had each outcome that occurs. Raises ConservationError if they do not add up."""
    found = np.bincount(plan.orders.outcome, minlength=len(OUTCOMES)).tolist()
    counts = {outcome: count for outcome, count in zip(OUTCOMES, found, strict=True) if count}
    if sum(counts.values()) != len(plan.orders):
        raise ConservationError(f"round {plan.version}: {len(plan.orders)} asked, outcomes {counts}")
    return counts

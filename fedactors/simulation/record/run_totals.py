"""The books of a run: what was asked, what became of it, what it moved. Filled from Plans alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from fedactors.errors import ConservationError
from fedactors.plan import SECOND, Order, Outcome, Plan
from fedactors.report.measures import gini
from fedactors.simulation.record.energy import PICO, Tariff


class RunTotals:
    """Running totals over all plans; `ahead` bytes were sent down before the first, the same to each device.

    `devices` is the number of all. Where a `tariff` says what devices pay, joules are counted too.
    """

    def __init__(self, ahead: int = 0, tariff: Tariff | None = None, devices: int = 0) -> None:
        self.plans = self.asked = self.heard = self.empty = self.steps = self.wasted = self.down = self.up = 0
        self.outcomes, self.down = dict.fromkeys(Outcome, 0), ahead
        self.virtual = 0  # ns
        self.behind: Counter[int] = Counter()  # updates by the versions they were behind
        self.given: Counter[int] = Counter()  # updates heard of each client
        self._tariff, self._devices = tariff, devices
        # picojoules: Python's integers do not overflow
        self.energy = 0 if tariff is None else ahead // len(tariff.byte) * sum(tariff.byte.tolist())
        self.energy_wasted = 0

    def add(self, plan: Plan) -> dict[str, Any]:
        """Take in a plan and return its row. Raises ConservationError if its outcomes do not add up."""
        found = Counter(order.outcome for order in plan.orders)
        counts = {outcome: found[outcome] for outcome in Outcome}
        if sum(counts.values()) != len(plan.orders):
            raise ConservationError(f"round {plan.version}: {len(plan.orders)} asked, outcomes {counts}")
        heard = list(plan.heard())
        steps, down, up = (
            sum(o.steps for o in heard),
            sum(o.down for o in plan.orders),
            sum(o.up for o in plan.orders),
        )
        self.plans += 1
        self.asked += len(plan.orders)
        self.heard += len(heard)
        self.empty += not heard
        self.steps += steps
        self.wasted += sum(o.steps for o in plan.orders) - steps
        self.down, self.up, self.virtual = self.down + down, self.up + up, plan.ready
        self.given.update(order.client for order in heard)
        self.behind.update(plan.version - order.base for order in heard)
        for outcome, count in counts.items():
            self.outcomes[outcome] += count
        self.energy += (spent := self._spent(plan.orders))
        self.energy_wasted += spent - self._spent(heard)
        named = {outcome.value: count for outcome, count in counts.items() if count}
        return {
            "round": plan.version + 1, "virtual_seconds": plan.ready / SECOND, "asked": len(plan.orders),
            "heard": len(heard), "outcomes": named, "steps": steps, "bytes_down": down, "bytes_up": up,
            **({"joules": spent / PICO} if self._tariff else {}),
        }  # fmt: skip

    def _spent(self, orders: Iterable[Order]) -> int:
        return self._tariff.total(orders) if self._tariff else 0

    def summary(self) -> dict[str, Any]:
        """Return the totals in the form of summary.json."""
        return {
            "plans": self.plans,
            "virtual_seconds": self.virtual / SECOND,
            "asked": self.asked,
            "heard": self.heard,
            "clients_heard": len(self.given),
            "empty_rounds": self.empty,
            "outcomes": {outcome.value: count for outcome, count in self.outcomes.items()},
            "steps": self.steps,
            "steps_wasted": self.wasted,
            "bytes": {"down": self.down, "up": self.up},
            **self._joules(),
            "staleness": {
                "mean": sum(tau * count for tau, count in self.behind.items()) / max(self.heard, 1),
                "max": max(self.behind, default=0),
            },
            "fairness": {"gini": self._gini()},
        }

    def _gini(self) -> float:
        """Return how unevenly updates come from all devices, those never heard among them."""
        counts = np.fromiter(self.given.values(), np.int64, len(self.given))
        return gini(np.pad(counts, (0, max(0, self._devices - len(counts)))))

    def _joules(self) -> dict[str, float]:
        if self._tariff is None:
            return {}
        return {"joules": self.energy / PICO, "joules_wasted": self.energy_wasted / PICO}

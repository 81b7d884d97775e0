"""Reads what every Plan consumed: the times of its trips' stages, and whether a budget is spent.

The times follow from the orders and from when devices were on, the same for trips in columns and event by event:

    down       from the start until the download was done
    compute    from then until the last step
    up         from then until the end, if steps were done
    idle       from then until the end, if there were none: no step would have been in time

each counted as far as the device was on. A transfer that waits for its turn at an access point is in its stage.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedactors.clock.energy.tariff import Tariff, tariff_of
from fedactors.clock.selections.history import Seen
from fedactors.plan import Ending, MaybeEnding, Orders, Plan, StageTimes
from fedactors.scenario.costs.energy_options import SpendingLimits
from fedactors.scenario.costs.power_units import show_amount, show_mass
from fedactors.scenario.model import Scenario
from fedactors.scenario.units import show_size

_PER_PICO = 1000  # fJ


class Meter:
    """Counts what a run spends; `exhausted` says why it has to end, if its budget is spent."""

    def __init__(
        self, tariff: Tariff | None, budget: SpendingLimits | None, seen: Seen, ahead: int, devices: int
    ) -> None:
        self._tariff = tariff
        self._budget = budget
        self._seen = seen
        self._traffic = ahead * devices
        self._spent = None if tariff is None else tariff.ahead(ahead)
        self.exhausted: MaybeEnding = ""

    def read(self, plan: Plan) -> Plan:
        """Count a plan, and return it with the times of its stages if something depends on them."""
        if self._tariff is not None and self._tariff.has_watts:
            plan = replace(plan, stages=stage_times(plan.orders, self._seen))
        if self._budget is not None:
            self._traffic += int(plan.orders.down.sum()) + int(plan.orders.up.sum())
            if self._tariff is not None and self._spent is not None:
                self._spent = self._spent.plus(self._tariff.spent(plan))
            self.exhausted = self._ended(self._budget)
        return plan

    def _ended(self, budget: SpendingLimits) -> MaybeEnding:
        if budget.traffic is not None and self._traffic >= budget.traffic:
            return Ending(f"the budget of {show_size(budget.traffic)} is spent", "budget")
        if self._tariff is None or self._spent is None:
            return ""
        if budget.energy is not None and self._spent.total >= budget.energy * _PER_PICO:
            return Ending(f"the budget of {show_amount(budget.energy)} is spent", "budget")
        if budget.carbon is not None and self._tariff.carbon(self._spent) * 1000 >= budget.carbon:
            return Ending(f"the budget of {show_mass(budget.carbon)} of CO2 is spent", "budget")
        return ""


def stage_times(orders: Orders, seen: Seen) -> StageTimes:
    """Return for how long each device was on in each stage of its trip."""
    down = seen.on_between(orders.client, orders.started, orders.downloaded)
    compute = seen.on_between(orders.client, orders.downloaded, orders.computed)
    last = seen.on_between(orders.client, orders.computed, orders.finished)
    sends = orders.steps > 0
    return StageTimes(down, compute, np.where(sends, last, 0), np.where(sends, 0, last))


def meter_of(scenario: Scenario, seen: Seen, ahead: int) -> Meter | None:
    """Return what counts in a run of `scenario`, whose devices are sent `ahead` bytes each before it; None: nothing."""
    tariff, budget = tariff_of(scenario), scenario.server.budget
    if budget is None and not (tariff is not None and tariff.has_watts):
        return None
    return Meter(tariff, budget, seen, ahead, scenario.devices)

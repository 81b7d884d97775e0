"""Numbers gone bad: updates with NaN or Inf, a model that holds them, losses that jump or run away."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np

from fedactors.attacks.base import Attackers
from fedactors.fleet.messages import Outcomes
from fedactors.plan import OUTCOME_CODES, SECOND, MaybeEnding, Outcome, Plan
from fedactors.simulation.endings import diverging

_BEFORE = 10  # rounds that a loss is compared with
_SPIKE = 3.0  # times their median


def quarantined(plan: Plan, clients: Collection[int]) -> Plan:
    """Return the plan in which the updates of `clients` have been set aside."""
    if not clients:
        return plan
    orders = plan.orders
    bad = orders.is_heard & np.isin(orders.client, list(clients))
    outcome = np.where(bad, OUTCOME_CODES[Outcome.QUARANTINED], orders.outcome)
    return replace(plan, orders=replace(orders, outcome=outcome))


def complaint(outcomes: Outcomes, plan: Plan, attackers: Sequence[Attackers] = ()) -> str:
    """Return what is wrong with the numbers of a round; nothing if they are sound."""
    where = f"round {plan.version + 1} (virtual time {plan.closed / SECOND:.3f} s): NaN or Inf in"
    if outcomes.bad:
        named = "; ".join(_named(client, step, attackers) for client, step in outcomes.bad[:5])
        more = f" and {len(outcomes.bad) - 5} more" if len(outcomes.bad) > 5 else ""
        honest = any(_group_of(client, attackers) is None for client, _ in outcomes.bad)
        advice = "; a smaller server.schedule.lr often helps" * honest
        return f"{where} the update of {named}{more}{advice}"
    return "" if outcomes.sound else f"{where} the server's model, though every update that counted was finite"


def _named(client: int, step: int, attackers: Sequence[Attackers]) -> str:
    group = _group_of(client, attackers)
    return f"client {client} from local step {step + 1}" if group is None else f"client {client} (attacks: {group})"


def _group_of(client: int, attackers: Sequence[Attackers]) -> str | None:
    return next((one.group for one in attackers if one.first <= client < one.last), None)


def spike(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Return how many times the median of the ten rounds before the last round's train loss is, if that is a jump."""
    losses = [row["train_loss"] for row in rows[-_BEFORE - 1 :] if row.get("train_loss") is not None]
    if len(losses) <= _BEFORE or rows[-1].get("train_loss") is None:
        return None
    ratio = float(losses[-1] / usual) if (usual := median(losses[:-1])) > 0 else 0.0
    return ratio if ratio >= _SPIKE else None


def diverged(rows: Sequence[Mapping[str, Any]], threshold: float | None, *, trained: bool) -> MaybeEnding:
    """Return why a run has to end whose loss went beyond `threshold`; nothing if it goes on.

    Where the last round has `trained`, a loss that it lacks is NaN or Inf.
    """
    if threshold is None or not rows:
        return ""
    loss, where = rows[-1].get("train_loss"), f"in round {rows[-1]['round']}"
    if loss is None:
        return diverging(f"train loss {where} is no finite number") if trained else ""
    return diverging(f"train loss {loss:.4g} {where} is above {threshold:g}") if loss > threshold else ""

"""What a branch may change: from its beginning on, all that leaves the rounds before it as they were recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fedactors.errors import ScenarioError
from fedactors.models.layers import REGULARISERS
from fedactors.scenario.costs.energy_options import Consumption
from fedactors.scenario.model import Scenario
from fedactors.scenario.server_options import ServerOptions
from fedactors.simulation.feedback import heeding, losses_in
from fedactors.simulation.prepared import Prepared

_UNDER_PRIVACY = ("privacy", "uplink", "participation", "algorithm", "aggregation", "secure")  # what epsilon is of
_AS_BEFORE = "accepted: as in the run"


def refuse_other_past(before: Prepared, after: Prepared, rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise ScenarioError if `after` cannot follow `before`, whose recorded `rows` of metrics a branch shares.

    That is so if plans of shared rounds would have been others, or if what is kept of them cannot be gone on with.
    """
    source = after.scenario.source
    if reason := next(_reasons(before, after, len(rows)), ""):
        raise ScenarioError(f"{source}: {reason}")
    clocks = [heeding(one.clock(), lambda plan: losses_in(rows[plan.version])) for one in (before, after)]
    for number in range(1, len(rows) + 1):
        plan, changed = (next(clock, None) for clock in clocks)
        if plan is not None and plan == changed and _same_people(before, after, plan.closed):
            continue
        would = f"have changed round {number} already" if changed else f"have ended the run after round {number - 1}"
        raise ScenarioError(
            f"{source}: what is changed would {would} (accepted: a branch at round {number - 1} or before, or a change"
            " that begins later)"
        )


def _reasons(before: Prepared, after: Prepared, at: int) -> Iterator[str]:
    """Yield why one scenario cannot follow another after `at` rounds."""
    rounds = after.scenario.server.rounds
    if rounds < at:
        yield f"server.rounds: {rounds}, and the branch begins after round {at} (accepted: {at} or more)"
    yield from _work_reasons(before, after)
    yield from _rule_reasons(before.scenario.server, after.scenario.server)
    yield from _energy_reasons(before, after)


def _work_reasons(before: Prepared, after: Prepared) -> Iterator[str]:
    """Yield why clients of one scenario cannot go on as those of another one."""
    if _groups(before.scenario) != (groups := _groups(after.scenario)):
        yield f"population: {_shown(groups)} (accepted: the groups of the run, {_shown(_groups(before.scenario))})"
    if (kept := _vectors(before)) != (wanted := _vectors(after)):
        yield (
            f"server.algorithm has the state {', '.join(wanted)}, the run has {', '.join(kept)}"
            " (accepted: an algorithm with the same state)"
        )
    if _own_data(before) != _own_data(after):
        yield f"server.data: other samples at the server ({_AS_BEFORE})"
    if not (np.array_equal(before.sizes, after.sizes) and np.array_equal(before.held, after.held)):
        yield f"clients hold other samples than in the rounds that are shared ({_AS_BEFORE})"
    if before.workloads != after.workloads:
        yield f"server.local: clients do other local work than in the rounds that are shared ({_AS_BEFORE})"


def _rule_reasons(one: ServerOptions, other: ServerOptions) -> Iterator[str]:
    """Yield why what one server does cannot follow what another one did."""
    if (one.membership is None) != (other.membership is None):
        yield f"server.membership: {'taken away' if one.membership else 'added'} in the middle of a run ({_AS_BEFORE})"
    if (one.privacy or other.privacy) and (changed := [key for key in _UNDER_PRIVACY if _differ(one, other, key)]):
        yield f"server.{changed[0]}: epsilon covers all rounds, those that are shared too ({_AS_BEFORE})"
    if other.selection.steers and not one.selection.steers:
        yield f'server.selection: "{other.selection.name}" looks at losses, of which the run has none ({_AS_BEFORE})'


def _energy_reasons(before: Prepared, after: Prepared) -> Iterator[str]:
    """Yield why what one scenario says of energy cannot follow what another one says."""
    if _counted(before) != _counted(after):
        yield f"population.*.energy: counted in another way than in the rounds that are shared ({_AS_BEFORE})"
    if _prices(before) != _prices(after) and (after.scenario.server.budget or after.population.behaving):
        yield f"population.*.energy: a budget or a battery depends on what was spent already ({_AS_BEFORE})"


def _counted(prepared: Prepared) -> tuple[bool, list[int | None]] | None:
    """Return how energy is counted: whether by watts too, and the carbon of each group; None where it is not."""
    tariff = prepared.tariff
    carbon = [(group.energy or Consumption()).carbon for group in prepared.scenario.population]
    return None if tariff is None else (tariff.has_watts, carbon)


def _prices(prepared: Prepared) -> list[Consumption | None]:
    return [group.energy for group in prepared.scenario.population]


def _groups(scenario: Scenario) -> list[tuple[str, int]]:
    return [(group.name, group.count) for group in scenario.population]


def _shown(groups: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{count} {name}" for name, count in groups)


def _own_data(prepared: Prepared) -> tuple[Any, bool]:
    server = prepared.scenario.server
    return server.data, server.algorithm.central_loss in REGULARISERS


def _differ(one: ServerOptions, other: ServerOptions, key: str) -> bool:
    return bool(getattr(one, key) != getattr(other, key))


def _same_people(before: Prepared, after: Prepared, end: int) -> bool:
    """Whether the same devices had arrived and departed when the instant `end` was over, at the same times."""
    one, other = (np.minimum([some.population.arrive, some.population.depart], end + 1) for some in (before, after))
    return bool(np.array_equal(one, other))


def _vectors(prepared: Prepared) -> list[str]:
    import torch

    from fedactors.learning.traffic.downlink import lengths

    algorithm = prepared.scenario.server.algorithm
    personal = [f"{len(prepared.personal)} personal parameters"] if len(prepared.personal) else []
    kept = [f"{name} of each client" for name in (*algorithm.keeps, *prepared.feedback)]
    messages = lengths(prepared.downlink, algorithm.sends, 1)
    return sorted([*algorithm.start(torch.zeros(1)), *messages, *prepared.broadcast_values, *kept, *personal])

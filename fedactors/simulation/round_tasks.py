"""From the Plans of a run to its tasks, one after the other: with the moves until then, and the objective, if any."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from fedactors.fleet.messages import RoundTask
from fedactors.plan import Plan
from fedactors.simulation.assigned_scenario import with_moves
from fedactors.simulation.divergence import quarantined
from fedactors.simulation.objective_state import Decide, Objective, ObjectiveState, recorded
from fedactors.simulation.prepared import Prepared
from fedactors.simulation.record.eras import Eras
from fedactors.simulation.tasks import task_of


class PlannedRound(NamedTuple):
    """A round before it is trained."""

    plan: Plan
    task: RoundTask
    objective_state: ObjectiveState | None


class RoundTasks:
    """The tasks of a run on a type of `device`, each by the scenario that holds in its round."""

    def __init__(self, prepared: Prepared, eras: Eras, device: str) -> None:
        self.prepared = prepared  # with the moves until now
        self._device = device
        self._scenario = eras.each(lambda scenario: scenario)
        self._holding = prepared  # in the last round
        self._objective = Objective(prepared) if prepared.scenario.server.membership else None

    @property
    def has_objective(self) -> bool:
        """Whether the objective follows arrivals and departures."""
        return self._objective is not None

    def asks(self, plan: Plan) -> bool:
        """Say whether the objective of `plan` may need a decision that the policy leaves open."""
        return self._objective is not None and self._objective.asks(plan)

    def planned(
        self, plan: Plan, deciding: Callable[[Objective], Decide], aside: Collection[int] = (), *, last: bool
    ) -> PlannedRound:
        """Return the round of `plan`, the next one, without the updates of clients set `aside`.

        `deciding` is given the objective until then, and returns what decides about departures. The model after the
        `last` round is always evaluated.
        """
        objective_state = None
        if self._objective is not None:
            self._objective.follow(self._scenario(plan.version).server)
            objective_state = self._objective.at(plan, deciding(self._objective.fork()))
        return self._round(quarantined(plan, aside), objective_state, last=last)

    def recalled(self, plan: Plan, row: Mapping[str, Any], aside: Collection[int], *, last: bool) -> PlannedRound:
        """Return the round of `plan`, the next one, decided about as is written in its `row` of metrics."""
        return self.planned(plan, lambda before: recorded(row), aside, last=last)

    def without(self, planned: PlannedRound, clients: Collection[int]) -> PlannedRound:
        """Return a round without the updates of some clients."""
        plan = quarantined(planned.plan, clients)
        return self._round(plan, planned.objective_state, last=planned.task.evaluate)

    def _round(self, plan: Plan, objective_state: ObjectiveState | None, *, last: bool) -> PlannedRound:
        moved, scenario = with_moves(self.prepared, plan), self._scenario(plan.version)
        if moved is not self.prepared or scenario is not self._holding.scenario:
            self.prepared = moved
            self._holding = moved if scenario is moved.scenario else replace(moved, scenario=scenario)
        task = task_of(plan, self._holding, self._device, last=last, objective_state=objective_state)
        return PlannedRound(plan, task, objective_state)

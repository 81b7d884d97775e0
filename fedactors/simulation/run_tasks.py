"""The tasks of one run, plan after plan: what a round needs to know of the rounds before it is counted here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from fedactors.fleet.messages import RoundTask
from fedactors.plan import Plan
from fedactors.scenario.model import Scenario
from fedactors.simulation.divergence import quarantined
from fedactors.simulation.objective_state import Decide, Objective, ObjectiveState, recorded
from fedactors.simulation.prepared import Prepared
from fedactors.simulation.record.eras import Eras
from fedactors.simulation.tasks import task_of


class RunTasks:
    """Makes the tasks of the plans of one run in their order, for hosts on `device` ("cpu" or "cuda").

    `scenario_of` gives the scenario that holds in the round of a version; without it there is one.
    """

    def __init__(
        self,
        prepared: Prepared,
        device: str,
        heard: int = 0,
        scenario_of: Callable[[int], Scenario] | None = None,
    ) -> None:
        self.prepared = prepared  # with the moves that plans so far have told
        self._device = device
        self._heard = heard  # rounds so far in which an update counted
        self._scenario_of = scenario_of or (lambda version: prepared.scenario)
        self._holding = prepared  # in the last round

    def fork(self) -> RunTasks:
        """Return tasks that go on from here by themselves."""
        return RunTasks(self.prepared, self._device, self._heard, self._scenario_of)

    def next(self, plan: Plan, objective_state: ObjectiveState | None, *, last: bool) -> RoundTask:
        """Return the task of the plan that comes next."""
        task = self._of(plan, objective_state, self._heard, last=last)
        self._heard += bool(task.chunks)
        return task

    def instead(self, task: RoundTask, plan: Plan, objective_state: ObjectiveState | None) -> RoundTask:
        """Return the task of a plan, with some updates set aside, that takes the place of that of `task`.

        If none is left, the round is one in which no update counted.
        """
        found = self._of(plan, objective_state, task.facts.heard_before, last=task.evaluate)
        self._heard -= bool(task.chunks) - bool(found.chunks)
        return found

    def _of(self, plan: Plan, objective_state: ObjectiveState | None, heard: int, *, last: bool) -> RoundTask:
        moved = _with_moves(self.prepared, plan)
        scenario = self._scenario_of(plan.version)
        if moved is not self.prepared or scenario is not self._holding.scenario:
            self.prepared = moved
            self._holding = moved if scenario is moved.scenario else replace(moved, scenario=scenario)
        return task_of(
            plan, self._holding, self._device, last=last, objective_state=objective_state, heard_before=heard
        )


class PlannedRound(NamedTuple):
    """A round before it is trained."""

    plan: Plan
    task: RoundTask
    objective_state: ObjectiveState | None


class PlannedRounds:
    """The rounds of a run on a type of `device`, each by the scenario that holds in it, and with its objective."""

    def __init__(self, prepared: Prepared, eras: Eras, device: str) -> None:
        self._scenario = eras.each(lambda scenario: scenario)
        self.tasks = RunTasks(prepared, device, scenario_of=self._scenario)
        self._objective = Objective(prepared) if prepared.scenario.server.membership else None

    @property
    def has_objective(self) -> bool:
        """Whether the objective follows arrivals and departures."""
        return self._objective is not None

    def asks(self, plan: Plan) -> bool:
        """Say whether the objective of `plan` may need a decision that the policy leaves open."""
        return self._objective is not None and self._objective.asks(plan)

    def next(
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
        kept = quarantined(plan, aside)
        task = self.tasks.next(kept, objective_state, last=last)
        return PlannedRound(kept, task, objective_state)

    def recalled(self, plan: Plan, row: Mapping[str, Any], aside: Collection[int], *, last: bool) -> PlannedRound:
        """Return the round of `plan`, the next one, decided about as is written in its `row` of metrics."""
        return self.next(plan, lambda before: recorded(row), aside, last=last)

    def without(self, pending: Sequence[PlannedRound], clients: Collection[int]) -> list[PlannedRound]:
        """Return the last rounds made, `pending` in their order, the first one without the updates of some clients.

        If that one has none left, the others have one round less before them in which an update counted.
        """
        first, *later = pending
        plan = quarantined(first.plan, clients)
        instead = self.tasks.instead(first.task, plan, first.objective_state)
        fewer = bool(first.task.chunks) - bool(instead.chunks)
        return [first._replace(plan=plan, task=instead), *(_heard_less(planned, fewer) for planned in later)]


def _heard_less(planned: PlannedRound, fewer: int) -> PlannedRound:
    """Return a round before which updates counted in so many rounds fewer."""
    facts = planned.task.facts
    return planned._replace(task=planned.task._replace(facts=facts._replace(heard_before=facts.heard_before - fewer)))


def _with_moves(prepared: Prepared, plan: Plan) -> Prepared:
    """Return a scenario in which the devices that moved by their behaviours until `plan` have the times of it.

    Before, they arrive and depart when the scenario says, or never: nobody foresees what a behaviour does.
    """
    if plan.moves is None or not (plan.arrived or plan.departed):
        return prepared
    people = prepared.population
    arrive = np.array(people.arrive)
    depart = np.array(people.depart)
    instants = np.array(plan.moves.instants, np.int64)
    arrive[list(plan.arrived)] = instants[: len(plan.arrived)]
    depart[list(plan.departed)] = instants[len(plan.arrived) :]
    return replace(prepared, population=replace(people, arrive=arrive, depart=depart))

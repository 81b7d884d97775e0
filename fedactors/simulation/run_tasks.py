"""The tasks of one run, plan after plan: what a round needs to know of the rounds before it is counted here."""

from __future__ import annotations

from fedactors.fleet.messages import RoundTask
from fedactors.plan import Plan
from fedactors.simulation.assigned_scenario import with_moves
from fedactors.simulation.objective_state import ObjectiveState
from fedactors.simulation.prepared import Prepared
from fedactors.simulation.tasks import task_of


class RunTasks:
    """Makes the tasks of the plans of one run in their order, for hosts on `device` ("cpu" or "cuda")."""

    def __init__(self, prepared: Prepared, device: str, heard: int = 0) -> None:
        self.prepared = prepared  # with the moves that plans so far have told
        self._device = device
        self._heard = heard  # rounds so far in which an update counted

    def fork(self) -> RunTasks:
        """Return tasks that go on from here by themselves."""
        return RunTasks(self.prepared, self._device, self._heard)

    def next(self, plan: Plan, objective_state: ObjectiveState | None, *, last: bool, aside: bool = False) -> RoundTask:
        """Return the task of the plan that comes next.

        `aside` says that updates of it were set aside, when it was executed before: then the round counts as heard.
        """
        task = self._of(plan, objective_state, self._heard, last=last)
        self._heard += bool(task.chunks or aside)
        return task

    def instead(self, task: RoundTask, plan: Plan, objective_state: ObjectiveState | None) -> RoundTask:
        """Return the task of a plan that takes the place of that of `task`."""
        return self._of(plan, objective_state, task.facts.heard_before, last=task.evaluate)

    def _of(self, plan: Plan, objective_state: ObjectiveState | None, heard: int, *, last: bool) -> RoundTask:
        self.prepared = with_moves(self.prepared, plan)
        return task_of(
            plan, self.prepared, self._device, last=last, objective_state=objective_state, heard_before=heard
        )

"""What weights depend on, as types: a run that is prepared has it, and so has a run folder that is read back."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fedactors.plan import Plan
from fedactors.scenario.model import Scenario
from fedactors.simulation.prepared import Prepared
from fedactors.workload import WorkloadTable


class MembershipTimes(Protocol):
    """When each client arrives and departs, in columns of ns."""

    @property
    def arrive(self) -> NDArray[np.int64]:
        """First instant at which it belongs to the population."""
        ...

    @property
    def depart(self) -> NDArray[np.int64]:
        """First instant at which it no longer does."""
        ...

    def __len__(self) -> int: ...


class AssignedScenario(Protocol):
    """What weights depend on: of a `Prepared`, or of a run folder."""

    @property
    def scenario(self) -> Scenario:
        """What the server does."""
        ...

    @property
    def held(self) -> NDArray[np.int64]:
        """Samples each client trains on."""
        ...

    @property
    def population(self) -> MembershipTimes:
        """When each client arrives and departs."""
        ...

    @property
    def workload_table(self) -> WorkloadTable:
        """What each client is asked to do."""
        ...


def with_moves(prepared: Prepared, plan: Plan) -> Prepared:
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

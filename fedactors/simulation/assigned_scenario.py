"""What weights depend on, as types: a run that is prepared has it, and so has a run folder that is read back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from fedactors.plan import Plan, Time
from fedactors.scenario.model import Scenario
from fedactors.workload import WorkloadTable

if TYPE_CHECKING:
    from fedactors.simulation.prepared import Prepared


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


class MemberCount:
    """How many devices with work belong to the population.

    One that departs before it arrives never does. Devices without work are never asked and have no loss: N, over which
    algorithms take means, does not count them.
    """

    def __init__(self, people: MembershipTimes, workload_table: WorkloadTable) -> None:
        works = workload_table.has_work
        self._arrive = np.sort(people.arrive[works])
        self._depart = np.sort(np.maximum(people.arrive, people.depart)[works])

    def at(self, time: Time) -> int:
        """Return how many have arrived and not departed at a moment."""
        arrived, departed = (np.searchsorted(column, time, "right") for column in (self._arrive, self._depart))
        return int(arrived - departed)


def can_be_asked(plan: Plan, assigned: AssignedScenario) -> NDArray[np.bool_]:
    """Return which devices have work, and belong to the population when the round of `plan` opens, `(clients,)`."""
    people = assigned.population
    there: NDArray[np.bool_] = (people.arrive <= plan.opened) & (plan.opened < people.depart)
    return there & assigned.workload_table.has_work


def with_work(clients: Sequence[int], assigned: AssignedScenario) -> tuple[int, ...]:
    """Return those of `clients` that have work."""
    works = assigned.workload_table.has_work
    return tuple(client for client in clients if works[client])


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

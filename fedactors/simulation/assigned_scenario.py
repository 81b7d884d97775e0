"""What weights depend on, and who counts in N: of a run that is prepared, or of a run folder that is read back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fedactors.plan import Plan, Time
from fedactors.scenario.model import Scenario
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

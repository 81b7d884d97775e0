"""Trips that are under way: what a timing policy waits for, and the orders that it gets when it aggregates.

The seam between the policies, which are SimPy processes, and the two ways to compute trips: in columns, beforehand
(`ColumnTrips` and `ColumnFlight`), and as processes of their own, event by event (`fedactors.clock.events`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import simpy
from typing_extensions import override

from fedactors.clock.cohort import Cohort, CohortPlanner
from fedactors.clock.trip import Trip
from fedactors.clock.virtual_time import VirtualTime, Waits
from fedactors.plan import HEARD, NEVER, OUTCOMES, Order, Orders, Outcome, Phase, Time

_HEARD = np.array([outcome in HEARD for outcome in OUTCOMES])


class Trips(ABC):
    """The trips of one cohort, in the order of its clients."""

    @abstractmethod
    def wait(self, quorum: int | None, *, early: bool) -> Waits:
        """Wait until the round closes: at its deadline, when a `quorum` has reported, or when all trips are over.

        With `early` False the last of them counts only where there is no deadline. Trips that end at this very
        nanosecond have ended before the round closes.
        """

    @abstractmethod
    def over(self) -> bool:
        """Whether the server waits for none of the trips any more."""

    @abstractmethod
    def reported(self) -> int:
        """Return how many updates have arrived by now."""

    @abstractmethod
    def settle(self, *, early: bool) -> Orders:
        """End all trips now and return their orders; `early` if the round closes by quorum."""


class TripUnderWay(ABC):
    """One trip of an asynchronous timing."""

    client: int
    base: int
    landed: simpy.Event
    """Triggers when the server no longer waits for the trip."""
    over: Time = NEVER
    """When that is; known once it has happened."""
    phase: Phase = Phase.FINISH

    @abstractmethod
    def settle(self, closed: Time, *, early: bool = False) -> Order:
        """Return the order of the trip as it stands at `closed`; `early` if the run ends before it is over."""

    @property
    @abstractmethod
    def at_once(self) -> bool:
        """Whether the trip ended at the instant at which it began."""


class ColumnTrips(Trips):
    """Trips whose ends are known from the start."""

    def __init__(self, world: VirtualTime, planner: CohortPlanner, cohort: Cohort, deadline: Time) -> None:
        self._world = world
        self._planner = planner
        self._cohort = cohort
        self._deadline = deadline

    def ends(self) -> list[Time]:
        """Return when the server no longer waits for each of the trips, those that it always waits for left out."""
        ends: list[Time] = self._cohort.ends[self._cohort.ends < NEVER].tolist()
        return ends

    @override
    def wait(self, quorum: int | None, *, early: bool) -> Waits:
        ends = self._cohort.ends
        closing = self._deadline
        if early or closing == NEVER:
            closing = min(closing, int(ends.max()))
        reports = np.sort(ends[_HEARD[self._cohort.outcome]])
        if quorum is not None and quorum <= len(reports):
            closing = min(closing, int(reports[quorum - 1]))
        yield self._world.at(closing, Phase.CLOSE)

    @override
    def over(self) -> bool:
        return bool((self._cohort.ends <= self._world.now).all())

    @override
    def reported(self) -> int:
        reports = self._cohort.ends[_HEARD[self._cohort.outcome]]
        return int(np.count_nonzero(reports <= self._world.now))

    @override
    def settle(self, *, early: bool) -> Orders:
        return self._planner.settle(self._cohort, self._world.now, early=early)


class ColumnFlight(TripUnderWay):
    """A trip whose end is known from the start: one event."""

    def __init__(self, world: VirtualTime, planner: CohortPlanner, trip: Trip, deadline: Time) -> None:
        self.client = trip.client
        self.base = trip.base
        self._planner = planner
        self._trip = trip
        self.over = min(trip.ends, deadline)
        ended = Phase.DEPART if trip.outcome is Outcome.DEPARTED else Phase.FINISH
        self.phase = ended if self.over == trip.ends else Phase.CLOSE
        self.landed = world.at(self.over, self.phase)

    @property
    @override
    def at_once(self) -> bool:
        return self.over == self._trip.started

    @override
    def settle(self, closed: Time, *, early: bool = False) -> Order:
        return self._planner.settle_one(self._trip, closed, early=early)

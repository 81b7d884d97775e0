"""The trips of a cohort, and single ones, some or all of which are processes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import simpy
from typing_extensions import override

from fedactors.clock.cohort import CohortPlanner
from fedactors.clock.events.event_time import close
from fedactors.clock.events.trip_process import TripProcess
from fedactors.clock.underway import ColumnTrips, Trips, TripUnderWay
from fedactors.clock.virtual_time import VirtualTime, Waits
from fedactors.plan import NEVER, Order, Orders, Outcome, Phase, Time


class EventTrips(Trips):
    """Trips of devices that are simulated event by event, beside those in columns, if there are any."""

    def __init__(
        self,
        world: VirtualTime,
        planner: CohortPlanner,
        processes: Sequence[TripProcess],
        columns: ColumnTrips | None,
        deadline: Time,
    ) -> None:
        self._world = world
        self._planner = planner
        self._processes = processes
        self._columns = columns
        self._deadline = deadline
        self._news = simpy.Event(world.env)
        for process in processes:
            process.over.callbacks.append(self._note)
        for end in columns.ends() if columns else ():
            world.at(end, Phase.FINISH).callbacks.append(self._note)

    @override
    def wait(self, quorum: int | None, *, early: bool) -> Waits:
        world = self._world
        timer = [world.at(self._deadline, Phase.CLOSE)] if self._deadline < NEVER else []
        while not self._closes(quorum, early=early or not timer):
            self._news = simpy.Event(world.env)
            yield simpy.AnyOf(world.env, [*timer, self._news])
            if timer and timer[0].processed:
                return
        yield world.at(world.now, Phase.CLOSE)

    def _closes(self, quorum: int | None, *, early: bool) -> bool:
        return (early and self.over()) or (quorum is not None and self.reported() >= quorum)

    @override
    def over(self) -> bool:
        return all(process.over.triggered for process in self._processes) and (
            self._columns is None or self._columns.over()
        )

    @override
    def reported(self) -> int:
        heard = sum(process.heard for process in self._processes)
        return heard + (self._columns.reported() if self._columns else 0)

    @override
    def settle(self, *, early: bool) -> Orders:
        orders = [process.settle(self._world.now, early=early) for process in self._processes]
        self._planner.note_downloads(orders)
        if self._columns:
            orders += self._columns.settle(early=early)
        return Orders.of(sorted(orders, key=lambda order: order.client))

    def _note(self, event: simpy.Event) -> None:
        close(self._news)


class EventFlight(TripUnderWay):
    """One trip of an asynchronous timing, as a process."""

    def __init__(self, world: VirtualTime, planner: CohortPlanner, process: TripProcess) -> None:
        request = process.request
        self.client = request.client
        self.base = request.base
        self._world = world
        self._planner = planner
        self._began = world.now
        self._process = process
        self.landed = simpy.Event(world.env)
        self._process.over.callbacks.append(partial(self._land, Phase.FINISH))
        if request.deadline < NEVER:
            world.at(request.deadline, Phase.CLOSE).callbacks.append(partial(self._land, Phase.CLOSE))

    def _land(self, phase: Phase, event: simpy.Event) -> None:
        if self.landed.triggered:
            return
        self.over = self._world.now
        self.phase = Phase.DEPART if self._process.outcome is Outcome.DEPARTED else phase
        self.landed.succeed()

    @property
    @override
    def at_once(self) -> bool:
        return self.over == self._began

    @override
    def settle(self, closed: Time, *, early: bool = False) -> Order:
        order = self._process.settle(closed, early=early)
        self._planner.note_downloads([order])
        return order

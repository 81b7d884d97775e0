"""Virtual time in which some devices, or all, are simulated event by event."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import simpy
from numpy.typing import NDArray
from typing_extensions import override

from fedactors.clock.availability import Int64
from fedactors.clock.behaviours.base import BehavingDevice
from fedactors.clock.behaviours.making import BehavingGroup
from fedactors.clock.device_columns import Population, constant_flows
from fedactors.clock.events.device import EventDevice
from fedactors.clock.events.event_limits import EventLimits
from fedactors.clock.events.event_time import EventTime
from fedactors.clock.events.event_trips import EventFlight, EventTrips
from fedactors.clock.events.foresight import Foresight
from fedactors.clock.events.trip_process import TripProcess
from fedactors.clock.events.trip_request import TripRequest
from fedactors.clock.selections.free_clients import FreeClients
from fedactors.clock.trip import TripPlanner
from fedactors.clock.underway import ColumnTrips, Trips, TripUnderWay
from fedactors.clock.virtual_time import Waits
from fedactors.clock.world import EVERYBODY, World
from fedactors.plan import Moves, Phase, Time
from fedactors.workload import Workload


class EventWorld(World, EventTime):
    """A world with processes for the devices that are `eventful`, `(devices,)`.

    Groups that behave come and go at times that nobody foresees; the server waits for what happens. Who else is on, and
    when another device next comes, is looked up in the recordings; windows are played as events during trips.
    """

    def __init__(
        self,
        population: Population,
        trip_planner: TripPlanner,
        workloads: list[Workload],
        seed: int,
        eventful: NDArray[np.bool_],
    ) -> None:
        self._behaving = np.zeros(len(population), bool)
        for group in population.behaving:
            self._behaving[group.first : group.first + group.count] = True
        super().__init__(population, trip_planner, workloads, seed, foreseen=~self._behaving)
        self.eventful = eventful | self._behaving
        self.flows = population.flows or constant_flows(population)
        self.foresight = Foresight(population, self.flows)
        self._change = simpy.Event(self.env)
        self._on = np.zeros(len(population), bool)
        self._here = np.zeros(len(population), bool)
        self._moved: tuple[list[int], list[int]] = ([], [])  # arrived and departed by behaviours since the last Plan
        self._sources = 0  # processes that drive devices which behave, and have not ended
        self._limits = EventLimits(int(self.eventful.sum()), int(self._behaving.sum()))
        self.devices: dict[int, EventDevice] = {}  # those that behave, and those that have had a trip
        for client in np.flatnonzero(self._behaving).tolist():
            device = self._device(client)
            device.begin_following(population.availability)
            self.note(client, on=device.on, here=device.here)
            device.watch()
        for group in population.behaving:
            self._behave(group)

    def _device(self, client: int) -> EventDevice:
        """Return a device that is simulated event by event."""
        if client not in self.devices:
            behaves = bool(self._behaving[client])
            self.devices[client] = EventDevice(self, client, self._known_stay(client), behaves=behaves)
        return self.devices[client]

    def _behave(self, group: BehavingGroup) -> None:
        """Let the devices of a group behave."""
        behaviour = group.make()
        behaviour.begin(self.env, group.count)
        for number in range(group.count):
            device = self.devices[group.first + number]
            handle = BehavingDevice(device, number, self.seed)
            device.line = partial(behaviour.line, handle)
            device.follow(behaviour.play(handle))

    @override
    def step(self) -> None:
        self._limits.count(self.now)
        super().step()

    @property
    @override
    def unforeseen(self) -> bool:
        return self._sources > 0

    @override
    def until(self, time: Time, phase: Phase, *others: simpy.Event) -> Waits:
        change = [self._change] if self._behaving.any() else []
        yield from super().until(time, phase, *others, *change)

    @override
    def note(self, client: int, *, on: bool, here: bool) -> None:
        if not self._behaving[client]:
            return  # it is looked up
        on = on and bool(self.cohort_planner.has_work[client])
        if self._on[client] == on and self._here[client] == here:
            return
        self._on[client] = on
        self._here[client] = here
        self._wake()

    def _wake(self) -> None:
        event, self._change = self._change, simpy.Event(self.env)
        event.succeed()

    @override
    def spans(self, client: int, time: Time) -> Iterator[tuple[Time, Time]]:
        if not self._behaving[client]:
            return super().spans(client, time)
        return self.devices[client].seen.spans(time)

    @override
    def note_move(self, client: int, *, arrives: bool) -> None:
        self._moved[0 if arrives else 1].append(client)

    @override
    def note_switch(self) -> None:
        self._limits.switch(self.now)

    @override
    def has_departed(self, client: int) -> bool:
        return self._stay(client)[1] <= self.now

    @override
    def movements(self, until: Time) -> tuple[tuple[int, ...], tuple[int, ...]]:
        self._limits.start_over(self.now)  # a Plan is made
        arrived, departed = super().movements(until)
        more, gone = self._moved
        self._moved = ([], [])
        return tuple(sorted([*arrived, *more])), tuple(sorted([*departed, *gone]))

    @override
    def moves(self, arrived: Sequence[int], departed: Sequence[int]) -> Moves | None:
        if not self._behaving.any():
            return None
        instants = [self._stay(client)[0] for client in arrived] + [self._stay(client)[1] for client in departed]
        return Moves(tuple(instants), int(((self._here | self._members()) & self.cohort_planner.has_work).sum()))

    def _stay(self, client: int) -> tuple[Time, Time]:
        """Return when a client arrived, and when it departed, as far as that is known."""
        device = self.devices.get(client)
        if device is not None:
            return device.arrive, device.depart
        return self._known_stay(client)

    def _known_stay(self, client: int) -> tuple[Time, Time]:
        """Return when a client arrives and departs by the scenario and its recording."""
        return int(self.population.arrive[client]), int(self.population.depart[client])

    @override
    def arrivals(self, clients: Int64) -> Int64:
        return np.array([self._stay(client)[0] for client in clients.tolist()], np.int64)

    @override
    def on_between(self, clients: Int64, begin: Int64, end: Int64) -> Int64:
        found = super().on_between(clients, begin, end)
        for k in np.flatnonzero(self._behaving[clients]).tolist():
            seen = self.devices[int(clients[k])].seen
            found[k] = seen.elapsed(int(end[k])) - seen.elapsed(int(begin[k]))
        return found

    @override
    def note_source(self, *, ends: bool) -> None:
        self._sources += -1 if ends else 1
        if ends and not self._sources:  # nobody comes any more whom the server could wait for
            self._wake()

    def request(self, client: int, version: int, deadline: Time, *, single: bool = False) -> TripRequest:
        """Return what a client is asked to do from now on; `single` in an asynchronous timing."""
        planner, work = self.cohort_planner.trip_planner, self.cohort_planner.work_of(client)
        planner.ask(np.array([client]), version)
        linked = planner.set_pace(client, version, self.now, deadline, work)
        flows = self.population.flows
        return TripRequest(
            client,
            version,
            deadline,
            work,
            planner.per_sample(client),
            int(self.population.latency[client]),
            planner.download(client),
            planner.upload(client),
            by_integral=flows is not None and (single or bool(flows.varying[client])),
            linked=linked,
        )

    @override
    def begin(self, clients: Int64, version: int, deadline: Time) -> Trips:
        processes = [self._process(client, version, deadline) for client in clients[self.eventful[clients]].tolist()]
        rest = clients[~self.eventful[clients]]
        columns = None
        if len(rest):
            cohort = self.cohort_planner.plan(rest, version, self.now, deadline)
            columns = ColumnTrips(self, self.cohort_planner, cohort, deadline)
        return EventTrips(self, self.cohort_planner, processes, columns, deadline)

    @override
    def begin_one(self, client: int, version: int, deadline: Time) -> TripUnderWay:
        if not self.eventful[client]:
            return super().begin_one(client, version, deadline)
        return EventFlight(self, self.cohort_planner, self._process(client, version, deadline, single=True))

    def _process(self, client: int, version: int, deadline: Time, *, single: bool = False) -> TripProcess:
        request = self.request(client, version, deadline, single=single)
        device = self._device(client)
        if not device.behaves:
            device.begin_following(self.population.availability)
        return TripProcess(self, device, request, self.foresight)

    @override
    def ready(self, among: str, clients: Int64 | slice = EVERYBODY) -> NDArray[np.bool_]:
        noted = self._here & self.cohort_planner.has_work if among == "members" else self._on
        return noted[clients] | (super().ready(among, clients) & ~self._behaving[clients])

    @override
    def free_clients(self, among: str) -> FreeClients | None:
        return None  # it follows recordings alone, and devices that behave have none

    def _members(self) -> NDArray[np.bool_]:
        """Return which of the devices that do not behave belong to the population now."""
        people = self.population
        return ~self._behaving & (people.arrive <= self.now) & (self.now < people.depart)

    @override
    def next_of(self, clients: Int64, among: str) -> Time:
        ready = self._here if among == "members" else self._on
        moving = clients[self._behaving[clients]]
        if (ready & self.cohort_planner.has_work)[moving].any():
            return self.now
        return super().next_of(clients[~self._behaving[clients]], among)

"""The population in virtual time, and the questions that timing policies have about it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fedactors.clock import ontime
from fedactors.clock.availability import ALWAYS, Availability, Int64, join
from fedactors.clock.cohort import CohortPlanner
from fedactors.clock.device_columns import Population
from fedactors.clock.energy.meter import Meter
from fedactors.clock.presence import Presence, Stay
from fedactors.clock.secure_groups import SecureGroups
from fedactors.clock.selections.base import Selector, UniformSelector, choice_of
from fedactors.clock.selections.free_clients import FreeClients
from fedactors.clock.trip import TripPlanner
from fedactors.clock.underway import ColumnFlight, ColumnTrips, Trips, TripUnderWay
from fedactors.clock.virtual_time import VirtualTime
from fedactors.plan import NEVER, Ends, MaybeEnding, Moves, Plan, Time
from fedactors.streams import Purpose, stream
from fedactors.workload import Workload

EVERYBODY = slice(None)
LAST: Time = NEVER - 1  # when virtual time ends


class World(VirtualTime):
    """Virtual time, the population in it, and the Plans made so far but not yet taken.

    Devices that are `foreseen`, `(devices,)`, come and go as their recordings say; by default all of them do.
    """

    def __init__(
        self,
        population: Population,
        trip_planner: TripPlanner,
        workloads: list[Workload],
        seed: int,
        foreseen: NDArray[np.bool_] | None = None,
    ) -> None:
        super().__init__()
        self.population, self.seed = population, seed
        self.cohort_planner = CohortPlanner(population, trip_planner, workloads)
        has_work = self.cohort_planner.has_work
        counted = has_work if foreseen is None else has_work & foreseen
        self.presence = Presence(population.availability, counted, Stay(population.arrive, population.depart))
        self.selector: Selector = UniformSelector()  # the edges of a hierarchy have their own
        self.plans: deque[Plan] = deque()
        self.meter: Meter | None = None  # counts what Plans consume, where that is wanted
        self.secure: SecureGroups | None = None  # of secure aggregation
        self._arrivals, self._departures = _Moves(population.arrive), _Moves(population.depart)

    @property
    def unforeseen(self) -> bool:
        """Whether devices may still come and go at times that are not known beforehand."""
        return False

    def add(self, plan: Plan) -> None:
        """Put a Plan into the queue."""
        self.plans.append(plan if self.meter is None else self.meter.read(plan))

    def limit(self, until: Time | None) -> MaybeEnding:
        """Return why no further round may begin: the budget is spent, or it is `until`; nothing if one may."""
        if self.meter is not None and self.meter.exhausted:
            return self.meter.exhausted
        if until is not None and self.now >= until:
            return Ends.TIME
        return Ends.HORIZON if self.now >= LAST else ""

    def deadline_after(self, time: Time | None) -> Time:
        """Return the deadline of what may take so long from now on, at the latest the end of time; NEVER for None."""
        return NEVER if time is None else min(self.now + time, LAST)

    def spans(self, client: int, time: Time) -> Iterator[tuple[Time, Time]]:
        """Yield when a device is on from `time` on, as (on, off) in order; of one that behaves, as seen until now."""
        return self.population.availability.spans(client, time)

    def begin(self, clients: Int64, version: int, deadline: Time) -> Trips:
        """Let `clients`, ascending, begin trips now, from model `version`, which may take until `deadline`."""
        cohort = self.cohort_planner.plan(clients, version, self.now, deadline)
        return ColumnTrips(self, self.cohort_planner, cohort, deadline)

    def begin_one(self, client: int, version: int, deadline: Time) -> TripUnderWay:
        """Let one client begin a trip, as `begin` does for many."""
        trip = self.cohort_planner.plan_one(client, version, self.now, deadline)
        return ColumnFlight(self, self.cohort_planner, trip, deadline)

    def candidates(self, among: str) -> Int64:
        """Return the clients with work that can be asked now, ascending: those `available`, or all `members`."""
        return np.flatnonzero(self.ready(among))

    def ready(self, among: str, clients: Int64 | slice = EVERYBODY) -> NDArray[np.bool_]:
        """Return which of `clients` have work and can be asked now, `(clients,)`, not to be changed."""
        presence = self._presence_of(among)
        presence.advance(self.now)
        return presence.on[clients]

    def _presence_of(self, among: str) -> Presence:
        """Return who can be asked in the course of time: those `available`, or all `members`."""
        return self.presence if among == "available" else self._membership

    @cached_property
    def _membership(self) -> Presence:
        """The clients with work that belong to the population, on or off."""
        people = self.population
        nothing = np.zeros(len(people), np.int64)
        always = Availability(join([]), nothing + ALWAYS, nothing, nothing)
        return Presence(always, self.cohort_planner.has_work, Stay(people.arrive, people.depart))

    def free_clients(self, among: str) -> FreeClients | None:
        """Return the clients that can be asked, to be drawn by `draw_free`.

        None where a selection other than the uniform one looks at every candidate.
        """
        by_place = type(self.selector).choose is UniformSelector.choose
        return FreeClients(self._presence_of(among)) if by_place else None

    def draw_free(self, version: int, free: FreeClients, count: int, turn: int) -> Int64:
        """Return what `draw` returns for the candidates that are `free`."""
        free.advance(self.now)
        candidates = len(free)
        if count >= candidates:
            return free.all()
        random = stream(self.seed, Purpose.COHORT, turn, version)
        return np.sort(free.at(UniformSelector.places(candidates, count, random)))

    def draw(
        self, version: int, candidates: Int64, count: int | None, turn: int = 0, selector: Selector | None = None
    ) -> Int64:
        """Return which of `candidates` the server asks, ascending: `count` of them, or all.

        `turn` numbers the drawings for one version; an edge has a `selector` of its own.
        """
        if count is None or not len(candidates):
            return candidates
        random = stream(self.seed, Purpose.COHORT, turn, version)
        return choice_of(selector or self.selector, candidates, count, version, random)

    def next_candidate(self, among: str) -> Time:
        """Return when a client can be asked again, at a moment at which none can; NEVER if none ever can."""
        presence = self._presence_of(among)
        presence.advance(self.now)
        return presence.next_on()

    def next_of(self, clients: Int64, among: str) -> Time:
        """Return when one of `clients` can be asked next, now included; NEVER if none of them ever can."""
        depart = self.population.depart[clients]
        when = np.maximum(self.population.arrive[clients], self.now)
        if among == "available":
            a = self.population.availability
            when = ontime.reach(a, clients, ontime.elapsed(a, clients, when) + 1) - 1
        when = np.where(self.cohort_planner.has_work[clients] & (when < np.minimum(depart, NEVER - 1)), when, NEVER)
        return min(int(when.min()), NEVER) if len(when) else NEVER

    def arrivals(self, clients: Int64) -> Int64:
        """Return when each client joined the population, ns."""
        return self.population.arrive[clients]

    def on_between(self, clients: Int64, begin: Int64, end: Int64) -> Int64:
        """Return the ns that each client was on in its [begin, end), none of which may end after now."""
        a = self.population.availability
        return ontime.elapsed(a, clients, end) - ontime.elapsed(a, clients, begin)

    def next_change(self) -> Time:
        """Return when a device next comes, goes or arrives, after now; NEVER if none does."""
        self.presence.advance(self.now)
        later = self.population.arrive[self.population.arrive > self.now]
        return min(self.presence.next_edge(), int(later.min()) if len(later) else NEVER)

    def has_departed(self, client: int) -> bool:
        """Whether a client has left the population for good."""
        return bool(self.population.depart[client] <= self.now)

    def movements(self, until: Time) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return who arrived and who departed since the last call, up to and including `until`."""
        return self._arrivals.until(until), self._departures.until(until)

    def moves(self, arrived: Sequence[int], departed: Sequence[int]) -> Moves | None:
        """Return when those moved, where the population does not say so beforehand."""
        return None


class _Moves:
    """Instants at which devices arrive or depart, in order, with a cursor; 0 and NEVER are no movements."""

    def __init__(self, column: Int64) -> None:
        moving = np.flatnonzero((column > 0) & (column < NEVER))
        self._devices = moving[np.argsort(column[moving], kind="stable")]
        self._times, self._cursor = column[self._devices], 0

    def until(self, time: Time) -> tuple[int, ...]:
        """Return who moved since the last call, up to and including `time`, ascending."""
        begin, self._cursor = self._cursor, int(np.searchsorted(self._times, time, side="right"))
        return tuple(np.sort(self._devices[begin : self._cursor]).tolist())

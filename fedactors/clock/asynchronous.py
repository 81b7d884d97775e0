"""Aggregations whose updates may start from older versions: FedAsync, FedBuff, semi-synchronous rounds.

    opened      the server begins to collect: clients are asked as others come back, up to `concurrency`
    closed      enough updates are there, or the period is over: they are aggregated
    ready       the server's own work is done: the next version exists, and those free are asked with it

Each trip has a deadline of its own. While it aggregates the server neither asks nor listens; what arrives then counts
in the next aggregation. Trips that fail are in the Plan of the aggregation they ended before; those still in flight
when the run ends are cancelled, in its last Plan. So every client asked is in one Plan, once for each trip.

It always ends, and says why: every trip is over at a known time; a server that can wait for nobody else aggregates
what it has, or stops; and after `_PATIENCE` trips per place that came to nothing it gives up.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
import simpy
from numpy.typing import NDArray

from fedactors.clock.trip import Trip
from fedactors.clock.world import World
from fedactors.plan import NEVER, Order, Outcome, Phase, Plan, Time

_PATIENCE = 100  # trips in a row, for each client that can work at the same time

Waits = Generator[simpy.Event, object, None]


@dataclass(frozen=True)
class Rules:
    """What an asynchronous server does; times in ns, None for no limit."""

    rounds: int  # aggregations
    concurrency: int
    updates: int | None  # that an aggregation waits for
    every: Time | None  # between aggregations; exactly one of the two is given
    deadline: Time | None  # of a trip
    until: Time | None
    among: str  # "available" or "members"
    max_staleness: int | None
    waits: bool  # at the bound; else what is beyond it is dropped
    before: Time  # server work before it asks with a new version
    during: Time  # server work beside the clients
    after: Time  # server work after the aggregation
    first: Time = 0  # server work before anything else


class _Flight(NamedTuple):
    """A trip under way, in the order in which they end."""

    over: Time  # when the server no longer waits for it
    phase: Phase
    client: int
    trip: Trip


def asynchronous(world: World, rules: Rules) -> Generator[simpy.Event, object, str]:
    """Aggregate until the last time, the end of time or the end of the population; return why it ended."""
    return (yield from _Server(world, rules).serve())


class _Server:
    """An asynchronous server at work."""

    def __init__(self, world: World, rules: Rules) -> None:
        self.world, self.rules = world, rules
        self.version, self.opened, self.turn = 0, 0, 0
        self.flights: list[_Flight] = []  # a heap
        self.failed: list[Order] = []  # since the last aggregation
        self.inbox: list[Order] = []  # updates not yet aggregated, as they arrived
        self.busy: NDArray[np.bool_] = np.zeros(len(world.population), bool)  # in flight or in the inbox
        self.barren = 0  # trips in a row that came to nothing
        self.hopeless = (-1, set[int]())  # clients whose trip ended at the instant it began, and that instant

    def serve(self) -> Generator[simpy.Event, object, str]:
        rules = self.rules
        yield from self._work(rules.first + rules.before)
        while True:
            self.opened, self.turn = self.world.now, 0
            ended = yield from self._collect()
            if ended:
                if self._begun:
                    self._conclude(last=True)
                return ended
            self._conclude(last=self.version + 1 == rules.rounds)
            if self.version == rules.rounds:
                return "all rounds done"
            yield from self._work(rules.after + rules.before)

    def _work(self, time: Time) -> Waits:
        if time:
            yield self.world.at(self.world.now + time, Phase.DISPATCH)

    def _collect(self) -> Generator[simpy.Event, object, str]:
        """Ask and listen until there is something to aggregate; return why there never will be, or nothing."""
        world, rules = self.world, self.rules
        self._land()
        while not self._due():
            yield world.at(world.now, Phase.DISPATCH)
            if rules.until is not None and world.now >= rules.until:
                return "virtual time limit"
            if self.barren > _PATIENCE * rules.concurrency:
                return f"{self.barren:,} trips in a row came to nothing"
            self._ask()
            when = self._next()
            if when == NEVER:
                if self.inbox:
                    return ""  # nobody else will ever contribute
                return "nobody who can be asked can ever report" if self.hopeless[1] else "nobody can be asked any more"
            if rules.every is not None and not self._begun:
                self.opened = max(self.opened, when)  # a period begins when there is somebody to ask
            yield world.at(when if rules.until is None else min(when, rules.until), Phase.CLOSE)
            self._land()
        return ""

    def _ask(self) -> None:
        """Send the newest model to as many clients as there is room for; between periods, only when they begin."""
        world, rules, now = self.world, self.rules, self.world.now
        room = rules.concurrency - len(self.flights)
        if not room or (rules.every is not None and self.turn):
            return
        if self.hopeless[0] != now:
            self.hopeless = (now, set())
        candidates = world.candidates(rules.among)
        candidates = candidates[~self.busy[candidates]]
        if self.hopeless[1]:
            candidates = candidates[~np.isin(candidates, list(self.hopeless[1]))]
        chosen = world.draw(self.version, candidates, room, self.turn)
        deadline = NEVER if rules.deadline is None else min(now + rules.deadline, NEVER)
        for client in chosen.tolist():
            trip = world.cohorts.depart(client, self.version, now, deadline)
            over = min(trip.ends, deadline)
            phase = Phase.DEPART if trip.outcome is Outcome.DEPARTED else Phase.FINISH
            heappush(self.flights, _Flight(over, phase if over == trip.ends else Phase.CLOSE, client, trip))
            self.busy[client] = True
        self.turn += bool(len(chosen))

    def _next(self) -> Time:
        """Return when something happens next that the server acts upon; NEVER if nothing does."""
        rules, now = self.rules, self.world.now
        times = [self.flights[0].over] if self.flights else []
        end = self.opened + max(rules.every or 0, rules.during)
        if end > now and self._begun and self._enough():
            times.append(end)
        if len(self.flights) < rules.concurrency and not (rules.every is not None and self._begun):
            times.append(self._next_candidate())
        return min(times, default=NEVER)

    def _next_candidate(self) -> Time:
        """Return when somebody who is free can be asked; any time at which it may be so will do while others work."""
        world, rules = self.world, self.rules
        if self.flights:
            return world.next_candidate(rules.among)
        free = ~self.busy
        free[list(self.hopeless[1])] = False
        soon = world.next_of(np.flatnonzero(free), rules.among)
        return min(soon, world.next_change()) if self.hopeless[1] else soon

    def _land(self) -> None:
        """Take in every trip that is over by now, and let go of updates that are too old."""
        while self.flights and self.flights[0].over <= self.world.now:
            flight = heappop(self.flights)
            order = self.world.cohorts.arrive(flight.trip, flight.over)
            if order.heard:
                self.inbox.append(order)
                self.barren = 0
                continue
            self.busy[order.client] = False
            self.failed.append(order)
            self.barren += 1
            if flight.over == flight.trip.started == self.hopeless[0]:
                self.hopeless[1].add(order.client)
        if not self.rules.waits:
            self._drop([order for order in self.inbox if not self._fresh(order)], Outcome.STALE)

    def _drop(self, orders: list[Order], outcome: Outcome) -> None:
        for order in orders:
            self.inbox.remove(order)
            self.busy[order.client] = False
            self.failed.append(order._replace(outcome=outcome))

    @property
    def _begun(self) -> bool:
        """Whether anybody was asked since the last aggregation, or is still at work."""
        return bool(self.flights or self.inbox or self.failed)

    def _fresh(self, order: Order) -> bool:
        bound = self.rules.max_staleness
        return bound is None or self.version - order.base <= bound

    def _enough(self) -> bool:
        """Whether there are updates enough, and nobody at work who has to be waited for."""
        rules, bound = self.rules, self.rules.max_staleness
        if rules.waits and bound is not None:
            oldest = min((flight.trip.base for flight in self.flights), default=self.version)
            if self.version + 1 - oldest > bound:
                return False
        return rules.updates is None or len(self.inbox) >= rules.updates

    def _due(self) -> bool:
        """Whether it is time to aggregate."""
        rules = self.rules
        open_for = self.world.now - self.opened
        if rules.every is not None and (open_for < rules.every or not self._begun):
            return False
        return open_for >= rules.during and self._enough()

    def _taken(self) -> list[Order]:
        """Return the updates to be aggregated: the first so many, and those that would be too old next time."""
        rules = self.rules
        if rules.updates is None:
            return self.inbox
        first, rest = self.inbox[: rules.updates], self.inbox[rules.updates :]
        bound = rules.max_staleness
        return first + [o for o in rest if rules.waits and bound is not None and self.version + 1 - o.base > bound]

    def _conclude(self, *, last: bool) -> None:
        """Put the Plan of an aggregation on the tray; the `last` one has everybody in it who is left."""
        world, now = self.world, self.world.now
        taken = self._taken()
        counted = set(map(id, taken))
        left = [order for order in self.inbox if id(order) not in counted]
        gone = [order for order in left if world.population.depart[order.client] <= now]
        self._drop(gone, Outcome.DEPARTED)  # the population forgets them, and what they keep, with this aggregation
        left = [order for order in left if order not in gone]
        lost, self.failed, self.inbox = self.failed, [], left
        if last:
            lost = lost + [order._replace(outcome=Outcome.CANCELLED) for order in left]
            lost += [world.cohorts.arrive(flight.trip, now, early=True) for flight in self.flights]
        for order in taken:
            self.busy[order.client] = False
        bases = [order.base for order in left] + [flight.trip.base for flight in self.flights]
        self.version += 1
        arrived, departed = world.movements(now)
        orders = sorted([*taken, *lost], key=lambda order: (order.client, order.started))
        plan = Plan(
            self.version - 1,
            self.opened,
            now,
            now + self.rules.after,
            tuple(orders),
            min([*bases, self.version]),
            arrived,
            departed,
        )
        world.plans.append(plan)

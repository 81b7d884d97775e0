"""Aggregations whose updates may start from older versions: FedAsync, FedBuff, semi-synchronous rounds.

    opened      the server begins to collect: clients are asked as others come back, up to `concurrency`
    closed      enough updates are there, or the period is over: they are aggregated
    ready       the server's own work is done: the next version exists, and those free are asked with it

Each trip has a deadline of its own. While it aggregates the server neither asks clients nor takes updates; what arrives
then counts in the next aggregation. Trips that fail are in the Plan of the aggregation they ended before; those still
in flight when the run ends are cancelled, in its last Plan. So every client asked is in one Plan, once for each trip.

It always ends, and returns the reason: every trip is over at a known time; a server that has no other client to wait
for aggregates what it has, or stops; and it stops after `_MOST_FAILED` failed trips in a row for each place.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import partial

import numpy as np
import simpy

from fedactors.clock.selections.askable import Askable
from fedactors.clock.underway import TripUnderWay
from fedactors.clock.virtual_time import Waits
from fedactors.clock.world import LAST, World
from fedactors.plan import NEVER, Ending, Ends, MaybeEnding, Order, Orders, Outcome, Phase, Plan, Time

_MOST_FAILED = 100  # failed trips in a row, for each client that can work at the same time


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


def asynchronous(world: World, rules: Rules) -> Generator[simpy.Event, object, MaybeEnding]:
    """Aggregate until the last time, the end of time or the end of the population; return why it ended."""
    return (yield from _Server(world, rules).serve())


class _Server:
    """An asynchronous server at work."""

    def __init__(self, world: World, rules: Rules) -> None:
        self.world = world
        self.rules = rules
        self.version = 0
        self.opened: Time = 0
        self.turn = 0
        self.flights: dict[int, TripUnderWay] = {}  # trips under way, by client
        self.landed: list[TripUnderWay] = []  # trips that are over, but not yet looked at
        self._landing = simpy.Event(world.env)  # triggers with the next one
        self.failed: list[Order] = []  # since the last aggregation
        self.inbox: list[Order] = []  # updates not yet aggregated, as they arrived
        self.askable = Askable(world, rules.among)  # busy: in flight or in the inbox
        self.failed_streak = 0  # trips in a row that failed
        self.unreachable_at: Time = -1  # when those that are known to be unreachable were asked, and their trips failed

    def serve(self) -> Generator[simpy.Event, object, MaybeEnding]:
        rules = self.rules
        yield from self._work(rules.first + rules.before)
        while True:
            self.opened = self.world.now
            self.turn = 0
            ended = yield from self._collect()
            if ended:
                if self._begun:
                    self._conclude(last=True)
                return ended
            self._conclude(last=self.version + 1 == rules.rounds)
            if self.version == rules.rounds:
                return Ends.DONE
            yield from self._work(rules.after + rules.before)

    def _work(self, time: Time) -> Waits:
        if time:
            yield self.world.at(self.world.now + time, Phase.DISPATCH)

    def _collect(self) -> Generator[simpy.Event, object, MaybeEnding]:
        """Ask clients and collect updates until it is time to aggregate; return why that never comes, or nothing."""
        world, rules = self.world, self.rules
        self._land()
        while not self._due():
            yield world.at(world.now, Phase.DISPATCH)
            if ended := self._limit():
                return ended
            self._ask()
            when = self._next()
            if when == NEVER and not self.flights and not world.unforeseen:
                return self._nobody_left()
            idle = not self._begun
            others = [self._landing] if self.flights else []
            yield from world.until(when if rules.until is None else min(when, rules.until), Phase.CLOSE, *others)
            if rules.every is not None and idle:
                self.opened = max(self.opened, world.now)  # a period begins when there is a client to ask
            self._land()
        return ""

    def _limit(self) -> MaybeEnding:
        """Return the limit that the run has reached, or nothing."""
        if ended := self.world.limit(self.rules.until):
            return ended
        if self.failed_streak > _MOST_FAILED * self.rules.concurrency:
            return Ending(f"{self.failed_streak:,} trips in a row came to nothing", "nobody")
        return ""

    def _nobody_left(self) -> MaybeEnding:
        """Return why no further update will come; nothing if there are some that have not been aggregated."""
        if self.inbox:
            return ""
        return Ends.NOBODY_REPORTS if self.askable.unreachable else Ends.NOBODY_LEFT

    def _ask(self) -> None:
        """Send the newest model to as many clients as there is room for; of a period, only when it begins."""
        world, rules = self.world, self.rules
        now = world.now
        room = rules.concurrency - len(self.flights)
        if not room or (rules.every is not None and self._in_period):
            return
        if self.unreachable_at != now:
            self.unreachable_at = now
            self.askable.forget_unreachable()
        chosen = self.askable.draw(self.version, room, self.turn)
        deadline = world.deadline_after(rules.deadline)
        for client in chosen.tolist():
            flight = world.begin_one(client, self.version, deadline)
            self.flights[client] = flight
            self.askable.hold(client)
            flight.landed.callbacks.append(partial(self._note_landing, flight))
        self.turn += bool(len(chosen))

    def _note_landing(self, flight: TripUnderWay, event: simpy.Event) -> None:
        self.landed.append(flight)
        if not self._landing.triggered:
            self._landing.succeed()

    def _next(self) -> Time:
        """Return when something besides a landing happens next that the server acts upon; NEVER if nothing does."""
        rules, now = self.rules, self.world.now
        times = []
        end = min(self.opened + max(rules.every or 0, rules.during), LAST)
        if end > now and self._begun and self._enough():
            times.append(end)
        if len(self.flights) < rules.concurrency and not (rules.every is not None and self._begun):
            times.append(self._next_candidate())
        return min(times, default=NEVER)

    def _next_candidate(self) -> Time:
        """Return when a free client can be asked; while others work, a time at which that is possible."""
        world, among = self.world, self.rules.among
        busy, unreachable = self.askable.busy, self.askable.unreachable
        if self.flights:
            most_are_busy = len(busy) < 2 * (len(self.flights) + len(self.inbox))
            soon = world.next_of(np.flatnonzero(~busy), among) if most_are_busy else world.now
            return soon if soon > world.now else world.next_candidate(among)  # which may be a busy one
        free = ~busy
        free[sorted(unreachable)] = False
        soon = world.next_of(np.flatnonzero(free), among)
        return min(soon, world.next_change()) if unreachable else soon

    def _land(self) -> None:
        """Add every trip that is over by now to the inbox or to the failed ones, and drop updates that are too old."""
        for flight in sorted(self.landed, key=lambda flight: (flight.over, flight.phase, flight.client)):
            del self.flights[flight.client]
            order = flight.settle(flight.over)
            if order.heard:
                self.inbox.append(order)
                self.failed_streak = 0
                continue
            self.askable.release(order.client)
            self.failed.append(order)
            self.failed_streak += 1
            if flight.at_once and flight.over == self.unreachable_at:
                self.askable.note_unreachable(order.client)
        self.landed = []
        self._landing = simpy.Event(self.world.env)
        if not self.rules.waits:
            self._drop([order for order in self.inbox if not self._fresh(order)], Outcome.STALE)

    def _drop(self, orders: list[Order], outcome: Outcome) -> None:
        for order in orders:
            self.inbox.remove(order)
            self.askable.release(order.client)
            self.failed.append(order._replace(outcome=outcome))

    @property
    def _begun(self) -> bool:
        """Whether anybody was asked since the last aggregation, or is still at work."""
        return bool(self.flights or self.inbox or self.failed)

    @property
    def _in_period(self) -> bool:
        """Whether a period has begun for which clients were asked, or could have been."""
        return self.turn > 0 or (self._begun and self.world.now > self.opened)

    def _fresh(self, order: Order) -> bool:
        bound = self.rules.max_staleness
        return bound is None or self.version - order.base <= bound

    def _enough(self) -> bool:
        """Whether there are updates enough, and no client at work whose update the server has to wait for."""
        rules, bound = self.rules, self.rules.max_staleness
        if rules.waits and bound is not None:
            oldest = min((flight.base for flight in self.flights.values()), default=self.version)
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
        """Put the Plan of an aggregation into the queue; the `last` one has every order that is left."""
        world = self.world
        now = world.now
        taken = self._taken()
        self.inbox = self._waiting(taken)
        lost = self.failed + (self._cancelled() if last else [])
        self.failed = []
        for order in taken:
            self.askable.release(order.client)
        bases = [order.base for order in self.inbox] + [flight.base for flight in self.flights.values()]
        self.version += 1
        arrived, departed = world.movements(now)
        orders = sorted([*taken, *lost], key=lambda order: (order.client, order.started))
        plan = Plan(
            version=self.version - 1,
            opened=self.opened,
            closed=now,
            ready=now + self.rules.after,
            orders=Orders.of(orders),
            oldest=min([*bases, self.version]),
            arrived=arrived,
            departed=departed,
            moves=world.moves(arrived, departed),
        )
        world.add(plan)

    def _waiting(self, taken: list[Order]) -> list[Order]:
        """Return the updates of the inbox that are not `taken`, without those of clients that have departed.

        With this aggregation a departed client, and what it keeps, leaves the population.
        """
        counted = set(map(id, taken))
        left = [order for order in self.inbox if id(order) not in counted]
        gone = [order for order in left if self.world.has_departed(order.client)]
        self._drop(gone, Outcome.DEPARTED)
        return [order for order in left if order not in gone]

    def _cancelled(self) -> list[Order]:
        """Return the orders that the end of the run cancels: updates not aggregated, and trips under way."""
        waiting = [order._replace(outcome=Outcome.CANCELLED) for order in self.inbox]
        now = self.world.now
        return waiting + [flight.settle(now, early=True) for flight in self.flights.values()]

"""Synchronous rounds: ask a cohort, wait for it until every client, a quorum or the deadline, aggregate, repeat.

    opened      the cohort is drawn and asked
    closed      every client has reported (unless rounds last until the deadline), or the quorum has, or at the deadline
    ready       the server's own work is done: the next version exists

The policy is a SimPy process: it yields events, and puts one Plan per round into the world's queue.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
import simpy

from fedactors.clock.availability import Int64
from fedactors.clock.world import World
from fedactors.errors import ConservationError
from fedactors.plan import NEVER, Ending, Ends, MaybeEnding, Orders, Phase, Plan, Time

Events = Generator[simpy.Event, object, MaybeEnding]


@dataclass(frozen=True)
class Rounds:
    """What a synchronous server does; times in ns, None for no limit."""

    rounds: int
    ask: int | None  # clients asked; None: every candidate
    among: str  # "available" or "members"
    quorum: int | None  # updates that close a round; None: every client asked
    deadline: Time | None
    until: Time | None
    before: Time  # server work before the broadcast
    during: Time  # server work beside the clients
    after: Time  # server work after the aggregation
    first: Time = 0  # server work before the first round
    early: bool = True  # close before the deadline when every client asked has reported


def synchronous(world: World, rules: Rounds) -> Events:
    """Run rounds until the last one, the end of time or the end of the population; return why it ended."""
    yield world.at(rules.first, Phase.DISPATCH)  # at time 0 too: a behaviour may begin with being off
    for version in range(rules.rounds):
        if rules.before:
            yield world.at(world.now + rules.before, Phase.DISPATCH)
        cohort = yield from _drawn(world, rules, version)
        if isinstance(cohort, Ending):
            return cohort
        plan = yield from _Round(world, rules, version, cohort).play()
        if plan.closed == plan.opened and not plan.orders.is_heard.any():
            # no client of the cohort can ever report: without a wait it would be asked again at this instant, for ever
            change = world.next_change()
            if change == NEVER and not world.unforeseen:
                return Ends.NOBODY_REPORTS
            yield from world.until(change, Phase.DISPATCH)
        yield world.at(max(plan.ready, world.now), Phase.DISPATCH)
    return Ends.DONE


def _drawn(world: World, rules: Rounds, version: int) -> Generator[simpy.Event, object, Int64 | Ending]:
    """Wait until there are candidates and return the cohort; if there will be none, return why."""
    while not (ended := world.limit(rules.until)):
        cohort = world.draw(version, world.candidates(rules.among), rules.ask)
        if len(cohort):
            return cohort
        back = world.next_candidate(rules.among)
        if back == NEVER and not world.unforeseen:
            return Ends.NOBODY_LEFT
        yield from world.until(back if rules.until is None else min(back, rules.until), Phase.DISPATCH)
    return ended


class _Round:
    """One round: its trips, when they end, and so when the round closes."""

    def __init__(self, world: World, rules: Rounds, version: int, clients: Int64) -> None:
        self.world = world
        self.rules = rules
        self.version = version
        self.opened = world.now
        self.deadline = world.deadline_after(rules.deadline)
        self.clients = clients
        self.trips = world.begin(clients, version, self.deadline)

    def play(self) -> Generator[simpy.Event, object, Plan]:
        """Let the trips run, close the round, and put its Plan into the queue."""
        yield from self.trips.wait(self.rules.quorum, early=self.rules.early)
        return self._conclude()

    def _conclude(self) -> Plan:
        world, rules = self.world, self.rules
        now = world.now
        reported = self.trips.reported()
        orders = self.trips.settle(early=now < self.deadline and not self.trips.over())
        self._check(orders, reported)
        if world.secure is not None:
            orders = world.secure.recovered(orders, self.version)
        closed = max(now, self.opened + rules.during)
        arrived, departed = world.movements(closed)
        plan = Plan(
            version=self.version,
            opened=self.opened,
            closed=closed,
            ready=closed + rules.after,
            orders=orders,
            oldest=self.version + 1,
            arrived=arrived,
            departed=departed,
            moves=world.moves(arrived, departed),
        )
        world.add(plan)
        return plan

    def _check(self, orders: Orders, reported: int) -> None:
        """Check that every client asked has one order, and that those heard are those that reported."""
        heard = np.count_nonzero(orders.is_heard)
        if not np.array_equal(orders.client, self.clients) or heard != reported:
            raise ConservationError(
                f"round {self.version + 1}: {len(self.clients)} asked, {reported} reported,"
                f" {heard} of {len(orders)} heard"
            )

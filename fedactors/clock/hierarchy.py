"""Rounds of edges and cloud: every aggregation is a Plan, in the order in which they close.

An edge starts from the newest model of the cloud, and goes on from its own: its Plans are mixed wholly from the version
that it made last, which need not be the newest there is. The Plan of the cloud has no orders, and is mixed from the
last version of each edge. See `fedactors.clock.timings.hierarchical` for the paper.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
import simpy

from fedactors.clock.availability import Int64
from fedactors.clock.selections.base import started
from fedactors.clock.selections.edge_selector import EdgeSelector
from fedactors.clock.selections.history import History
from fedactors.clock.timings.tier_rules import TierRules
from fedactors.clock.virtual_time import Waits
from fedactors.clock.world import World
from fedactors.plan import NEVER, SECOND, Ending, Ends, MaybeEnding, Orders, Phase, Plan, Tier, Time

CLOUD = -1
_NOBODY = np.zeros(0, np.int64)


def hierarchical(world: World, rules: TierRules) -> Generator[simpy.Event, object, MaybeEnding]:
    """Return the process that runs cloud rounds until the last one, the end of time or the end of the population.

    It returns why it ended.
    """
    return _Cloud(world, rules).serve()


class _Cloud:
    """The cloud, and the edges at work."""

    def __init__(self, world: World, rules: TierRules) -> None:
        self.world = world
        self.rules = rules
        self.version = 0  # of the newest model of any tier
        self.model = 0  # version of the cloud's
        self._promised = 0  # versions that exist, or that cloud rounds under way make at most; with `mixing`
        self._turn_over = simpy.Event(world.env)  # triggers when an edge that nobody waits for ends a cloud round
        self.rounds = 0
        self.edges = [_EdgeServer(self, number) for number in range(len(rules.members))]

    def serve(self) -> Generator[simpy.Event, object, MaybeEnding]:
        """Play cloud rounds: one after the other, or each edge its own."""
        world, mixing = self.world, self.rules.mixing
        yield world.at(0, Phase.DISPATCH)
        if mixing is None:
            return (yield from self._in_step())
        yield simpy.AllOf(world.env, [world.env.process(edge.go_on(mixing)) for edge in self.edges])
        if self._promised + self.rules.edge_rounds + 1 <= self.rules.rounds:
            return self._nobody_left()
        return self.limit() or Ends.DONE

    def _nobody_left(self) -> MaybeEnding:
        """Return why no edge hears anybody any more."""
        if ended := self.limit():
            return ended
        if not any(edge.present for edge in self.edges):
            return Ending("no edge can reach the cloud any more", "nobody")
        return Ends.NOBODY_LEFT if all(edge.hears for edge in self.edges) else Ends.NOBODY_REPORTS

    def _in_step(self) -> Generator[simpy.Event, object, MaybeEnding]:
        """Play cloud rounds in which the cloud waits for all edges."""
        world, rules = self.world, self.rules
        while self.version + len(self.edges) * rules.edge_rounds + 1 <= rules.rounds:
            if ended := self.limit():
                return ended
            opened = world.now
            self.model = self.version
            for edge in self.edges:
                edge.model = self.version
                edge.reached = _NOBODY
            yield simpy.AllOf(world.env, [world.env.process(edge.play()) for edge in self.edges])
            yield world.at(world.now, Phase.CLOSE)
            asking = [edge for edge in self.edges if edge.rounds]
            if not asking:
                return self._nobody_left()
            self._aggregate(opened)
            if not any(edge.hears for edge in asking):
                return self._nobody_left()
        return Ends.DONE

    def admit(self) -> Generator[simpy.Event, object, bool]:
        """Wait until it is known whether another cloud round of one edge may begin, and return that.

        Where the others have taken all versions that are left, one of them may make fewer than it has taken.
        """
        more = self.rules.edge_rounds + 1
        while self._promised + more > self.rules.rounds and self.version < self._promised:
            yield self._turn_over
        if self._promised + more > self.rules.rounds or self.limit():
            return False
        self._promised += more
        return True

    def end_turn(self, made: int) -> None:
        """End a cloud round of one edge, which has made so many versions, and leave the others to the other edges."""
        self._promised -= self.rules.edge_rounds + 1 - made
        self._turn_over.succeed()
        self._turn_over = simpy.Event(self.world.env)

    def mix(self, edge: _EdgeServer, opened: Time, mixing: float) -> None:
        """Put the Plan of the cloud into the queue that mixes its model with that of an edge."""
        self.rounds += 1
        mixed = ((self.model, 1 - mixing), (edge.model, mixing))
        moved = self._moved([one for one in self.edges if one is edge or not one.present])
        tier = self._tier(mixed if edge.weight else ((self.model, 1.0),), moved)
        edge.model = self.model = self.version + 1
        self.add(Orders.of(()), opened, tier)

    def limit(self) -> MaybeEnding:
        """Return the limit that the run has reached, or nothing."""
        return self.world.limit(self.rules.until)

    def _aggregate(self, opened: Time) -> None:
        """Put the Plan of the cloud into the queue: the mean of the edges' models, by the clients that they heard."""
        heard = [edge for edge in self.edges if edge.weight and edge.present]
        total = sum(edge.weight for edge in heard)
        mixed = tuple((edge.model, edge.weight / total) for edge in heard)
        self.rounds += 1
        self.add(Orders.of(()), opened, self._tier(mixed or ((self.model, 1.0),), self._moved(self.edges)))

    def _tier(self, mixed: tuple[tuple[int, float], ...], moved: int) -> Tier:
        return Tier(CLOUD, mixed, moved, self.rounds, self.rounds * self.rules.edge_rounds)

    def _moved(self, edges: list[_EdgeServer]) -> int:
        """Return the bytes that edges have exchanged with the cloud, which count only once."""
        models = sum(edge.moved for edge in edges)
        for edge in edges:
            edge.moved = 0
        return models * self.rules.size

    def add(self, orders: Orders, opened: Time, tier: Tier) -> int:
        """Put a Plan into the queue that closes now; return the version of its model."""
        world, now = self.world, self.world.now
        arrived, departed = world.movements(now)
        self.version += 1
        plan = Plan(
            version=self.version - 1,
            opened=opened,
            closed=now,
            ready=now,
            orders=orders,
            oldest=min([self.version, *self._kept(tier)]),
            arrived=arrived,
            departed=departed,
            moves=world.moves(arrived, departed),
            tier=tier,
        )
        world.add(plan)
        return self.version

    def _kept(self, tier: Tier) -> list[int]:
        """Return the versions that later Plans may start from, or be mixed from."""
        if self.rules.mixing is not None:
            return [self.model, *(edge.model for edge in self.edges)]
        if tier.edge == CLOUD:
            return []
        return [self.model, *(edge.model for edge in self.edges if edge.number != tier.edge)]


class _EdgeServer:
    """One edge: its clients, its link to the cloud, and its model."""

    def __init__(self, cloud: _Cloud, number: int) -> None:
        self.cloud = cloud
        self.number = number
        self.model = 0  # version
        self.reached = _NOBODY  # clients heard in this cloud round, ascending
        self.rounds = 0  # with its clients in this cloud round
        self.hears = True  # whether any client that it asked last can ever report
        self.moved = 0  # models over its link that no Plan of the cloud counts yet
        self.present = True  # whether its link is ever up again
        self._left: Time = 0  # when its last round ended
        self._apart: Time = 0  # ns between the last round of a cloud round and the first of the next
        self._selector = self._started()
        links = cloud.rules.links
        self._availability = links.availability
        self._down, self._up = (
            -(-cloud.rules.size * SECOND // int(rates[number])) + int(links.latency[number])
            for rates in (links.down, links.up)
        )

    def _started(self) -> EdgeSelector:
        """Return the selection of the edge, which knows its clients, its deadline and how long its rounds take."""
        world, rules = self.cloud.world, self.cloud.rules
        members, deadline = rules.members[self.number], rules.deadlines[self.number]
        known = rules.clients.of(members)._replace(
            deadline=NEVER if deadline is None else deadline,
            history=History(world, members, lambda: world.now - self._apart),
        )
        return EdgeSelector(started(rules.selection, known))

    @property
    def weight(self) -> int:
        """Weight of the edge at the cloud: the sum of the counts of the clients whose updates it received.

        It is that of this cloud round; each client counts once.
        """
        return int(self.cloud.rules.counts[self.reached].sum())

    def play(self) -> Waits:
        """Download the cloud's model, play the rounds of a cloud round, and upload the edge's own model."""
        world, rules = self.cloud.world, self.cloud.rules
        before = self.cloud.rounds * rules.edge_rounds
        self.rounds, self.hears = 0, True
        yield from self._transfer(self._down)
        self._apart += world.now - self._left
        while self.present and self.hears and self.rounds < rules.edge_rounds:
            clients = yield from self._drawn()
            if not len(clients):
                break
            self.rounds += 1
            yield from self._round(clients, before + self.rounds)
        self._left = world.now
        if self.present:
            yield from self._transfer(self._up)
        yield world.at(world.now, Phase.FINISH)

    def go_on(self, mixing: float) -> Waits:
        """Play one cloud round after the other, by itself, as long as clients are there."""
        cloud, first = self.cloud, True
        while (first or self.rounds) and self.present and self.hears and (yield from cloud.admit()):
            first, opened = False, cloud.world.now
            self.model = cloud.model
            self.reached = _NOBODY
            yield from self.play()
            if self.present:
                yield cloud.world.at(cloud.world.now, Phase.CLOSE)
                cloud.mix(self, opened, mixing)
            self.model = NEVER  # none is kept for it: it goes on from the cloud's
            cloud.end_turn(self.rounds + self.present)

    def _transfer(self, needed: Time) -> Waits:
        """Wait until a transfer over the link is done, which pauses while the link is down."""
        world, a = self.cloud.world, self._availability
        end = a.reach(self.number, a.elapsed(self.number, world.now) + needed)
        self.present = end < NEVER
        if self.present:
            yield world.at(max(end, world.now), Phase.FINISH)
            self.moved += 1

    def _drawn(self) -> Generator[simpy.Event, object, Int64]:
        """Wait until clients of the edge can be asked, and return those drawn; none if none can before a limit."""
        world, rules = self.cloud.world, self.cloud.rules
        members = rules.members[self.number]
        while True:
            yield world.at(world.now, Phase.DISPATCH)
            places = np.flatnonzero(world.ready(rules.among, members))
            if self.cloud.limit():
                return _NOBODY
            if len(places):
                drawn = world.draw(self.model, places, rules.asks[self.number], self.number, self._selector)
                return members[drawn]
            back = world.next_of(members, rules.among)
            if back == NEVER and not world.unforeseen:
                return members[places]
            back = max(back, world.now + 1)
            yield from world.until(back if rules.until is None else min(back, rules.until), Phase.DISPATCH)

    def _round(self, clients: Int64, edge_round: int) -> Waits:
        """Play a round of the edge with its clients, and put its Plan into the queue."""
        world, rules = self.cloud.world, self.cloud.rules
        opened, deadline = world.now, world.deadline_after(rules.deadlines[self.number])
        trips = world.begin(clients, self.model, deadline)
        yield from trips.wait(None, early=True)
        orders = trips.settle(early=world.now < deadline and not trips.over())
        self.reached = np.union1d(self.reached, orders.client[orders.is_heard])
        base = self.model
        self.model = self.cloud.version + 1
        self.cloud.add(orders, opened, Tier(self.number, ((base, 1.0),), edge_round=edge_round))
        if world.now == opened and not orders.is_heard.any():
            yield from self._wait_for_change()

    def _wait_for_change(self) -> Waits:
        """Wait until a device comes or goes: no client that was asked can report, and it would be asked again now."""
        world, until = self.cloud.world, self.cloud.rules.until
        change = world.next_change()
        self.hears = change < NEVER or world.unforeseen
        if self.hears:
            yield from world.until(change if until is None else min(change, until), Phase.DISPATCH)

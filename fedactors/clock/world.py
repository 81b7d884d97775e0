"""The stage: SimPy's environment with our order of same-instant events, and the policy's way to speak to it."""

from __future__ import annotations

from collections import deque
from typing import Any, cast

import numpy as np
import simpy

from fedactors.clock.availability import Int64
from fedactors.clock.population import Population
from fedactors.clock.presence import Presence
from fedactors.clock.trip import Trips
from fedactors.plan import NEVER, Phase, Plan, Time
from fedactors.streams import Purpose, stream
from fedactors.workload import Workload

_AFTER_SIMPY = 10  # SimPy's own priorities are 0 and 1: starts and interrupts of processes come first


class At(simpy.Event):
    """An event at an absolute instant, in the order of `Phase` among those of the same nanosecond.

    SimPy fires equal times in order of creation, and a deadline is created before the uploads it waits for.
    """

    def __init__(self, env: simpy.Environment, time: Time, phase: Phase) -> None:
        super().__init__(env)
        self._ok, self._value = True, None
        env.schedule(self, priority=cast(Any, _AFTER_SIMPY + phase), delay=time - env.now)


class World:
    """Virtual time, the population in it, and the Plans made so far but not yet taken."""

    def __init__(self, population: Population, trips: Trips, workloads: list[Workload], seed: int) -> None:
        self.env = simpy.Environment(initial_time=0)
        self.population, self.trips, self.workloads, self.seed = population, trips, workloads, seed
        self.presence = Presence(population.availability)
        self.plans: deque[Plan] = deque()
        self._has_work = np.array([work.wanted > 0 for work in workloads])
        self._seen: Time = 0

    @property
    def now(self) -> Time:
        """The present, ns."""
        return int(self.env.now)

    def at(self, time: Time, phase: Phase) -> At:
        """Return an event at `time`."""
        return At(self.env, time, phase)

    def candidates(self, among: str) -> Int64:
        """Return the clients that can be asked now, ascending: those `available`, or all `members`."""
        if among == "members":
            return np.flatnonzero((self.population.arrive <= self.now) & (self.now < self.population.depart))
        self.presence.advance(self.now)
        return self.presence.available()

    def draw(self, version: int, among: str, count: int | None) -> list[int]:
        """Return the cohort of a round, ascending: `count` of the candidates by lot, or all of them."""
        candidates = self.candidates(among)
        candidates = candidates[self._has_work[candidates]]
        if count is not None and count < len(candidates):
            chosen = stream(self.seed, Purpose.COHORT, 0, version).choice(
                len(candidates), count, replace=False, shuffle=False
            )
            candidates = candidates[np.sort(chosen)]
        ids: list[int] = candidates.tolist()
        return ids

    def next_candidate(self, among: str) -> Time:
        """Return when somebody can be asked again, seen from a moment at which nobody can."""
        if among == "members":
            later = self.population.arrive[self.population.arrive > self.now]
            return int(later.min()) if len(later) else NEVER
        return self.next_on()

    def next_on(self) -> Time:
        """Return the present if somebody is on, else when the next device comes on; NEVER if none does."""
        self.presence.advance(self.now)
        return self.now if self.presence.on.any() else self.presence.next_on()

    def movements(self, until: Time) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return who arrived and who departed since the last call, up to and including `until`."""
        since, self._seen = self._seen, until
        arrived, departed = (
            tuple(np.flatnonzero((since < column) & (column <= until)).tolist())
            for column in (self.population.arrive, self.population.depart)
        )
        return arrived, departed

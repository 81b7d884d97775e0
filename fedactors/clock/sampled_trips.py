"""Trips of devices whose share of the work is drawn anew in each round, for comparison with papers that sample it.

Participation does not emerge from timing here: the draw sets the device's speed in that round so that exactly the drawn
share fits before the deadline. The rest of the trip is planned as any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from fedactors.clock.device_columns import Flows, Population
from fedactors.clock.laws import law
from fedactors.clock.trip import NOTHING_MISSED, Missed, Size, Trip
from fedactors.clock.varying import VaryingTripPlanner
from fedactors.plan import NEVER, Outcome, Time
from fedactors.streams import Purpose, stream
from fedactors.workload import Workload


@dataclass(frozen=True)
class Draws:
    """Which law each device follows, and in how many parts its work is counted."""

    seed: int
    laws: Sequence[tuple[str, int] | None]  # (trace, levels) of each device; None: not sampled

    def draw(self, client: int, version: int) -> tuple[int, int] | None:
        """Return (parts done, parts wanted) of a client in a round; None for one that is not sampled."""
        found = self.laws[client]
        if found is None:
            return None
        uniform = stream(self.seed, Purpose.PARTICIPATION, client, version).random()
        levels = found[1]
        done = int(np.searchsorted(np.cumsum(law(*found)), uniform, side="right"))
        return min(done, levels), levels


class SampledTripPlanner(VaryingTripPlanner):
    """Plans trips of a population some of whose devices are sampled; see `TripPlanner`."""

    def __init__(
        self,
        population: Population,
        flows: Flows,
        draws: Draws,
        sizes: tuple[Size, Size],
        once: int = 0,
        missed: Missed = NOTHING_MISSED,
    ) -> None:
        super().__init__(population, flows, *sizes, once, missed)
        self._draws = draws
        self._pace = population.per_sample.copy()  # of the trip that a device is on
        self._per_sample = memoryview(self._pace)

    @override
    def plan(self, client: int, base: int, start: Time, deadline: Time, work: Workload) -> Trip:
        if self.set_pace(client, base, start, deadline, work):
            return super().plan(client, base, start, deadline, work)
        origin = self._availability.elapsed(client, start)
        return Trip(client, base, start, origin, work, 0, Outcome.OFFLINE, NEVER, gives_up=start)

    @override
    def set_pace(self, client: int, base: int, start: Time, deadline: Time, work: Workload) -> bool:
        self.ask(np.array([client]), base)
        drawn = self._draws.draw(client, base)
        if drawn is None:
            return True
        done, levels = drawn
        steps = work.wanted * done // levels
        if steps:
            left = deadline - start - self._down[client] - self._up[client]
            self._pace[client] = max(1, left // work.samples(steps))
        return steps > 0

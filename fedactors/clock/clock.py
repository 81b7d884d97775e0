"""The clock of one scenario: an iterator of Plans that knows time and no gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from fedactors.clock.population import Population
from fedactors.clock.sampled import Draws, Sampled
from fedactors.clock.synchronous import Rounds, synchronous
from fedactors.clock.trip import Trips
from fedactors.clock.varying import Varying
from fedactors.clock.world import World
from fedactors.plan import Payload, Plan
from fedactors.scenario.model import Scenario
from fedactors.workload import Workload


class Clock:
    """Iterate over the Plans of a scenario, in order of version.

    Args:
        scenario: what the server does.
        population: the devices, in columns.
        workloads: what each client is asked to do, one per device.
        payload: what a trip moves, in models, and what the server computes, in samples.
        model_bytes: size of one model.

    """

    def __init__(
        self,
        scenario: Scenario,
        population: Population,
        workloads: list[Workload],
        payload: Payload,
        model_bytes: int,
    ) -> None:
        down, up, once = (round(part * model_bytes) for part in (payload.down, payload.up, payload.once))
        trips = planner(population, scenario.seed, down, up, once)
        self._world = World(population, trips, workloads, scenario.seed)
        self._policy = self._world.env.process(synchronous(self._world, rules(scenario, payload)))
        self.ended_because = ""

    def __iter__(self) -> Iterator[Plan]:
        return self

    def __next__(self) -> Plan:
        world = self._world
        while not world.plans:
            if not self._policy.is_alive:
                if not self._policy.ok:  # an exception inside SimPy is the process's value
                    raise cast(BaseException, self._policy.value)
                self.ended_because = str(self._policy.value)
                raise StopIteration
            world.env.step()
        return world.plans.popleft()

    @property
    def now(self) -> int:
        """Virtual time reached, ns."""
        return self._world.now


def planner(population: Population, seed: int, down: int, up: int, once: int) -> Trips:
    """Return the trips that this population needs: plain ones, over flows that vary, or sampled."""
    flows = population.flows
    if flows is None:
        return Trips(population, down, up, once)
    if population.laws:
        return Sampled(population, flows, Draws(seed, population.laws), (down, up), once)
    return Varying(population, flows, down, up, once)


def rules(scenario: Scenario, payload: Payload) -> Rounds:
    """Return the rules of a scenario's synchronous rounds, with the server's own work as time."""
    server = scenario.server
    per_sample = server.compute_per_sample
    return Rounds(
        rounds=server.rounds,
        ask=None if server.cohort == "all" else server.cohort + server.over_selection,
        among=server.among,
        quorum=server.closes_at,
        deadline=server.deadline,
        until=server.until,
        before=payload.before * per_sample,
        during=payload.during * per_sample,
        after=payload.after * per_sample,
        first=payload.first * per_sample,
        early=server.close_early,
    )

"""The clock of one scenario: an iterator of Plans, computed from times alone, without gradients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np

from fedactors.clock import asynchronous
from fedactors.clock.availability import Int64
from fedactors.clock.device_columns import Population
from fedactors.clock.energy.meter import meter_of
from fedactors.clock.hierarchy import hierarchical
from fedactors.clock.sampled_trips import Draws, SampledTripPlanner
from fedactors.clock.secure_groups import SecureGroups
from fedactors.clock.selections.base import Clients, Loss, Stages, SteeringSelector, started
from fedactors.clock.selections.history import History
from fedactors.clock.synchronous import Events, Rounds, synchronous
from fedactors.clock.timings.base import Asynchronous
from fedactors.clock.timings.hierarchical import Hierarchical
from fedactors.clock.timings.tier_rules import tiers_of
from fedactors.clock.trip import NOTHING_MISSED, Missed, Size, TripPlanner
from fedactors.clock.varying import VaryingTripPlanner
from fedactors.clock.world import World
from fedactors.plan import NEVER, Ending, MaybeEnding, Payload, Plan
from fedactors.scenario.model import Scenario
from fedactors.workload import Workload, WorkloadTable


class Clock:
    """Iterate over the Plans of a scenario, in order of version.

    Args:
        scenario: what the server does.
        population: the devices, in columns.
        workloads: the local work of each client, one per device.
        payload: what a trip moves, in models, and what the server computes, in samples.
        model_bytes: size of one model, as it travels: the same for everybody, or one for each client.

    """

    def __init__(
        self,
        scenario: Scenario,
        population: Population,
        workloads: list[Workload],
        payload: Payload,
        model_bytes: Size,
    ) -> None:
        self._scenario = scenario
        down, up = (_bytes(part, model_bytes) for part in (payload.down, payload.up))
        once = round(payload.once * int(np.max(model_bytes)))
        missed = Missed(*(round(part * int(np.max(model_bytes))) for part in (payload.missed, payload.missed_at_most)))
        trip_planner = planner(population, scenario.seed, down, up, once, missed)
        self._world = _world(scenario, population, trip_planner, workloads)
        self._world.meter = meter_of(scenario, self._world, round(payload.ahead * int(np.max(model_bytes))))
        if scenario.server.secure is not None:
            self._world.secure = SecureGroups(scenario.server.secure, scenario.seed)
        clients = _clients(scenario, self._world, trip_planner, workloads)
        self._policy = self._world.env.process(policy(self._world, scenario, payload, clients))
        self._steered: bool = scenario.server.selection.steers
        self._without_feedback: dict[int, Plan] = {}
        self.ended_because: MaybeEnding = ""

    def __iter__(self) -> Iterator[Plan]:
        return self

    def __next__(self) -> Plan:
        world = self._world
        if self._without_feedback:
            raise RuntimeError(f"plan {min(self._without_feedback)} has no feedback yet")
        while not world.plans:
            if not self._policy.is_alive:
                if not self._policy.ok:  # an exception inside SimPy is the process's value
                    raise cast(BaseException, self._policy.value)
                self.ended_because = cast(Ending, self._policy.value)
                raise StopIteration
            world.step()
        plan = world.plans.popleft()
        if self._steered:
            self._without_feedback[plan.version] = plan
        return plan

    @property
    def steered(self) -> bool:
        """Whether each plan needs `feedback` before the next one can be had."""
        return self._steered

    def feedback(self, version: int, losses: Mapping[int, Loss]) -> None:
        """Give the selection the losses of the clients heard in plan `version`; none where nothing is trained."""
        cast(SteeringSelector, self._world.selector).learned(self._without_feedback.pop(version), losses)

    def spans(self, client: int, time: int) -> Iterator[tuple[int, int]]:
        """Yield when a device is on from `time` on, as (on, off) in order; of one that behaves, as seen until now."""
        return self._world.spans(client, time)

    @property
    def now(self) -> int:
        """Virtual time reached, ns."""
        return self._world.now


def _world(scenario: Scenario, population: Population, trip_planner: TripPlanner, workloads: list[Workload]) -> World:
    """Return virtual time with processes for the devices that need them, or for all where a scenario wants that."""
    everybody = scenario.clock == "events"
    if not (everybody or population.behaving):
        return World(population, trip_planner, workloads, scenario.seed)
    from fedactors.clock.events.event_world import EventWorld

    eventful = np.full(len(population), everybody)
    return EventWorld(population, trip_planner, workloads, scenario.seed, eventful)


def _bytes(models: float, model_bytes: Size) -> Size:
    """Return the bytes of so many models."""
    if isinstance(model_bytes, int):
        return round(models * model_bytes)
    each: Int64 = np.rint(models * model_bytes).astype(np.int64)
    return each


def planner(
    population: Population, seed: int, down: Size, up: Size, once: int, missed: Missed = NOTHING_MISSED
) -> TripPlanner:
    """Return the trips that this population needs: plain ones, over flows that vary, or sampled."""
    flows = population.flows
    if flows is None:
        return TripPlanner(population, down, up, once, missed)
    if population.laws:
        return SampledTripPlanner(population, flows, Draws(seed, population.laws), (down, up), once, missed)
    return VaryingTripPlanner(population, flows, down, up, once, missed)


def policy(world: World, scenario: Scenario, payload: Payload, clients: Clients) -> Events:
    """Return the process that plays the server of `scenario`, with its own work as time, and let its selection start.

    `clients` is what a selection may know of them.
    """
    server, timing = scenario.server, scenario.server.timing
    limits: dict[str, Any] = {"rounds": server.rounds, "deadline": server.deadline, "until": server.until}
    work = {name: getattr(payload, name) * server.compute_per_sample for name in ("before", "during", "after", "first")}
    if isinstance(timing, Hierarchical):
        return hierarchical(world, tiers_of(world, scenario, timing, payload.backhaul, clients))
    world.selector = started(server.selection, clients)
    if not isinstance(timing, Asynchronous):
        ask = None if server.cohort == "all" else server.cohort + server.over_selection
        closing: dict[str, Any] = {"quorum": server.closes_at, "early": server.close_early}
        return synchronous(world, Rounds(**limits, **work, **closing, among=server.among, ask=ask))
    rules = asynchronous.Rules(
        **limits,
        **work,
        among=server.among,
        concurrency=timing.concurrency,
        updates=timing.updates,
        every=timing.every,
        max_staleness=timing.max_staleness,
        waits=timing.on_stale == "wait",
    )
    return asynchronous.asynchronous(world, rules)


def _clients(scenario: Scenario, world: World, trip_planner: TripPlanner, workloads: list[Workload]) -> Clients:
    """Return what a selection may know of the clients."""
    deadline = scenario.server.deadline
    work = WorkloadTable(workloads).all()
    down, up = (np.asarray(column) for column in trip_planner.transfers)
    compute = work.samples(work.wanted).astype(float) * world.population.per_sample
    times, computing = (np.minimum(spent, NEVER).astype(np.int64) for spent in (compute + down + up, compute))
    return Clients(
        np.where(work.wanted > 0, work.held, 0),
        times,
        Stages(down.copy(), computing, up.copy()),
        NEVER if deadline is None else deadline,
        History(world),
        scenario.groups,
    )

"""What the edges and the cloud of a scenario do: who belongs to which edge, whom it asks, its link and its limits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedactors.clock.availability import Int64
from fedactors.clock.device_columns import Population, build
from fedactors.clock.selections.base import Clients, Selection
from fedactors.clock.timings.hierarchical import Hierarchical
from fedactors.clock.world import World
from fedactors.plan import Time
from fedactors.scenario.model import Scenario


@dataclass(frozen=True)
class TierRules:
    """What edges and cloud do; times in ns, None for no limit."""

    rounds: int  # aggregations of all tiers
    edge_rounds: int
    mixing: float | None  # share of an edge's model in the cloud's; None: the cloud waits for all edges
    members: list[Int64]  # clients of each edge, ascending
    asks: list[int | None]  # of each edge; None: all its candidates
    deadlines: list[Time | None]  # of each edge's rounds
    links: Population  # of the edges to the cloud
    size: int  # bytes of a model between edges and cloud
    counts: Int64  # what each client counts for its edge at the cloud
    among: str
    until: Time | None
    selection: Selection
    clients: Clients  # what a selection may know of them


def tiers_of(world: World, scenario: Scenario, timing: Hierarchical, size: int, clients: Clients) -> TierRules:
    """Return what edges and cloud of a scenario do, with models of `size` bytes; reads recordings of the links.

    `clients` is what a selection may know of them.
    """
    server = scenario.server
    groups = scenario.population
    edge_of = np.repeat([_place(timing, group.edge) for group in groups], [group.count for group in groups])
    links = build(scenario.model_copy(update={"population": [edge.as_group() for edge in timing.edges]}), flops=1)
    return TierRules(
        rounds=server.rounds,
        edge_rounds=timing.edge_rounds,
        mixing=timing.mixing,
        members=[np.flatnonzero(edge_of == number) for number in range(len(timing.edges))],
        asks=[None if edge.cohort == "all" else edge.cohort for edge in timing.edges],
        deadlines=[edge.deadline or server.deadline for edge in timing.edges],
        links=links,
        size=size,
        counts=server.participation.counts(world.cohort_planner.work),
        among=server.among,
        until=server.until,
        selection=server.selection,
        clients=clients,
    )


def _place(timing: Hierarchical, name: str | None) -> int:
    return [edge.name for edge in timing.edges].index(name or "")

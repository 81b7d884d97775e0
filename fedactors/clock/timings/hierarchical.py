"""Hierarchical rounds, HierFAVG: Liu et al., Client-Edge-Cloud Hierarchical Federated Learning, 2020, Algorithm 1.

    for each cloud round:
        every edge e:  w_e <- w                                      # downloaded over the edge's link
            kappa_2 times:  clients of e take kappa_1 local steps from w_e ; w_e <- mean of their models, by samples
        w <- sum_e n_e w_e / sum_e n_e                               # uploaded, when the last edge is there

kappa_1 is the scenario's `local` (steps or epochs), kappa_2 is `edge_rounds`. Each aggregation of an edge and of the
cloud is a Plan of its own, with the next version: `rounds` counts them all, and no cloud round begins that would exceed
it. n_e are the samples of the clients that the edge has heard in the cloud round, each client once; with another
participation policy, what its `counts` says of them. Edges work at the same time, each with the deadline, link and
windows of its own; the cloud waits for all of them. Rates follow the rounds of an edge: the j-th one of the t-th cloud
round has the rate of round (t - 1) kappa_2 + j at every edge.

With `mixing` edges are asynchronous: w <- (1 - alpha) w + alpha w_e whenever an edge is there, and that edge goes on
from the new w at once (Xie et al., Asynchronous Federated Optimization, 2019, with edges as workers and a constant
alpha). Then t - 1 are the cloud's aggregations behind the w with which the edge began.

Deviation: the paper's n_e are the samples of all clients of an edge, who all take part there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PlainValidator, field_validator

from fedactors.clock.timings.base import Timing
from fedactors.errors import suggestion
from fedactors.options import Options
from fedactors.scenario.population import GroupOptions, Network
from fedactors.scenario.process_behaviour import Windows
from fedactors.scenario.trace_options import Always
from fedactors.scenario.units import NONE_IS_NULL, Duration


def _number_or_all(value: Any) -> Any:
    if value == "all" or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise ValueError(f"found {str(value)[:60]!r} (accepted: a number of clients such as 10, or all)")


class Edge(Options):
    """One edge aggregator, between clients and the cloud."""

    name: str = Field(min_length=1, max_length=100)
    """What population groups call it: `edge: north`."""
    cohort: Annotated[
        int | Literal["all"],
        PlainValidator(_number_or_all, json_schema_input_type=Annotated[int, Field(ge=1)] | Literal["all"]),
    ] = "all"
    """How many of its clients a round of the edge asks."""
    deadline: Annotated[Duration | None, NONE_IS_NULL] = Field(default=None, gt=0)
    """How long a round of the edge waits for them; by default the server's."""
    network: Network = Network.model_validate({"down": "10 MB/s", "up": "10 MB/s", "latency": "20ms"})
    """Its link to the cloud."""
    availability: Windows = Always()
    """When that link is up: a recording, or a law. Rounds of the edge with its clients go on without it."""

    @field_validator("network")
    @classmethod
    def _check_constant_links(cls, network: Network) -> Network:
        if network.trace is not None:
            raise ValueError("trace: links of edges are constant (accepted: down, up, latency, and availability)")
        return network

    def as_group(self) -> GroupOptions:
        """Return the edge as a group of one device."""
        return GroupOptions(name=f"edge {self.name}", count=1, availability=self.availability, network=self.network)


class Hierarchical(Timing):
    """Clients report to edges, and edges to the cloud."""

    asynchronous: ClassVar[bool] = True
    says_whom: ClassVar[str] = "timing.edges.*.cohort"
    mixes: ClassVar[bool] = True

    name: Literal["hierarchical"] = "hierarchical"
    edges: tuple[Edge, ...] = Field(min_length=1, strict=False)
    """The edges, each with a name that population groups give as `edge`."""
    edge_rounds: int = Field(default=1, ge=1, le=1_000_000)
    """Rounds of an edge with its clients in each cloud round (kappa_2)."""
    mixing: float | None = Field(default=None, gt=0.0, le=1.0)
    """What share an edge's model has in the cloud's when it comes in, which then waits for no other edge (alpha of
    FedAsync, with edges in place of clients). By default the cloud waits for all of them."""

    @property
    def _least(self) -> int:
        """Aggregations of one round of the cloud: of all edges, or with `mixing` of one, and its own."""
        edges = len(self.edges) if self.mixing is None else 1
        return edges * self.edge_rounds + 1

    def scheduled(self, rounds: int) -> int:
        """Return how many rounds of a schedule there are in so many aggregations: one after the other of an edge."""
        return max(1, rounds // self._least) * self.edge_rounds

    def check_edges(self, of_groups: Sequence[str | None], server: Any) -> None:
        """Raise ValueError if groups and edges do not name each other, or the server has what edges have not."""
        if reason := _undefined(server):
            raise ValueError(f"server: {reason}, which timing hierarchical does not have (accepted: leave it out)")
        if server.rounds < self._least:
            raise ValueError(
                f"server.rounds: {server.rounds} aggregations are less than one round of the cloud, because edges and"
                f" cloud count together (accepted: at least {self._least})"
            )
        names = [edge.name for edge in self.edges]
        for number, edge in enumerate(of_groups):
            if edge not in names:
                hint = suggestion(edge, names) if edge else f" (accepted: {', '.join(names)})"
                raise ValueError(f"population.{number}.edge: no edge {'given' if edge is None else repr(edge)}{hint}")
        for name in names:
            if problem := _problem_of(name, names, of_groups):
                raise ValueError(f'server.timing.edges: "{name}" {problem} (accepted: each edge once, with clients)')


def _problem_of(name: str, names: Sequence[str], of_groups: Sequence[str | None]) -> str:
    """Say what is wrong with an edge, if anything."""
    if names.count(name) > 1:
        return "is there twice"
    return "" if name in of_groups else "has no population group"


def _undefined(server: Any) -> str:
    """Say what of a server's options is undefined where there are several, if anything."""
    algorithm = server.algorithm
    reasons = {
        f'algorithm "{algorithm.name}" keeps an optimiser on one server': getattr(algorithm, "server_optimizer", None),
        f'algorithm "{algorithm.name}" learns on one server': algorithm.learns or algorithm.shares,
        f'algorithm "{algorithm.name}" has one central learner': algorithm.centre != "none",
        "pretraining belongs to one server": server.pretraining is not None,
        "dissimilarity_every measures at one model": server.dissimilarity_every is not None,
        f'selection "{server.selection.name}" draws from the losses of one round': server.selection.steers,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")

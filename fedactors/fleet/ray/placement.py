"""Where the actors of a fleet go: the first layout on the nodes of a cluster, waited for while others free it."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedactors.errors import ClusterError
from fedactors.fleet.layout import Node, Want, first_kinds, layout, table
from fedactors.fleet.ray.cluster_nodes import FREE_SECONDS, available, require

CENTRAL = "central learner"
EVALUATOR = "evaluator"
SERVER = "server"


@dataclass(frozen=True)
class Placement:
    """The node of each actor at the beginning; nodes are named as Ray names them."""

    kinds: Sequence[int]  # of each client host
    host_nodes: Sequence[str]  # of each client host
    other_nodes: Mapping[str, str]  # of the server, the evaluator, and the central learner if there is one
    nodes: frozenset[str]  # all there are
    table: str  # the same for users to read


def place(wanted: int | None, kinds: Sequence[Want], others: Mapping[str, Want], pause: threading.Event) -> Placement:
    """Return where actors go; `pause` is a wait that signals can end.

    Args:
        wanted: number of client hosts; None for as many as there is room for.
        kinds: what a client host of each kind needs.
        others: what the server, the evaluator and the central learner need.
        pause: never set.

    Raises ClusterError if the cluster has too little for them, or others do not free it in time.

    """
    host_kinds = first_kinds(wanted, kinds, others.get(CENTRAL), available())
    hosts = [kinds[kind] for kind in host_kinds]
    everything = [*hosts, *others.values()]
    require("CPU", sum(want.cpus for want in everything), len(hosts), pause)
    require("GPU", sum(want.gpus for want in everything), len(hosts), pause)
    nodes, places, other_places = _laid_out(hosts, list(others.values()), pause)
    rows = [("client host", place, want) for place, want in zip(places, hosts, strict=True)]
    rows += [(name, place, want) for (name, want), place in zip(others.items(), other_places, strict=True)]
    return Placement(
        host_kinds,
        [nodes[place].key for place in places],
        {name: nodes[place].key for name, place in zip(others, other_places, strict=True)},
        frozenset(node.key for node in nodes),
        table(nodes, rows),
    )


def _laid_out(
    hosts: Sequence[Want], others: Sequence[Want], pause: threading.Event
) -> tuple[list[Node], list[int], list[int]]:
    """Return the nodes, and the position of the node of each host and of each other actor.

    Raises ClusterError if they do not fit in time.
    """
    limit = time.monotonic() + FREE_SECONDS
    while True:
        nodes = available()
        if (found := layout(nodes, hosts, others)) is not None:
            return nodes, *found
        if time.monotonic() > limit:
            raise ClusterError(
                f"cluster: {len(hosts)} client hosts do not fit on the nodes that are there, one by one"
                f" (found {', '.join(map(str, nodes))}; accepted: fewer actors, or less for each)"
            )
        pause.wait(0.2)

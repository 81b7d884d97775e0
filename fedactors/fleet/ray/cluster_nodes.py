"""The state of a cluster's nodes and actors, from Ray's head."""

from __future__ import annotations

import threading
import time
from typing import Any, cast

import ray

from fedactors.errors import ClusterError
from fedactors.fleet.layout import Node

FREE_SECONDS = 20.0  # time for the cluster to free what an earlier run has held


def alive(actor: Any) -> bool:
    """Whether an actor runs."""
    return bool(ray._private.state.actors(actor._actor_id.hex()).get("State") == "ALIVE")


def available() -> list[Node]:
    """Return the nodes of the cluster with what they have free, in the order of their names."""
    free: dict[str, dict[str, float]] = cast(Any, ray)._private.state.available_resources_per_node()
    return _named([_node(node, free.get(node["NodeID"], {})) for node in cast(Any, ray).nodes() if node["Alive"]])


def whole_nodes() -> list[Node]:
    """Return the nodes of the cluster with all that they have, free or not, in the order of their names."""
    return _named([_node(node, node["Resources"]) for node in cast(Any, ray).nodes() if node["Alive"]])


def _node(described: dict[str, Any], resources: dict[str, float]) -> Node:
    """Return a node that Ray has described, with some resources."""
    own = {name: amount for name, amount in resources.items() if not name.startswith("node:")}
    cpus, gpus = own.pop("CPU", 0.0), own.pop("GPU", 0.0)
    return Node(described["NodeManagerHostname"], cpus, gpus, own, key=described["NodeID"])


def _named(found: list[Node]) -> list[Node]:
    """Return nodes in the order of their names, which are made to differ."""
    found.sort(key=lambda node: (node.name, node.key))
    names = [node.name for node in found]
    for number, node in enumerate(found):  # several nodes of one machine, as in tests
        node.name += f" #{names[: number + 1].count(node.name)}" if names.count(node.name) > 1 else ""
    return found


def require(resource: str, wanted: float, hosts: int, pause: threading.Event) -> None:
    """Wait until so much of a resource is free for a fleet of `hosts`; signals can end the wait on `pause`.

    Raises ClusterError if the cluster lacks it, or others hold it: actors would wait without a message.
    """
    there = cast(Any, ray).cluster_resources().get(resource, 0.0)
    limit = time.monotonic() + FREE_SECONDS
    while wanted > (free := cast(Any, ray).available_resources().get(resource, 0.0)):
        if wanted > there or time.monotonic() > limit:
            raise ClusterError(
                f"cluster: {hosts} client hosts want {wanted:g} {resource}, the cluster has {there:g},"
                f" {free:g} of them free (accepted: fewer actors, or less cpus_per_actor and gpus_per_actor)"
            )
        pause.wait(0.2)

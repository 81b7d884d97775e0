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
    found = []
    for node in cast(Any, ray).nodes():
        left = free.get(node["NodeID"], {}) if node["Alive"] else None
        if left is not None:
            own = {name: amount for name, amount in left.items() if not name.startswith("node:")}
            cpus = own.pop("CPU", 0.0)
            gpus = own.pop("GPU", 0.0)
            found.append(Node(node["NodeManagerHostname"], cpus, gpus, own, key=node["NodeID"]))
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

"""What Ray's head knows of a cluster's nodes and of actors."""

from __future__ import annotations

from typing import Any, cast

import ray

from fedactors.fleet.layout import Node


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
            cpus, gpus = own.pop("CPU", 0.0), own.pop("GPU", 0.0)
            found.append(Node(node["NodeManagerHostname"], cpus, gpus, own, key=node["NodeID"]))
    found.sort(key=lambda node: (node.name, node.key))
    names = [node.name for node in found]
    for number, node in enumerate(found):  # several nodes of one machine, as in tests
        node.name += f" #{names[: number + 1].count(node.name)}" if names.count(node.name) > 1 else ""
    return found

"""Calls of functions on nodes of the cluster, beside the actors of a fleet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

_ANSWER_SECONDS = 10.0


def on_node(node: str, function: Any, argument: Any) -> Any:
    """Return `function(argument)` as a process of `node` computes it; None if that node does not answer in time."""
    return on_nodes([node], function, argument)[0]


def on_nodes(nodes: Sequence[str], function: Any, argument: Any) -> list[Any]:
    """Return `function(argument)` of each of the `nodes`, asked all at once; None where one does not answer in time."""
    here = ray.get_runtime_context().get_node_id()
    asked = {node: _asked(node, function, argument) for node in nodes if node != here}
    if asked:
        ray.wait(list(asked.values()), num_returns=len(asked), timeout=_ANSWER_SECONDS)
    return [function(argument) if node == here else _answer(asked[node]) for node in nodes]


def _asked(node: str, function: Any, argument: Any) -> Any:
    there = NodeAffinitySchedulingStrategy(node, soft=False)
    task: Any = ray.remote(function).options(num_cpus=0, scheduling_strategy=there)
    return task.remote(argument)


def _answer(reference: Any) -> Any:
    try:
        return ray.get(reference, timeout=0)
    except RayError:
        return None

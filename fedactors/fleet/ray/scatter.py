"""Independent calls of one function over a Ray cluster: as many at once as its resources allow.

Results come as the calls end. One call that fails takes nothing from the others: what they have returned by then comes
before its error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import ray
from ray.exceptions import RayError, RayTaskError

from fedactors.bits import variables
from fedactors.errors import ClusterError
from fedactors.fleet.layout import Want, room
from fedactors.fleet.ray.cluster_nodes import whole_nodes
from fedactors.fleet.ray.ray_start import connected

T = TypeVar("T")


class Call(NamedTuple):
    """One call: what it is called in messages, its arguments, and what it takes of a node."""

    name: str
    arguments: tuple[Any, ...]
    cpus: float
    gpus: float = 0.0


def scatter(function: Callable[..., T], calls: Sequence[Call], address: str | None) -> Iterator[tuple[int, T]]:
    """Yield the place of each of `calls` and its `function(*arguments)`, as tasks of the cluster at `address` end.

    A task whose node dies is given to another. An exception of the function is raised here again, once all calls before
    that one, and others that were faster, have been yielded. Raises ClusterError if there is no such cluster, no node
    of it has what a call takes, or a call ends its process again and again.
    """
    if not calls:
        return
    with connected(address):
        _refuse_impossible(calls)
        task: Any = ray.remote(max_retries=2, runtime_env={"env_vars": variables()})(_call)
        handles = [
            task.options(num_cpus=call.cpus, num_gpus=call.gpus).remote(function, call.arguments) for call in calls
        ]
        yield from _ended(calls, handles)


def _ended(calls: Sequence[Call], handles: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """Yield the place and the result of each call, as they end. Raises the error of the first call that failed."""
    places = {handle: place for place, handle in enumerate(handles)}
    errors: dict[int, Exception] = {}
    while places:
        ray.wait(list(places), num_returns=1, fetch_local=False)
        ended, _ = ray.wait(list(places), num_returns=len(places), timeout=0, fetch_local=False)
        for handle in ended:
            place = places.pop(handle)
            try:
                result = ray.get(handle)
            except RayError as error:
                errors[place] = _raised(calls[place], error)
            else:
                yield place, result
        if errors and min(errors) < min(places.values(), default=len(calls)):
            raise errors[min(errors)]


def _raised(call: Call, error: RayError) -> Exception:
    """Return what is to be raised for an error of Ray: what the function raised, else a ClusterError."""
    if isinstance(error, RayTaskError) and isinstance(error.cause, Exception) and not isinstance(error.cause, RayError):
        return error.cause
    text = " ".join(str(error).split())[:500]
    return ClusterError(
        f"{call.name}: {type(error).__name__}: {text} (accepted: run the study again, finished runs stay)"
    )


def _refuse_impossible(calls: Sequence[Call]) -> None:
    """Raise ClusterError if a call takes more than any node has: Ray would wait for such a node without a message."""
    nodes = whole_nodes()
    for call in calls:
        if not room(nodes, Want(call.cpus, call.gpus)):
            found = "; ".join(f"{node.name}: {node.cpus:g} CPU, {node.gpus:g} GPU" for node in nodes)
            raise ClusterError(
                f"{call.name} wants {call.cpus:g} CPU and {call.gpus:g} GPU of one node (found {found};"
                " accepted: less cpus_per_actor and gpus_per_actor, or a node that has them)"
            )


def _call(function: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    return function(*arguments)

"""Independent calls of one function over a Ray cluster: as many at once as its resources allow."""

from __future__ import annotations

from collections import deque
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

_SUBMITTED = 2  # tasks at a time, for each that the cluster has room for: what waits also lets a cluster grow


class Call(NamedTuple):
    """One call: what it is called in messages, its arguments, and what it takes of a node."""

    name: str
    arguments: tuple[Any, ...]
    cpus: float
    gpus: float = 0.0


def scatter(function: Callable[..., T], calls: Sequence[Call], address: str | None) -> Iterator[tuple[int, T]]:
    """Yield the place of each of `calls` and what `function(*arguments)` returned for it, as they are done.

    They are computed by tasks of the cluster at `address`; a task whose node dies is given to another. A result is in
    Ray's object store until it is yielded. If the function raises an exception, no other call begins, those under way
    are finished, and then it is raised here again. Raises ClusterError if there is no such cluster, no node of it has
    what a call takes, or a call ends its process again and again.
    """
    if not calls:
        return
    with connected(address):
        _refuse_impossible(calls)
        task: Any = ray.remote(max_retries=2, runtime_env={"env_vars": variables()})(_call)
        waiting, submitted = deque(enumerate(calls)), dict[Any, int]()
        failed: Exception | None = None
        while waiting or submitted:
            for place, call in _next_of(waiting, len(submitted)):
                options = task.options(num_cpus=call.cpus, num_gpus=call.gpus)
                submitted[options.remote(function, call.arguments)] = place
            place, result = _first_done(submitted)
            if isinstance(result, RayError):
                failed = failed or _raised(calls[place], result)
                waiting.clear()
            else:
                yield place, result
        if failed:
            raise failed


def _next_of(waiting: deque[tuple[int, Call]], submitted: int) -> Iterator[tuple[int, Call]]:
    """Take the calls to submit now, of those that are `waiting`; so many are `submitted`, and not done."""
    nodes = whole_nodes() if waiting else []
    while waiting:
        _, call = waiting[0]
        if submitted and submitted >= _SUBMITTED * room(nodes, Want(call.cpus, call.gpus)):
            return
        submitted += 1
        yield waiting.popleft()


def _first_done(submitted: dict[Any, int]) -> tuple[int, Any]:
    """Wait for a task and return its place, and its result or an error of Ray; nothing refers to it any more."""
    (handle,), _ = ray.wait(list(submitted))
    place = submitted.pop(handle)
    try:
        return place, ray.get(handle)
    except RayError as error:
        return place, error


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

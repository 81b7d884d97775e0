"""Independent calls of one function over a Ray cluster: as many at once as its resources allow, results in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import ray
from ray.exceptions import RayTaskError

from fedactors.fleet.ray.ray_start import connected

T = TypeVar("T")


def scatter(
    function: Callable[..., T], calls: Sequence[tuple[Any, ...]], address: str | None, *, cpus: float, gpus: float
) -> Iterator[T]:
    """Yield `function(*arguments)` for each of `calls`, computed by tasks of the cluster at `address`.

    A task whose node dies is given to another. An exception of the function is raised here again. Raises ClusterError
    if there is no such cluster.
    """
    if not calls:
        return
    with connected(address):
        task: Any = ray.remote(num_cpus=cpus, num_gpus=gpus, max_retries=2)(_call)
        handles = [task.remote(function, arguments) for arguments in calls]
        for handle in handles:
            try:
                result: T = ray.get(handle)
            except RayTaskError as error:
                raise error.cause from None
            yield result


def _call(function: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    return function(*arguments)

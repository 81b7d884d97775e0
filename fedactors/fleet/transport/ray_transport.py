"""Calls of actors by Ray's own calls; values are in its object store, once on each node that needs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, cast

import ray

from fedactors.fleet.base import Handle

T = TypeVar("T")


class RayTransport:
    """Ray's own calls. Handles are Ray's object references."""

    cheap_calls = False

    def open(self) -> None:
        """Do nothing: Ray connects actors."""

    def close(self) -> None:
        """Do nothing: Ray disconnects actors."""

    def put(self, value: T) -> Handle[T]:
        """Put `value` into the object store."""
        return cast("Handle[T]", ray.put(value))

    def constructor_argument(self, arg: object) -> object:
        """Return `arg` itself: handles are Ray's references."""
        return arg

    def connect(self, actor: Any) -> None:
        """Do nothing: every actor can be called."""

    def reconnect(self, actor: Any) -> None:
        """Do nothing: every actor can be called."""

    def disconnect(self, actor: Any) -> None:
        """Do nothing."""

    def call(self, actor: Any, method: str, args: Sequence[object], returns: int) -> list[Handle[Any]]:
        """Queue a call and return references to its results."""
        found = actor.call.options(num_returns=returns).remote(method, *args)
        return [found] if returns == 1 else found or []

    def get(self, handle: Handle[T], seconds: float) -> T:
        """Return the value of a reference. Raises GetTimeoutError, or what else Ray raises."""
        return cast("T", ray.get(cast("Any", handle), timeout=seconds))

"""The seam between a fleet on Ray and the way in which calls and values travel to its actors.

Ray starts, places and restarts the processes. A transport calls them: `RayTransport` by Ray's own calls, on any
cluster; `SocketTransport` over sockets, on one machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from fedactors.fleet.base import Handle

T = TypeVar("T")


class Transport(Protocol):
    """Calls the actors of one fleet; actors are Ray's handles of `ActorProcess`."""

    cheap_calls: bool  # whether a call costs so little that a further one, to prepare a trip, is worth it

    def open(self) -> None:
        """Begin; Ray is running. Raises ClusterError if this machine does not allow it."""
        ...

    def close(self) -> None:
        """End all connections and remove what `open` made. May be called without `open`, and twice."""
        ...

    def put(self, value: T) -> Handle[T]:
        """Make `value` an argument for calls to any number of actors."""
        ...

    def constructor_argument(self, arg: object) -> object:
        """Return `arg`, or Ray's reference to its value if it is a handle that `put` returned."""
        ...

    def connect(self, actor: Any) -> None:
        """Make an actor callable that has a worker, or gets one by an earlier call; do nothing if it is."""
        ...

    def reconnect(self, actor: Any) -> None:
        """Make an actor callable whose process is a new one."""
        ...

    def disconnect(self, actor: Any) -> None:
        """Note that an actor has ended."""
        ...

    def call(self, actor: Any, method: str, args: Sequence[object], returns: int) -> list[Handle[Any]]:
        """Call a method of an actor's worker with values and handles; return `returns` handles, without waiting.

        With `returns` 0 nothing comes back, no fault either.
        """
        ...

    def get(self, handle: Handle[T], seconds: float) -> T:
        """Wait for a result and return it.

        Raises Ray's GetTimeoutError if it takes longer than `seconds`, Fault if the call failed, another RayError if
        Ray has the cause.
        """
        ...

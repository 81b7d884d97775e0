"""The narrow place where algorithms meet machinery: start actors, call them, wait for handles."""

from __future__ import annotations

import os
import traceback
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Protocol

from fedactors.fleet.profiling import noted

Handle = Any  # stands for a result that need not exist yet; may be passed to further calls
Actor = Any


class WorkerClass(Protocol):
    """What an actor is to be: a class, or something that knows where one is."""

    @property
    def __name__(self) -> str: ...

    def __call__(self, *args: Any) -> Any:
        """Return an object of it."""
        ...


class Fault(Exception):  # noqa: N818 - a fault is real, an error may be the user's
    """Something really went wrong on the far side: an exception, a dead actor, lost memory.

    Args:
        cause: the class of what happened ("ChunkError", "ActorDiedError").
        text: what is known about it.
        died: whether an actor died, rather than raised.

    """

    def __init__(self, cause: str, text: str, died: bool = False) -> None:
        super().__init__(cause, text, died)
        self.cause, self.text, self.died = cause, text, died

    def __str__(self) -> str:
        return f"{self.cause}: {self.text}"


class CallError(Exception):
    """A role raised; the message says which, where, and carries the traceback of the worker."""


def perform(role: Any, method: str, args: Sequence[Any]) -> Any:
    """Call a role where it lives. Raises CallError, with process and traceback, if it raises anything."""
    try:
        with noted(role, method):
            return getattr(role, method)(*args)
    except CallError:
        raise
    except Exception:
        where = f"{type(role).__name__}.{method}, process {os.getpid()}"
        raise CallError(f"{where}:\n{traceback.format_exc()}") from None


class Fleet(Protocol):
    """What `LocalFleet` and `RayFleet` can do."""

    device: str  # of client hosts
    hosts: int
    ahead: int  # rounds that are worth having in flight
    near: bool  # whether calls cost next to nothing, so that a host may be asked to prepare what it is to learn
    server_gpus: float
    central_gpus: float
    placement: str  # who is where, as text; nothing where there is no choice

    @property
    def nodes(self) -> int:
        """Machines that are paid for."""
        ...

    def put(self, value: object) -> Handle:
        """Make `value` available to all actors; returns at once."""
        ...

    def start(self, role: WorkerClass, *args: Any, host: bool = False, gpus: float = 0.0, kind: int = 0) -> Actor:
        """Start an actor of `role`; a client `host` of some `kind` gets its cores and GPUs, another one `gpus`."""
        ...

    def more(self) -> list[int]:
        """Return the kinds of further client hosts for which there is room now."""
        ...

    def kind_of(self, client: int) -> int:
        """Return the kind of host that a client is to be computed on."""
        ...

    def stop(self, actor: Actor) -> None:
        """End an actor that is not needed any more."""
        ...

    def call(self, actor: Actor, method: str, *args: Any, returns: int = 1) -> Any:
        """Ask an actor; return one handle, or a list of `returns` handles. Never waits for a result."""
        ...

    def get(self, handle: Handle) -> Any:
        """Wait for a result. Raises Fault if it cannot be had."""
        ...

    def revive(self, actor: Actor) -> bool:
        """Wait until an actor answers again that may have died; return whether it died. Raises Fault if it does not."""
        ...

    def close(self) -> None:
        """End all actors and whatever was started for them."""
        ...

    def __enter__(self) -> Fleet: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

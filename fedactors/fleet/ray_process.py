"""What Ray runs as an actor: a process around a role."""

from __future__ import annotations

import os
import threading
from typing import Any

import ray

from fedactors.fleet.fleet import RoleClass, perform

LOOKS = "looks"  # calls that are answered while others are worked on


class RestartedError(Exception):
    """An actor that Ray has restarted does not know its role yet."""


class RoleProcess:
    """The process around a role. It starts empty and is told its role by a call, after a restart once more."""

    def __init__(self) -> None:
        self._role: Any = None
        self._told = threading.Event()

    def warm(self) -> None:
        """Import what every role needs, while others still load data."""
        import fedactors.fleet.roles  # noqa: F401

    @ray.method(concurrency_group=LOOKS)
    def where(self) -> tuple[str, int]:
        """Return node and process."""
        return ray.get_runtime_context().get_node_id(), os.getpid()

    @ray.method(concurrency_group=LOOKS)
    def about(self) -> dict[str, object]:
        """Return what the role says of itself, once it is known. Raises RestartedError if it was, and is no more."""
        if not ray.get_runtime_context().was_current_actor_reconstructed:
            self._told.wait()
        about: dict[str, object] = self._known().about()
        return about

    def become(self, role: RoleClass, args: list[Any]) -> None:
        """Take on a role, made of `args`, which may be references."""
        try:
            self._role = role(*(ray.get(arg) if isinstance(arg, ray.ObjectRef) else arg for arg in args))
        finally:
            self._told.set()

    def call(self, method: str, *args: Any) -> Any:
        """Call the role. Raises RestartedError if there is none, CallError if it raises."""
        return perform(self._known(), method, args)

    def serve(self, path: str, line: int) -> None:
        """Answer what is asked of the role on a line, until that ends. Raises RestartedError if there is no role."""
        from fedactors.fleet.near_calls import answer

        role = self._known()
        answer(path, line, lambda method, args: perform(role, method, args))

    def _known(self) -> Any:
        if self._role is None:
            raise RestartedError
        return self._role

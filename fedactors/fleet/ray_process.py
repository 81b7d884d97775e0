"""What Ray runs as an actor: a process around a role."""

from __future__ import annotations

import os
from typing import Any

import ray

from fedactors.fleet.fleet import perform


class RestartedError(Exception):
    """An actor that Ray has restarted does not know its role yet."""


class RoleProcess:
    """The process around a role. It starts empty and is told its role by a call, after a restart once more."""

    _role: Any = None

    def warm(self) -> None:
        """Import what every role needs, while others still load data."""
        import fedactors.fleet.roles  # noqa: F401

    def where(self) -> tuple[str, int]:
        """Return node and process."""
        return ray.get_runtime_context().get_node_id(), os.getpid()

    def become(self, role: type, args: list[Any]) -> None:
        """Take on a role, made of `args`, which may be references."""
        self._role = role(*(ray.get(arg) if isinstance(arg, ray.ObjectRef) else arg for arg in args))

    def call(self, method: str, *args: Any) -> Any:
        """Call the role. Raises RestartedError if there is none, CallError if it raises."""
        if self._role is None:
            raise RestartedError
        return perform(self._role, method, args)

"""What Ray runs as an actor: a process around a role."""

from __future__ import annotations

import gc
import os
from typing import Any

import ray

from fedactors.fleet.base import WorkerClass, perform

LOOKS = "looks"  # calls that are answered while others are worked on


class RestartedError(Exception):
    """An actor that Ray has restarted does not know its role yet."""


class UntoldError(Exception):
    """An actor has not been told its role yet, or could not take it on."""


class ActorProcess:
    """The process around a role. It starts empty and is told its role by a call, after a restart once more."""

    def __init__(self) -> None:
        from fedactors.fleet.transport.memory_files import keep_freed

        keep_freed()
        self._role: Any = None

    def warm(self) -> None:
        """Import what every role needs, while others still load data.

        Garbage is not collected meanwhile, which takes a tenth of the time, nor looked for later in what is imported.
        """
        gc.disable()
        try:
            import fedactors.fleet.workers  # noqa: F401
        finally:
            gc.freeze()
            gc.enable()

    @ray.method(concurrency_group=LOOKS)
    def where(self) -> tuple[str, int]:
        """Return node and process."""
        return ray.get_runtime_context().get_node_id(), os.getpid()

    @ray.method(concurrency_group=LOOKS)
    def about(self) -> dict[str, object]:
        """Return what the role says of itself. Raises UntoldError if there is none, RestartedError if it was lost."""
        if self._role is None and not ray.get_runtime_context().was_current_actor_reconstructed:
            raise UntoldError
        about: dict[str, object] = self._known().about()
        return about

    def become(self, role: WorkerClass, args: list[Any]) -> None:
        """Take on a role, made of `args`, which may be references."""
        self._role = role(*(ray.get(arg) if isinstance(arg, ray.ObjectRef) else arg for arg in args))

    def call(self, method: str, *args: Any) -> Any:
        """Call the role. Raises RestartedError if there is none, CallError if it raises."""
        return perform(self._known(), method, args)

    def serve(self, path: str, line: int) -> None:
        """Answer what is asked of the role on a line, until that ends. Raises RestartedError if there is no role."""
        from fedactors.fleet.transport.socket_server import answer

        role = self._known()
        answer(path, line, lambda method, args: perform(role, method, args))

    def _known(self) -> Any:
        if self._role is None:
            raise RestartedError
        return self._role

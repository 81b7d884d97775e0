"""What Ray runs as an actor: a process around a worker."""

from __future__ import annotations

import gc
import os
from typing import Any

import ray

from fedactors.bits import Bits, processor_kind
from fedactors.fleet import freed_memory
from fedactors.fleet.base import WorkerClass, perform
from fedactors.own_code.user_modules import Source, adopt

OBSERVATION = "observation"  # the group of calls that are answered while others are worked on


class RestartedError(Exception):
    """Ray has restarted an actor, which does not have its worker yet."""


class NoWorkerError(Exception):
    """An actor does not have its worker yet, or could not make it."""


class ActorProcess:
    """The process around a worker. It starts without one; a call makes it, and another one after a restart."""

    def __init__(self) -> None:
        freed_memory.keep()
        self._worker: Any = None

    def warm(self) -> None:
        """Import what every worker needs, while the driver still loads data.

        Garbage is not collected during the imports, which saves a tenth of their time, and what is imported is left
        out of later collections.
        """
        gc.disable()
        try:
            import fedactors.fleet.workers  # noqa: F401
        finally:
            gc.freeze()
            gc.enable()

    @ray.method(concurrency_group=OBSERVATION)
    def where(self) -> tuple[str, int]:
        """Return node and process."""
        return ray.get_runtime_context().get_node_id(), os.getpid()

    @ray.method(concurrency_group=OBSERVATION)
    def processor(self, bits: Bits) -> str:
        """Return what such bits depend on of the processor here."""
        return processor_kind(bits)

    @ray.method(concurrency_group=OBSERVATION)
    def about(self) -> dict[str, object]:
        """Return the worker's description. Raises NoWorkerError if there is none yet, RestartedError if it was lost."""
        if self._worker is None and not ray.get_runtime_context().was_current_actor_reconstructed:
            raise NoWorkerError
        about: dict[str, object] = self._present().about()
        return about

    def adopt(self, sources: list[Source]) -> None:
        """Make files of the user importable here, before anything arrives that is made of their classes."""
        adopt(sources)

    def make_worker(self, worker: WorkerClass, args: list[Any]) -> None:
        """Make the worker from `args`, which may be references."""
        self._worker = worker(*(ray.get(arg) if isinstance(arg, ray.ObjectRef) else arg for arg in args))

    def call(self, method: str, *args: Any) -> Any:
        """Call the worker. Raises RestartedError if there is none, CallError if it raises."""
        return perform(self._present(), method, args)

    def serve(self, path: str, channel: int, secret: bytes) -> None:
        """Answer calls on a channel until it ends. Raises RestartedError if there is no worker, ChannelError."""
        from fedactors.fleet.transport.socket_server import answer

        worker = self._present()
        answer(path, channel, secret, lambda method, args: perform(worker, method, args))

    def _present(self) -> Any:
        if self._worker is None:
            raise RestartedError
        return self._worker

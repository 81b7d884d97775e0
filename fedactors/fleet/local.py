"""The fleet in this process: for debugging, unit tests and small scenarios. Calls run at once, in order."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from types import TracebackType
from typing import Any, TypeVar, cast

import torch

from fedactors.bits import Bits, one_thread, processor_kind
from fedactors.fleet.base import Actor, CallError, Fault, Handle, Role, WorkerClass, perform

T = TypeVar("T")


class _Failed:
    """Takes the place of the result of a call that raised; a call with it as an argument fails with the same fault."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault


class LocalFleet:
    """Actors are objects, handles are values. Same bits as on a cluster."""

    hosts = nodes = 1
    max_in_flight = 1  # a round is done when its last call returns
    cheap_calls = False  # no host ever waits here, so preparing a trip would gain nothing
    placement = ""

    def __init__(self, device: str = "cpu", server_gpus: float = 0.0, central_gpus: float = 0.0) -> None:
        self.device = device
        self.server_gpus = server_gpus
        self.central_gpus = central_gpus
        self._started = False
        self._threads = torch.get_num_threads()
        self._restored = ExitStack()
        self._restored.enter_context(one_thread())
        self._restored.enter_context(warnings.catch_warnings())  # workers add filters

    def processors(self, bits: Bits) -> list[str]:
        """Return the kind of this machine's processor."""
        return [processor_kind(bits)]

    def put(self, value: T) -> Handle[T]:
        """Return `value` itself."""
        return cast("Handle[T]", value)

    def start(self, worker: WorkerClass, *args: Any, role: Role, kind: int = 0) -> Actor:
        """Return the object."""
        self._started = self._started or role == "client host"
        return Actor(worker(*args))

    def startable_hosts(self) -> list[int]:
        """Return one host, of the only kind, until it is started."""
        return [] if self._started else [0]

    def kind_of(self, client: int) -> int:
        """Return the only kind."""
        return 0

    def stop(self, actor: Actor) -> None:
        """Do nothing: an object is freed with its last reference."""

    def call(self, actor: Actor, method: str, *args: object) -> Handle[Any]:
        """Run the method now; a fault is kept for `get`."""
        return cast("Handle[Any]", self._result(actor, method, args))

    def call_several(self, actor: Actor, method: str, *args: object, returns: int) -> list[Handle[Any]]:
        """Run the method now; a fault is kept for `get`, in the place of each result."""
        result = self._result(actor, method, args)
        alike = isinstance(result, _Failed) or not returns
        return [cast("Handle[Any]", result)] * returns if alike else list(result)

    def _result(self, actor: Actor, method: str, args: tuple[object, ...]) -> Any:
        for arg in args:
            if isinstance(arg, _Failed):
                return arg
        try:
            return perform(actor, method, args)
        except CallError as error:
            return _Failed(Fault(type(error).__name__, str(error)))

    def get(self, handle: Handle[T]) -> T:
        """Return the value. Raises Fault if the call that made it failed."""
        value: object = handle
        if isinstance(value, _Failed):
            raise value.fault
        return cast("T", value)

    def revive(self, actor: Actor) -> bool:
        """Return False: an object does not die."""
        return False

    def messages(self) -> list[str]:
        """Return nothing: there is no machinery."""
        return []

    def close(self) -> None:
        """Restore the numbers of threads and Python's warning filters."""
        torch.set_num_threads(self._threads)
        self._restored.close()

    def __enter__(self) -> LocalFleet:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

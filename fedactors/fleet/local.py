"""The fleet in this process: for debugging, unit tests and small scenarios. Calls run at once, in order."""

from __future__ import annotations

import warnings
from types import TracebackType
from typing import Any

import torch

from fedactors.fleet.base import CallError, Fault, WorkerClass, perform


class _Failed:
    """Stands in for the result of a call that raised; whoever is given it fails with the same cause."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault


class LocalFleet:
    """Actors are objects, handles are values. Same bits as on a cluster."""

    hosts = nodes = 1
    ahead = 1  # what was handed out is done
    near = False  # nobody waits for anything here
    placement = ""

    def __init__(self, device: str = "cpu", server_gpus: float = 0.0, central_gpus: float = 0.0) -> None:
        self.device, self.server_gpus, self.central_gpus = device, server_gpus, central_gpus
        self._started = False
        self._threads, self._warnings = torch.get_num_threads(), warnings.catch_warnings()
        self._warnings.__enter__()  # roles add filters

    def put(self, value: object) -> object:
        """Return `value` itself."""
        return value

    def start(self, role: WorkerClass, *args: Any, host: bool = False, gpus: float = 0.0, kind: int = 0) -> Any:
        """Return the object."""
        self._started = self._started or host
        return role(*args)

    def more(self) -> list[int]:
        """Return that there is one host, of the only kind."""
        return [] if self._started else [0]

    def kind_of(self, client: int) -> int:
        """Return the only kind."""
        return 0

    def stop(self, actor: Any) -> None:
        """Do nothing: an object is gone when nobody holds it."""

    def call(self, actor: Any, method: str, *args: Any, returns: int = 1) -> Any:
        """Run the method now; a failure is kept for `get`."""
        failed = next((arg for arg in args if isinstance(arg, _Failed)), None)
        if failed is None:
            try:
                return perform(actor, method, args)
            except CallError as error:
                failed = _Failed(Fault(type(error).__name__, str(error)))
        return failed if returns == 1 else [failed] * returns

    def get(self, handle: Any) -> Any:
        """Return the value. Raises Fault if the call that made it failed."""
        if isinstance(handle, _Failed):
            raise handle.fault
        return handle

    def revive(self, actor: Any) -> bool:
        """Return that it had not died: an object does not."""
        return False

    def close(self) -> None:
        """Give torch its threads and Python its warnings back."""
        torch.set_num_threads(self._threads)
        self._warnings.__exit__(None, None, None)

    def __enter__(self) -> LocalFleet:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

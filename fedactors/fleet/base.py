"""The seam between algorithms and machinery: start actors, call their methods, wait for results.

Fleet      starts and stops actors, sends calls, waits for results; `LocalFleet` and `RayFleet`
Actor      one running worker; only its fleet can look inside
Handle[T]  a result of type T that need not exist yet; it may be an argument of further calls
Fault      an exception, a dead actor or lost memory on the far side
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Generic, Literal, NewType, Protocol, TypeVar

from fedactors.bits import Bits
from fedactors.fleet.profiling import noted
from fedactors.own_code.user_errors import told

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Actor = NewType("Actor", object)
Role = Literal["client host", "server", "central learner", "evaluator"]


def device_of(gpus: float) -> str:
    """Return the device type of an actor that has so many GPUs."""
    return "cuda" if gpus else "cpu"


class Handle(Generic[T_co]):
    """The type of a result that need not exist yet.

    Only the type checker uses this class. What a fleet returns under this type is an object of its own: the value
    itself, an object reference of Ray, or the reply of a socket.
    """


class WorkerClass(Protocol):
    """The class of a worker, or a callable that imports the class when it makes an object of it."""

    @property
    def __name__(self) -> str: ...

    def __call__(self, *args: Any) -> Any:
        """Return an object of the class."""
        ...


class Fault(Exception):  # noqa: N818 - a fault is of the machinery, an error may be the user's
    """A call failed on the far side: an exception, a dead actor, lost memory.

    Args:
        cause: the class of the failure ("ChunkError", "ActorDiedError").
        text: a description of the failure.
        died: whether an actor died; False if it raised an exception.
        details: all that is known, for the log.

    """

    def __init__(self, cause: str, text: str, died: bool = False, details: str = "") -> None:
        super().__init__(cause, text, died, details)
        self.cause = cause
        self.text = text
        self.died = died
        self.details = details

    def __str__(self) -> str:
        return f"{self.cause}: {self.text}"


class CallError(Exception):
    """A worker raised an exception; the message names the method and process and carries the traceback."""


class ChunkError(CallError):
    """A chunk raised; the message names the clients, too."""


class UserCallError(CallError):
    """Code of the user raised in a worker; the message begins with the user's lines."""


def perform(worker: Any, method: str, args: Sequence[Any]) -> Any:
    """Call a method of a worker in this process.

    Raises UserCallError if code of the user raises, else CallError, with process and traceback, if anything does.
    """
    try:
        with noted(worker, method):
            return getattr(worker, method)(*args)
    except CallError:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, SystemExit) and not told(error):
            raise  # of Ray, which ends an actor so
        where = f"{type(worker).__name__}.{method}, process {os.getpid()}"
        if lines := told(error):
            raise UserCallError(f"{lines}\nin {where}") from None
        raise CallError(f"{where}:\n{traceback.format_exc()}") from None


class Fleet(Protocol):
    """What `LocalFleet` and `RayFleet` can do. Calls go through the typed stubs in `stubs`."""

    device: str  # of client hosts
    hosts: int
    max_in_flight: int  # more rounds in flight than this bring no more speed
    cheap_calls: bool  # whether a call costs so little that a further one, to prepare a trip, is worth it
    server_gpus: float
    central_gpus: float
    placement: str  # a table of which actor is on which node; empty where there is no choice

    @property
    def nodes(self) -> int:
        """Machines that are paid for."""
        ...

    def processors(self, bits: Bits) -> list[str]:
        """Return the kinds of processors under the actors so far, as far as such bits depend on them.

        They are sorted, each once. The first call waits for the nodes of the first actors, each for ten seconds at
        most; later calls add nodes that were new to an actor since, once they have answered.
        """
        ...

    def put(self, value: T) -> Handle[T]:
        """Make `value` available to all actors; does not wait."""
        ...

    def start(self, worker: WorkerClass, *args: Any, role: Role, kind: int = 0) -> Actor:
        """Start an actor with an object `worker(*args)`; handles among `args` are replaced by their values.

        It gets the cores and GPUs of its `role`, and a client host those of its `kind`.
        """
        ...

    def startable_hosts(self) -> list[int]:
        """Return the kind of each client host that can be started now."""
        ...

    def kind_of(self, client: int) -> int:
        """Return the kind of host that computes for a client."""
        ...

    def stop(self, actor: Actor) -> None:
        """End an actor that is not needed any more."""
        ...

    def call(self, actor: Actor, method: str, *args: object) -> Handle[Any]:
        """Call a method of an actor and return a handle of its result; does not wait."""
        ...

    def call_several(self, actor: Actor, method: str, *args: object, returns: int) -> list[Handle[Any]]:
        """Call a method that returns a tuple of `returns` values, two or more, and return a handle of each.

        With `returns` 0 nothing comes back, no fault either.
        """
        ...

    def get(self, handle: Handle[T]) -> T:
        """Wait for a result and return it. Raises Fault if the call failed or its result is lost."""
        ...

    def revive(self, actor: Actor) -> bool:
        """Wait until an actor that may have died can be called again; return whether it had died.

        Raises Fault if it does not come back.
        """
        ...

    def messages(self) -> list[str]:
        """Return what the machinery has said since the last call, for the log of the run."""
        ...

    def close(self) -> None:
        """End all actors and everything that was started for them."""
        ...

    def __enter__(self) -> Fleet: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

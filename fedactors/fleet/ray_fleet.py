"""The fleet on Ray: actors are processes on this machine or on a cluster, handles are object references.

A Ray that is started here listens on the loopback address, has no dashboard, and is gone after the run. Actors restart
when they die, but their tasks are not retried by Ray: what was lost is found out, written down and given out anew by
the pipeline, so that every fault is seen.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import TracebackType
from typing import Any, cast

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # the pipeline handles them, and says so

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayError, RayTaskError

from fedactors.errors import ClusterError
from fedactors.fleet.fleet import Fault, perform

_REVIVE_SECONDS = 60.0
_CONNECT_SECONDS = 10.0
_FREE_SECONDS = 20.0  # what a run before this one has held is free again by then


class _RestartedError(Exception):
    """An actor that Ray has restarted does not know its role yet."""


class _Actor:
    """The process around a role. It starts empty and is told its role by a call, after a restart once more."""

    _role: Any = None

    def warm(self) -> None:
        """Import what every role needs, while others still load data."""
        import fedactors.fleet.roles  # noqa: F401

    def become(self, role: type, args: list[Any]) -> None:
        self._role = role(*(ray.get(arg) if isinstance(arg, ray.ObjectRef) else arg for arg in args))

    def call(self, method: str, *args: Any) -> Any:
        if self._role is None:
            raise _RestartedError
        return perform(self._role, method, args)


class RayFleet:
    """Actors on a Ray cluster.

    Args:
        hosts: client hosts.
        cpus: cores of one host.
        gpus: GPUs of one host; more than 0 puts its work there.
        address: an existing cluster; None starts one on this machine.
        server_gpus: GPUs of the server.
        central_gpus: GPUs of the central learner, if the algorithm has one.
        store: bytes of the object store of a cluster that is started here; None leaves it to Ray.

    Raises ClusterError if the cluster cannot be reached or is too small.

    """

    def __init__(
        self,
        hosts: int = 1,
        cpus: float = 1.0,
        gpus: float = 0.0,
        address: str | None = None,
        *,
        server_gpus: float = 0.0,
        central_gpus: float = 0.0,
        store: int | None = None,
    ) -> None:
        self.hosts, self._cpus, self._gpus = hosts, cpus, gpus
        self.server_gpus, self.central_gpus = server_gpus, central_gpus
        self.device = "cuda" if gpus > 0 else "cpu"
        self._actors: dict[Any, tuple[type, list[Any]]] = {}  # each with its role and what that is made of
        self._idle: dict[bool, list[Any]] = {True: [], False: []}  # started ahead: client hosts, and others
        self._pause = threading.Event()  # never set: a wait that signals can end
        with _same_handlers():
            self._joined = _connect(address, max(os.cpu_count() or 1, int(-(-hosts * cpus // 1))), store)
        try:
            self._require("CPU", hosts * cpus)
            self._require("GPU", hosts * gpus + server_gpus + central_gpus)
        except ClusterError:
            self.close()
            raise
        # processes take seconds to start: begin before the data are loaded; a server with a GPU is started apart
        for host in [True] * hosts + [False] * (1 if server_gpus else 2):
            self._idle[host].append(self._spawn(host))

    @property
    def nodes(self) -> int:
        """Machines of the cluster that are up."""
        return sum(node["Alive"] for node in cast(Any, ray).nodes())

    def put(self, value: object) -> Any:
        """Put `value` into the object store once."""
        return ray.put(value)

    def start(self, role: type, *args: Any, host: bool = False, gpus: float = 0.0) -> Any:
        """Start an actor; those that are not client hosts share the cores the hosts leave. `args` are handles."""
        actor = self._idle[host].pop() if self._idle[host] and not gpus else self._spawn(host, gpus)
        actor.become.remote(role, list(args))
        self._actors[actor] = (role, list(args))
        return actor

    def _spawn(self, host: bool, gpus: float = 0.0) -> Any:
        cpus, gpus = (self._cpus, self._gpus) if host else (0, gpus)
        options = {"num_cpus": cpus, "num_gpus": gpus, "max_restarts": -1, "max_task_retries": 0}
        actor: Any = ray.remote(_Actor).options(**options).remote()
        actor.warm.remote()
        return actor

    def call(self, actor: Any, method: str, *args: Any, returns: int = 1) -> Any:
        """Queue a call and return references to its results."""
        return actor.call.options(num_returns=returns).remote(method, *args)

    def get(self, handle: Any) -> Any:
        """Wait for a reference. Raises Fault if what made it failed or was lost."""
        try:
            return ray.get(handle)
        except RayTaskError as error:
            cause = error.cause
            while isinstance(cause, RayTaskError) and cause.cause is not None:  # handed on from task to task
                cause = cause.cause
            died = isinstance(cause, (RayError, _RestartedError)) and not isinstance(cause, RayTaskError)
            raise Fault(type(cause).__name__, str(cause), died) from None
        except RayActorError as error:
            raise Fault(type(error).__name__, str(error).splitlines()[0], died=True) from None
        except RayError as error:
            raise Fault(type(error).__name__, str(error), died=True) from None

    def revive(self, actor: Any) -> None:
        """Wait until Ray has restarted the actor, and tell it its role. Raises Fault if that takes too long."""
        limit = time.monotonic() + _REVIVE_SECONDS
        while True:
            try:
                ray.get(actor.call.remote("about"), timeout=_REVIVE_SECONDS)
                return
            except _RestartedError:
                self.get(actor.become.remote(*self._actors[actor]))
            except GetTimeoutError:
                return  # alive, and busy with what was asked before
            except RayError as error:
                if time.monotonic() > limit:
                    raise Fault(type(error).__name__, "an actor did not come back", died=True) from None
                self._pause.wait(0.1)

    def close(self) -> None:
        """End our actors, and Ray itself if it was started here; leave a cluster that was joined."""
        actors = [*self._actors, *self._idle[True], *self._idle[False]]
        self._actors, self._idle = {}, {True: [], False: []}
        for actor in actors if ray.is_initialized() else ():
            ray.kill(actor)
        if not self._joined:
            ray.shutdown()

    def _require(self, resource: str, wanted: float) -> None:
        """Raise ClusterError if the cluster lacks a resource, or others hold it: actors would wait in silence."""
        there = cast(Any, ray).cluster_resources().get(resource, 0.0)
        limit = time.monotonic() + _FREE_SECONDS
        while wanted > (free := cast(Any, ray).available_resources().get(resource, 0.0)):
            if wanted > there or time.monotonic() > limit:
                raise ClusterError(
                    f"cluster: {self.hosts} client hosts want {wanted:g} {resource}, the cluster has {there:g},"
                    f" {free:g} of them free (accepted: fewer actors, or less cpus_per_actor and gpus_per_actor)"
                )
            self._pause.wait(0.2)

    def __enter__(self) -> RayFleet:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def connected(address: str | None, cores: int | None = None) -> Iterator[None]:
    """Be connected to a cluster while the context lasts. Raises ClusterError if there is none at `address`."""
    with _same_handlers():
        joined = _connect(address, cores or os.cpu_count() or 1, None)
    try:
        yield
    finally:
        if not joined:
            ray.shutdown()


def _connect(address: str | None, cores: int, store: int | None) -> bool:
    """Connect to Ray; return whether this process was connected before, and must stay so.

    Raises ClusterError if there is no cluster at `address`, or this process is connected to another one.
    """
    if ray.is_initialized():
        there = ray.get_runtime_context().gcs_address
        if address not in (None, "auto", there):
            raise ClusterError(f"cluster.address: this process is connected to {there} already (found {address})")
        return True
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False, "configure_logging": True}
    if address is None:
        with _loopback():
            # "local" never joins a cluster that happens to be around
            ray.init("local", num_cpus=cores, include_dashboard=False, object_store_memory=store, **quiet)
        return False
    host = _knock(address)
    try:
        with _loopback() if host in ("127.0.0.1", "localhost", "::1") else nullcontext():
            ray.init(address, **quiet)
    except (ConnectionError, ValueError, RuntimeError, GetTimeoutError) as error:
        raise ClusterError(f"no Ray cluster at {address}: {' '.join(str(error).split())[:500]}") from None
    return False


@contextmanager
def _same_handlers() -> Iterator[None]:
    """Undo what ray.init does to SIGTERM: it would leave without closing the books."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    except SystemExit:  # Ray's own handler, which stands while it starts
        raise KeyboardInterrupt from None
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


@contextmanager
def _loopback() -> Iterator[None]:
    """Keep every port of a Ray that starts now to this machine.

    `_node_ip_address="127.0.0.1"` would not: Ray turns it into the machine's outer address. What does is the switch by
    which Ray stays local on desktop systems; it is read from the environment when ray is imported.
    """
    switch, constants = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", ray._private.ray_constants
    before = os.environ.get(switch), constants.ENABLE_RAY_CLUSTER
    os.environ[switch], constants.ENABLE_RAY_CLUSTER = "0", False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before[1]
        if before[0] is None:
            del os.environ[switch]
        else:
            os.environ[switch] = before[0]


def _knock(address: str) -> str:
    """Return the host of an address. Raises ClusterError if nobody listens there: Ray would try for many minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        return ""  # "auto", or something for Ray to judge
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(f"no Ray cluster at {address}: {error}") from None
    return host

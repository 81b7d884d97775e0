"""The fleet on Ray: actors are processes on this machine or on a cluster, handles are object references.

A Ray that is started here listens on the loopback address, has no dashboard, and is gone after the run. Actors restart
when they die, but their tasks are not retried by Ray: what was lost is found out, written down and given out anew by
the pipeline, so that every fault is seen.
"""

from __future__ import annotations

import os
import threading
import time
from types import TracebackType
from typing import Any, cast

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from fedactors.errors import ClusterError, FleetError
from fedactors.fleet.fleet import Fault, perform
from fedactors.fleet.ray_start import connect, same_handlers
from fedactors.fleet.watchdog import Process, Watchdog, Watched, end, processes

_REVIVE_SECONDS = 60.0
_LOOK_SECONDS = 10.0  # between looks at a fleet that lets us wait
_PATIENCE_SECONDS = 300.0  # for a fleet in which nothing moves
_FREE_SECONDS = 20.0  # what a run before this one has held is free again by then


class _RestartedError(Exception):
    """An actor that Ray has restarted does not know its role yet."""


class _Actor:
    """The process around a role. It starts empty and is told its role by a call, after a restart once more."""

    _role: Any = None

    def warm(self) -> None:
        """Import what every role needs, while others still load data."""
        import fedactors.fleet.roles  # noqa: F401

    def where(self) -> tuple[str, int]:
        """Return node and process."""
        return ray.get_runtime_context().get_node_id(), os.getpid()

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
        self._where: dict[Any, Any] = {}  # where each actor is, as a reference
        self._watchdog, self._ended = Watchdog(_PATIENCE_SECONDS), ""
        self._pause = threading.Event()  # never set: a wait that signals can end
        with same_handlers():
            self._joined = connect(address, max(os.cpu_count() or 1, int(-(-hosts * cpus // 1))), store)
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
        self._where[actor] = actor.where.remote()
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
        """Wait for a reference. Raises Fault if what made it failed or was lost, FleetError if it will never come."""
        self._watchdog.rest()
        while True:
            try:
                return self._get(handle)
            except GetTimeoutError:
                self._look()

    def _get(self, handle: Any) -> Any:
        """Wait for a reference a while. Raises GetTimeoutError if it is not there then, Fault if it will never be."""
        self._refuse_dead()
        try:
            return ray.get(handle, timeout=_LOOK_SECONDS)
        except GetTimeoutError:
            raise
        except RayTaskError as error:
            cause = error.cause
            while isinstance(cause, RayTaskError) and cause.cause is not None:  # handed on from task to task
                cause = cause.cause
            died = isinstance(cause, (RayError, _RestartedError)) and not isinstance(cause, RayTaskError)
            raise self._fault(type(cause).__name__, str(cause), died) from None
        except RayActorError as error:
            raise self._fault(type(error).__name__, str(error).splitlines()[0], died=True) from None
        except RayError as error:
            raise self._fault(type(error).__name__, str(error), died=True) from None

    def _fault(self, cause: str, text: str, died: bool) -> Fault:
        """Return the fault that was met; it may be one that the watchdog has ended."""
        self._refuse_dead()
        ended, self._ended = self._ended, ""
        return (
            Fault("HungActor", f"{ended}; ended by the watchdog", died) if ended and died else Fault(cause, text, died)
        )

    def _refuse_dead(self) -> None:
        """Raise FleetError if a service of the Ray that was started here is gone: nothing would ever answer."""
        if self._joined:
            return
        node = getattr(cast(Any, ray)._private.worker, "_global_node", None)
        dead = [str(kind) for kind, _ in node.dead_processes()] if node is not None else []
        if dead:
            raise FleetError(f"Ray's {' and '.join(dead)} on this machine ended: killed, or out of memory")

    def _look(self) -> None:
        """End actors that were stopped. Raises FleetError, with who is in what state, if nothing moves any more."""
        self._refuse_dead()
        fleet = self._watched()
        for one in self._watchdog.look(fleet):
            self._ended = str(one)
            self._on(one.node, end, one.pid)
        if self._watchdog.stuck():
            lines = "\n".join(f"  {one}" for one in fleet)
            raise FleetError(
                f"nothing has moved for {_PATIENCE_SECONDS:.0f} s; what is waited for is with one of\n{lines}"
            )

    def _watched(self) -> list[Watched]:
        """Return the processes of all actors, as far as they are known."""
        known = {}
        for actor, (role, _) in self._actors.items():
            try:
                known[actor] = (role.__name__, *ray.get(self._where[actor], timeout=0.1))
            except RayError:  # has not begun, or ended
                continue
        states: dict[str, dict[int, Process]] = {}
        for node in {node for _, node, _ in known.values()}:
            states[node] = self._on(node, processes, [pid for _, at, pid in known.values() if at == node]) or {}
        return [Watched(role, node, pid, states[node].get(pid)) for role, node, pid in known.values()]

    def _on(self, node: str, function: Any, argument: Any) -> Any:
        """Return `function(argument)` as a process of `node` sees it; None if that node does not answer."""
        if node == ray.get_runtime_context().get_node_id():
            return function(argument)
        there = NodeAffinitySchedulingStrategy(node, soft=False)
        task: Any = ray.remote(function).options(num_cpus=0, scheduling_strategy=there)
        try:
            return ray.get(task.remote(argument), timeout=_LOOK_SECONDS)
        except RayError:
            return None

    def revive(self, actor: Any) -> None:
        """Wait until Ray has restarted the actor, and tell it its role. Raises Fault if that takes too long."""
        limit = time.monotonic() + _REVIVE_SECONDS
        while True:
            try:
                ray.get(actor.call.remote("about"), timeout=_REVIVE_SECONDS)
                self._where[actor] = actor.where.remote()
                return
            except _RestartedError:
                self.get(actor.become.remote(*self._actors[actor]))
            except GetTimeoutError:
                return  # alive, and busy with what was asked before
            except RayError as error:
                self._refuse_dead()
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

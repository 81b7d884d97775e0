"""The fleet on Ray: actors are processes here or on a cluster, handles object references or, past Ray, replies.

A Ray that is started here listens on the loopback address, has no dashboard, and is gone after the run. Actors restart
when they die, but their tasks are not retried by Ray: what was lost is found out, written down and given out anew by
the pipeline, so that every fault is seen.
"""

from __future__ import annotations

import os
import threading
import time
from bisect import bisect_right
from math import ceil
from types import TracebackType
from typing import Any, cast

import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from fedactors.errors import ClusterError
from fedactors.fleet.base import Fault, WorkerClass
from fedactors.fleet.layout import HostKinds, Want, first_kinds, layout, room, table
from fedactors.fleet.ray import liveness
from fedactors.fleet.ray.actor_process import LOOKS, ActorProcess, RestartedError, UntoldError
from fedactors.fleet.ray.cluster_nodes import FREE_SECONDS, alive, available, require
from fedactors.fleet.ray.ray_start import connect, disconnect, same_handlers, socket_path
from fedactors.fleet.transport.socket_calls import POSSIBLE, Reply
from fedactors.fleet.transport.socket_transport import ObjectRef, ServedError, SocketActors

_REVIVE_SECONDS = 60.0
_GROW_SECONDS = 1.0  # between looks at whether nodes have come
_HOMELESS_SECONDS = 5.0  # that an actor may wait for a node before the fleet goes on without it
_SOME_MEMORY = 1_000_000
_OTHERS = -1


class RayFleet:
    """Actors on a Ray cluster.

    Args:
        hosts: client hosts; None for as many as there is room for.
        cpus: cores of one host.
        gpus: GPUs of one host; more than 0 puts its work there.
        address: an existing cluster; None starts one on this machine.
        server_gpus: GPUs of the server.
        central: what the central learner needs; None if there is none.
        store: bytes of the object store of a cluster that is started here; None leaves it to Ray.
        classes: which hosts need which other resources.
        torch: whether hosts will need it, so that they import it ahead.
        near: whether calls go past a Ray that is started here; results then keep memory and a file descriptor each.

    Raises ClusterError if the cluster cannot be reached or is too small.

    """

    def __init__(
        self,
        hosts: int | None = 1,
        cpus: float = 1.0,
        gpus: float = 0.0,
        address: str | None = None,
        *,
        server_gpus: float = 0.0,
        central: Want | None = None,
        store: int | None = None,
        classes: HostKinds = HostKinds(),  # noqa: B008 - a constant
        torch: bool = True,
        near: bool = False,
    ) -> None:
        self._wanted, self._classes, self._torch = hosts, classes, torch
        self._kinds = [Want(cpus, gpus, found) for found in classes.resources]
        self.server_gpus, self._central = server_gpus, central
        self._central_cpus, self.central_gpus = (central.cpus, central.gpus) if central else (0.0, 0.0)
        self.device = "cuda" if gpus > 0 else "cpu"
        self._actors: dict[Any, tuple[WorkerClass, list[Any]]] = {}  # each with its role and what that is made of
        self._idle: dict[int, list[Any]] = {}  # started ahead, by kind of client host; others under _OTHERS
        self._pause = threading.Event()  # never set: a wait that signals can end
        self._looked, self._seen, self._hosts, self._wants = 0.0, set[str](), 0, dict[Any, Want]()
        with same_handlers():
            self._own = address is None and not ray.is_initialized()
            cores = ceil((hosts or 1) * cpus + self._central_cpus)
            self._joined = connect(address, max(os.cpu_count() or 1, cores), store)
        self._liveness = liveness.Liveness(ours=self._own)
        self.near = near and POSSIBLE and self._own
        self.ahead = 4  # enough to keep every host busy while one round is reduced and the next is made
        self._near: SocketActors | None = None
        self._became: dict[Any, Any] = {}  # references to their taking on what they were told to be
        try:
            self._place()
            self._near = SocketActors(socket_path()) if self.near else None
        except BaseException:
            self.close()
            raise

    def _place(self) -> None:
        """Decide who goes where, and start processes: they take seconds, so begin before the data are loaded."""
        kinds = first_kinds(self._wanted, self._kinds, self._central, available())
        beside = {"server": Want(gpus=self.server_gpus), "evaluator": Want()}
        if self._central:
            beside["central learner"] = self._central
        names, others = list(beside), list(beside.values())
        self.hosts = len(kinds)
        cpus, gpus = (sum(getattr(self._kinds[kind], part) for kind in kinds) for part in ("cpus", "gpus"))
        require("CPU", cpus + self._central_cpus, self.hosts, self._pause)
        require("GPU", gpus + self.server_gpus + self.central_gpus, self.hosts, self._pause)
        limit = time.monotonic() + FREE_SECONDS
        while (found := layout(nodes := available(), [self._kinds[kind] for kind in kinds], others)) is None:
            if time.monotonic() > limit:
                raise ClusterError(
                    f"cluster: {len(kinds)} client hosts do not fit on the nodes that are there, one by one"
                    f" (found {', '.join(map(str, nodes))}; accepted: fewer actors, or less for each)"
                )
            self._pause.wait(0.2)
        places, apart = found
        self._seen, self._several = {node.key for node in nodes}, len(nodes) > 1
        self._beside = dict(zip(names, (nodes[place].key for place in apart), strict=True))
        rows = [("client host", place, self._kinds[kind]) for place, kind in zip(places, kinds, strict=True)]
        self.placement = table(nodes, rows + list(zip(names, apart, others, strict=True)))
        for place, kind in zip(places, kinds, strict=True):
            self._idle.setdefault(kind, []).append(self._spawn(self._kinds[kind], nodes[place].key))
        self._idle[_OTHERS] = [self._spawn(Want(), self._beside["evaluator"])]
        if not self.server_gpus:
            self._idle[_OTHERS].append(self._spawn(Want(), self._beside["server"]))

    @property
    def nodes(self) -> int:
        """Machines of the cluster that are up."""
        return sum(node["Alive"] for node in cast(Any, ray).nodes())

    def kind_of(self, client: int) -> int:
        """Return the kind of host for the population group of `client`."""
        return self._classes.kinds[bisect_right(self._classes.first, client) - 1]

    def more(self) -> list[int]:
        """Return the kinds of hosts that can be started: those planned, and later those that nodes added make room for.

        Looks at most once a second. The cluster may grow and shrink as it likes: where work is done changes no bit.
        """
        if ready := [kind for kind, idle in self._idle.items() if kind != _OTHERS for _ in idle]:
            return ready
        now = time.monotonic()
        if (not self._joined and not self._several) or now < self._looked + _GROW_SECONDS:
            return []
        self._looked = now
        nodes = available()
        came = {node.key for node in nodes} - self._seen
        if not came and self._hosts >= self.hosts:
            return []
        self._seen |= came
        kinds = [kind for kind, want in enumerate(self._kinds) for _ in range(room(nodes, want))]
        return kinds if self._wanted is None else kinds[: max(0, self._wanted - self._hosts)]

    def put(self, value: object) -> Any:
        """Put `value` into the object store once; each node that needs it gets one copy, shared by its processes."""
        return ray.put(value) if self._near is None else ObjectRef(value)

    def start(self, role: WorkerClass, *args: Any, host: bool = False, gpus: float = 0.0, kind: int = 0) -> Any:
        """Start an actor; `args` are handles.

        Client hosts keep their cores, and so does a central learner that is to have some; others share what is left.
        """
        idle = self._idle.get(kind if host else _OTHERS, [])
        name = {"ServerWorker": "server", "CentralHost": "central learner"}.get(role.__name__, "evaluator")
        cpus = self._central_cpus if name == "central learner" else 0.0
        if idle and not gpus and not cpus:
            actor = idle.pop()
        elif host:
            actor = self._spawn(self._kinds[kind], None)
        else:
            actor = self._spawn(Want(cpus, gpus), self._beside[name])
        self._hosts += host
        self._actors[actor] = (role, [arg.reference if isinstance(arg, ObjectRef) else arg for arg in args])
        self._tell(actor)
        return actor

    def _tell(self, actor: Any) -> Any:
        """Tell a process its role, and watch it; return a reference to its becoming what it is told."""
        role, _ = self._actors[actor]
        self._became[actor] = actor.become.remote(*self._actors[actor])
        self._liveness.watch(actor, role.__name__)
        if self._near is not None:
            self._near.renew(actor)
        return self._became[actor]

    def stop(self, actor: Any) -> None:
        """End an actor."""
        self._hosts -= 1
        self._actors.pop(actor)
        self._became.pop(actor)
        self._liveness.forget(actor)
        ray.kill(actor)
        if self._near is not None:
            self._near.forget(actor)

    def _spawn(self, want: Want, node: str | None) -> Any:
        """Start a process on a node, or elsewhere when that is gone."""
        options: dict[str, Any] = {"num_cpus": want.cpus, "num_gpus": want.gpus, "resources": dict(want.resources)}
        if node is not None and self._several:
            options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(node, soft=True)
            options["memory"] = _SOME_MEMORY  # Ray puts an actor that needs nothing anywhere, whatever the strategy
        # Ray keeps notes of 100,000 calls for a dashboard, which one that is started here does not have
        options |= {"max_restarts": -1, "max_task_retries": 0, "enable_task_events": not self._own}
        actor: Any = cast(Any, ray).remote(concurrency_groups={LOOKS: 1})(ActorProcess).options(**options).remote()
        if self._torch or not want.cpus:
            actor.warm.remote()
        self._wants[actor] = want
        return actor

    def call(self, actor: Any, method: str, *args: Any, returns: int = 1) -> Any:
        """Queue a call and return references to its results."""
        if self._near is not None:
            return self._near.call(actor, method, args, returns)
        if returns == 1:
            return actor.call.remote(method, *args)
        return actor.call.options(num_returns=returns).remote(method, *args)

    def get(self, handle: Any) -> Any:
        """Wait for a result. Raises Fault if what made it failed or was lost, FleetError if it will never come."""
        self._liveness.rest()
        while True:
            try:
                return self._get(handle)
            except GetTimeoutError:
                self._liveness.look()

    def _get(self, handle: Any) -> Any:
        """Wait for a result a while. Raises GetTimeoutError if it is not there then, Fault if it will never be."""
        self._liveness.refuse_dead()
        if isinstance(handle, Reply | ObjectRef) and self._near is not None:
            try:
                return self._near.get(handle, liveness.LOOK_SECONDS)
            except ServedError as ended:
                self._get(ended.served)
                raise Fault("ActorDiedError", "its line ended", died=True) from None
        try:
            return ray.get(handle, timeout=liveness.LOOK_SECONDS)
        except GetTimeoutError:
            raise
        except RayError as error:
            raise self._liveness.fault(error) from None

    def revive(self, actor: Any) -> bool:
        """Wait for an actor; return whether Ray had to restart it. Raises Fault if that takes too long."""
        died, began = False, time.monotonic()
        limit = began + _REVIVE_SECONDS
        while True:
            try:
                self._ask(actor)
                if self._near is not None:
                    self._near.listen(actor)
                return died
            except RestartedError:
                died = True
                self.get(self._tell(actor))
            except GetTimeoutError:
                now = time.monotonic()
                if alive(actor):
                    if now > limit:
                        return died  # busy with what was asked before
                elif now > limit or (now > began + _HOMELESS_SECONDS and not room(available(), self._wants[actor])):
                    raise Fault(
                        "ActorUnschedulable", "no node has room for an actor that was lost", died=True
                    ) from None
            except RayError as error:
                self._liveness.refuse_dead()
                if time.monotonic() > limit:
                    raise Fault(type(error).__name__, "an actor did not come back", died=True) from None
                self._pause.wait(0.1)

    def _ask(self, actor: Any) -> None:
        """Wait a while for an actor to say what it is. Raises what Ray raises, Fault if it cannot become that."""
        try:
            ray.get(actor.about.remote(), timeout=_GROW_SECONDS)
        except UntoldError:
            try:
                ray.get(self._became[actor], timeout=_GROW_SECONDS)
            except RayTaskError as error:
                raise self._liveness.fault(error) from None

    def close(self, *, tidy: bool = False) -> None:
        """End our actors, and a Ray that was started here, with its logs if `tidy`; leave a cluster that was joined."""
        actors = [*self._actors, *(actor for idle in self._idle.values() for actor in idle)]
        self._actors, self._idle = {}, {}
        for actor in actors if ray.is_initialized() else ():
            ray.kill(actor)
        if self._near is not None:
            self._near.close()
        if not self._joined:
            disconnect(tidy=tidy and self._own)

    def __enter__(self) -> RayFleet:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(tidy=error is None)

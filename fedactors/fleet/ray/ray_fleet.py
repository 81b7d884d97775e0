"""The fleet on Ray: actors are processes on this machine or on a cluster.

A Ray that is started here listens on the loopback address, has no dashboard, and ends with the run. Actors restart
when they die, but Ray does not repeat their calls: the pipeline reports what was lost and submits it again, so that
every fault is seen. How calls travel is a matter of the transport that the fleet is given.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Mapping
from functools import partial
from math import ceil
from types import TracebackType
from typing import Any, TypeVar, cast

import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError

from fedactors.bits import Bits
from fedactors.fleet.base import Actor, Fault, Handle, Role, WorkerClass, device_of
from fedactors.fleet.layout import HostKinds, Want
from fedactors.fleet.ray import liveness
from fedactors.fleet.ray.actor_process import NoWorkerError, RestartedError
from fedactors.fleet.ray.cluster_nodes import alive
from fedactors.fleet.ray.node_processors import NodeProcessors
from fedactors.fleet.ray.placement import CENTRAL, EVALUATOR, SERVER, place
from fedactors.fleet.ray.processes import ActorProcesses
from fedactors.fleet.ray.ray_messages import take_messages
from fedactors.fleet.ray.ray_start import connect, disconnect, same_handlers
from fedactors.fleet.transport.base import Transport
from fedactors.fleet.transport.ray_transport import RayTransport
from fedactors.job_limits import usable_cores
from fedactors.own_code.user_modules import sources

T = TypeVar("T")
_REVIVE_SECONDS = 60.0
_ANSWER_SECONDS = 1.0
_HOMELESS_SECONDS = 5.0  # that an actor may wait for a node before the fleet continues without it


class RayFleet:
    """Actors on a Ray cluster.

    Args:
        hosts: client hosts; None for as many as there is room for.
        cpus: cores of one host.
        gpus: GPUs of one host; with more than 0 it computes there.
        address: an existing cluster; None starts one on this machine.
        server_gpus: GPUs of the server.
        central: what the central learner needs; None if there is none.
        store: bytes of the object store of a cluster that is started here; None leaves it to Ray.
        classes: which hosts need which other resources.
        torch: whether hosts need it, so that they import it ahead.
        environment: variables of the actors' processes; those of a Ray that is started here have this process's.
        transport: how calls travel; None for Ray's own calls. The fleet opens and closes it.

    Raises ClusterError if the cluster cannot be reached or is too small.

    """

    max_in_flight = 4  # enough to keep every host busy while one round is reduced and the next is made

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
        environment: Mapping[str, str] | None = None,
        transport: Transport | None = None,
    ) -> None:
        self._transport: Transport = transport or RayTransport()
        self._classes = classes
        self._environment = environment or {}
        self._central = central or Want()
        self._others = {SERVER: Want(gpus=server_gpus), EVALUATOR: Want(), CENTRAL: self._central}
        self.cheap_calls = self._transport.cheap_calls
        self.server_gpus = server_gpus
        self.central_gpus = self._central.gpus
        self.device = device_of(gpus)
        self._workers: dict[Any, tuple[WorkerClass, list[Any]]] = {}  # of each actor: its class and arguments
        self._made: dict[Any, Any] = {}  # of each actor: Ray's reference to the making of its worker
        self._host_kinds: dict[Any, int] = {}  # of each client host that runs
        self._pause = threading.Event()  # never set: a wait that signals can end
        self._processes: ActorProcesses | None = None
        with same_handlers():
            self._own = address is None and not ray.is_initialized()
            cores = ceil((hosts or 1) * cpus + self._central.cpus)
            self._joined = connect(address, max(usable_cores(), cores), store)
        self._liveness = liveness.Liveness(ours=self._own)
        try:
            kinds = [Want(cpus, gpus, resources) for resources in classes.resources]
            self._start_processes(hosts, kinds, central, torch=torch)
            self._transport.open()
        except BaseException:
            self.close()
            raise

    def _start_processes(self, hosts: int | None, kinds: list[Want], central: Want | None, *, torch: bool) -> None:
        """Place the actors and start their processes: they take seconds, so this is done before data are loaded."""
        others = {name: want for name, want in self._others.items() if central or name != CENTRAL}
        found = place(hosts, kinds, others, self._pause)
        self.hosts = len(found.kinds)
        self.placement = found.table
        self._node_processors = NodeProcessors(sorted({*found.host_nodes, *found.other_nodes.values()}))
        # Ray notes 100,000 calls for a dashboard, which one that is started here does not have
        self._processes = ActorProcesses(
            found,
            kinds,
            hosts,
            may_grow=self._joined,
            torch=torch,
            task_events=not self._own,
            environment={} if self._own else self._environment,
        )
        self._processes.start_ahead(server=not self.server_gpus)

    @property
    def _started(self) -> ActorProcesses:
        assert self._processes is not None
        return self._processes

    @property
    def nodes(self) -> int:
        """Machines of the cluster that are up."""
        return sum(node["Alive"] for node in cast("Any", ray).nodes())

    def processors(self, bits: Bits) -> list[str]:
        """Return the kinds of processors of the nodes that actors are on, or were, as far as they have answered."""
        return self._node_processors.kinds(bits)

    def kind_of(self, client: int) -> int:
        """Return the kind of host for the population group of `client`."""
        return self._classes.kinds[bisect_right(self._classes.first, client) - 1]

    def startable_hosts(self) -> list[int]:
        """Return the kinds of hosts that can be started: those planned, later those that added nodes have room for."""
        return self._started.startable_hosts(list(self._host_kinds.values()))

    def put(self, value: T) -> Handle[T]:
        """Put `value` where all actors can read it."""
        return self._transport.put(value)

    def start(self, worker: WorkerClass, *args: Any, role: Role, kind: int = 0) -> Actor:
        """Start an actor; `args` are handles and small values.

        Client hosts have cores of their own, and so has a central learner if it is to have some; the other actors share
        what is left.
        """
        if role == "client host":
            actor = self._started.host(kind)
            self._host_kinds[actor] = kind
        else:
            actor = self._started.other(role, self._others[role])
        self._workers[actor] = (worker, [self._transport.constructor_argument(arg) for arg in args])
        self._make_worker(actor)
        return Actor(actor)

    def _make_worker(self, actor: Any) -> Any:
        """Have a process make its worker, watch it, and connect to it; return Ray's reference to the making."""
        worker, args = self._workers[actor]
        if files := sources():
            actor.adopt.remote(files)
        self._made[actor] = actor.make_worker.remote(worker, args)
        self._liveness.watch(actor, worker.__name__)
        self._node_processors.started(actor)
        self._transport.reconnect(actor)
        return self._made[actor]

    def _make_worker_again(self, actor: Any) -> None:
        """Have the new process of an actor make its worker, and wait for it. Raises Fault if it cannot."""
        made = self._make_worker(actor)
        self._wait(lambda seconds: ray.get(made, timeout=seconds))

    def stop(self, actor: Any) -> None:
        """End a client host."""
        self._host_kinds.pop(actor)
        self._workers.pop(actor)
        self._made.pop(actor)
        self._liveness.forget(actor)
        ray.kill(actor)
        self._transport.disconnect(actor)

    def call(self, actor: Actor, method: str, *args: object) -> Handle[Any]:
        """Queue a call and return a handle of its result."""
        return self._transport.call(actor, method, args, 1)[0]

    def call_several(self, actor: Actor, method: str, *args: object, returns: int) -> list[Handle[Any]]:
        """Queue a call and return handles of its results."""
        return self._transport.call(actor, method, args, returns)

    def get(self, handle: Handle[T]) -> T:
        """Wait for a result. Raises Fault if the call failed or its result is lost, FleetError if nothing moves."""
        return self._wait(partial(self._transport.get, handle))

    def _wait(self, get: Callable[[float], T]) -> T:
        """Return what `get(seconds)` returns, and look after the actors whenever it takes longer than a while."""
        self._liveness.rest()
        while True:
            self._liveness.refuse_dead()
            try:
                return get(liveness.LOOK_SECONDS)
            except GetTimeoutError:
                self._liveness.look()
            except RayError as error:
                raise self._liveness.fault(error) from None

    def revive(self, actor: Any) -> bool:
        """Wait for an actor; return whether Ray had to restart it. Raises Fault if that takes too long."""
        died = False
        began = time.monotonic()
        while True:
            try:
                self._check_worker(actor)
                self._transport.connect(actor)
                return died
            except RestartedError:
                died = True
                self._make_worker_again(actor)
            except GetTimeoutError:
                if self._is_busy(actor, began):
                    return died
            except RayError as error:
                self._liveness.refuse_dead()
                if time.monotonic() > began + _REVIVE_SECONDS:
                    raise Fault(type(error).__name__, "an actor did not come back", died=True) from None
                self._pause.wait(0.1)

    def _is_busy(self, actor: Any, began: float) -> bool:
        """Return whether an actor that does not answer is busy with earlier calls, as far as is known by now.

        Raises Fault if it waits in vain for a node since `began`.
        """
        waited = time.monotonic() - began
        if alive(actor):
            return waited > _REVIVE_SECONDS
        if waited > _REVIVE_SECONDS or (waited > _HOMELESS_SECONDS and not self._started.has_room_for(actor)):
            raise Fault("ActorUnschedulable", "no node has room for an actor that was lost", died=True) from None
        return False

    def _check_worker(self, actor: Any) -> None:
        """Wait a while for an actor's description. Raises what Ray raises, Fault if the worker could not be made."""
        try:
            ray.get(actor.about.remote(), timeout=_ANSWER_SECONDS)
        except NoWorkerError:
            try:
                ray.get(self._made[actor], timeout=_ANSWER_SECONDS)
            except RayTaskError as error:
                raise self._liveness.fault(error) from None

    def messages(self) -> list[str]:
        """Return what Ray has said since the last call."""
        return take_messages()

    def close(self, *, tidy: bool = False) -> None:
        """End our actors, and a Ray that was started here, with its logs if `tidy`; leave a cluster that was joined."""
        actors = [*self._workers, *(self._processes.idle() if self._processes else ())]
        self._workers = {}
        for actor in actors if ray.is_initialized() else ():
            ray.kill(actor)
        self._transport.close()
        if not self._joined:
            disconnect(tidy=tidy and self._own)

    def __enter__(self) -> RayFleet:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(tidy=error is None)

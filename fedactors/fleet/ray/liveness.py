"""Over a fleet on Ray that lets us wait: ends actors that were stopped, and never waits for what will not come."""

from __future__ import annotations

from typing import Any, cast

import ray
from ray.exceptions import RayActorError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from fedactors.errors import FleetError
from fedactors.fleet.base import Fault
from fedactors.fleet.ray.actor_process import RestartedError
from fedactors.fleet.ray.watchdog import Process, Watchdog, Watched, end, processes

LOOK_SECONDS = 10.0  # between looks
_PATIENCE_SECONDS = 300.0  # for a fleet in which nothing moves


class Liveness:
    """Watches the actors of one fleet; `ours` says whether its Ray was started here."""

    def __init__(self, *, ours: bool) -> None:
        self._ours = ours
        self._places: dict[Any, tuple[str, Any]] = {}  # role of each actor, and where it is, as a reference
        self._watchdog, self._ended = Watchdog(_PATIENCE_SECONDS), ""

    def watch(self, actor: Any, role: str) -> None:
        """Begin to watch an actor, or do so anew after it was restarted."""
        self._places[actor] = (role, actor.where.remote())

    def forget(self, actor: Any) -> None:
        """Watch an actor no more."""
        self._places.pop(actor, None)

    def rest(self) -> None:
        """Note that the fleet is doing well: what is waited for now is new."""
        self._watchdog.rest()

    def fault(self, error: RayError) -> Fault:
        """Return the fault that Ray tells of; it may be one of an actor that the watchdog has ended."""
        self.refuse_dead()
        cause: BaseException = error
        while isinstance(cause, RayTaskError) and cause.cause is not None:  # handed on from task to task
            cause = cause.cause
        ended, self._ended = self._ended, ""
        died = isinstance(cause, RayError | RestartedError) and not isinstance(cause, RayTaskError)
        if ended and died:
            return Fault("HungActor", f"{ended}; ended by the watchdog", died)
        if isinstance(cause, RestartedError):
            return Fault("ActorDiedError", "it died while nobody waited for it", died)
        said = str(cause).splitlines() if isinstance(cause, RayActorError) else [str(cause)]
        return Fault(type(cause).__name__, said[0], died)

    def refuse_dead(self) -> None:
        """Raise FleetError if a service of the Ray that was started here is gone: nothing would ever answer."""
        if not self._ours:
            return
        node = getattr(cast(Any, ray)._private.worker, "_global_node", None)
        dead = [str(kind) for kind, _ in node.dead_processes()] if node is not None else []
        if dead:
            raise FleetError(f"Ray's {' and '.join(dead)} on this machine ended: killed, or out of memory")

    def look(self) -> None:
        """End actors that were stopped. Raises FleetError, with who is in what state, if nothing moves any more."""
        self.refuse_dead()
        fleet = self._watched()
        for one in self._watchdog.look(fleet):
            self._ended = str(one)
            _on(one.node, end, one.pid)
        if self._watchdog.stuck():
            lines = "\n".join(f"  {one}" for one in fleet)
            raise FleetError(
                f"nothing has moved for {_PATIENCE_SECONDS:.0f} s; what is waited for is with one of\n{lines}"
            )

    def _watched(self) -> list[Watched]:
        """Return the processes of all actors, as far as they are known."""
        known = []
        for role, place in self._places.values():
            try:
                known.append((role, *ray.get(place, timeout=0.1)))
            except RayError:  # has not begun, or ended
                continue
        states: dict[str, dict[int, Process]] = {}
        for node in {node for _, node, _ in known}:
            states[node] = _on(node, processes, [pid for _, at, pid in known if at == node]) or {}
        return [Watched(role, node, pid, states[node].get(pid)) for role, node, pid in known]


def _on(node: str, function: Any, argument: Any) -> Any:
    """Return `function(argument)` as a process of `node` sees it; None if that node does not answer."""
    if node == ray.get_runtime_context().get_node_id():
        return function(argument)
    there = NodeAffinitySchedulingStrategy(node, soft=False)
    task: Any = ray.remote(function).options(num_cpus=0, scheduling_strategy=there)
    try:
        return ray.get(task.remote(argument), timeout=LOOK_SECONDS)
    except RayError:
        return None

"""Finds actors of a fleet on Ray that will never answer, while a result is waited for."""

from __future__ import annotations

from typing import Any, cast

import ray
from ray.exceptions import RayActorError, RayError, RayTaskError

from fedactors.errors import FleetError
from fedactors.fleet.base import Fault
from fedactors.fleet.ray.actor_process import RestartedError
from fedactors.fleet.ray.node_calls import on_node
from fedactors.fleet.ray.watchdog import Process, Watchdog, Watched, end, processes

LOOK_SECONDS = 10.0  # between looks
_PATIENCE_SECONDS = 300.0  # for a fleet in which nothing moves


class Liveness:
    """Watches the actors of one fleet; `ours` is whether its Ray was started here."""

    def __init__(self, *, ours: bool) -> None:
        self._ours = ours
        self._places: dict[Any, tuple[str, Any]] = {}  # of each actor: its worker's class, and a reference to its place
        self._watchdog = Watchdog(_PATIENCE_SECONDS)
        self._ended = ""  # description of the actor that the watchdog has ended last

    def watch(self, actor: Any, worker: str) -> None:
        """Begin to watch an actor with a worker of that class, also after it was restarted."""
        self._places[actor] = (worker, actor.where.remote())

    def forget(self, actor: Any) -> None:
        """Do not watch an actor any more."""
        self._places.pop(actor, None)

    def rest(self) -> None:
        """Begin to wait for another result: the time without progress begins again."""
        self._watchdog.reset()

    def fault(self, error: RayError) -> Fault:
        """Return the fault for an error of Ray; the cause may be that the watchdog has ended an actor."""
        self.refuse_dead()
        cause: BaseException = error
        while isinstance(cause, RayTaskError) and cause.cause is not None:  # passed on from task to task
            cause = cause.cause
        ended = self._ended
        self._ended = ""
        died = isinstance(cause, RayError | RestartedError) and not isinstance(cause, RayTaskError)
        if ended and died:
            return Fault("HungActor", f"{ended}; ended by the watchdog", died)
        if isinstance(cause, RestartedError):
            return Fault("ActorDiedError", "it died while nobody waited for it", died)
        if isinstance(cause, RayActorError):
            return Fault(type(cause).__name__, str(cause).splitlines()[0], died, str(cause))
        return Fault(type(cause).__name__, str(cause), died)

    def refuse_dead(self) -> None:
        """Raise FleetError if a service of the Ray that was started here has ended: no actor would ever answer."""
        if not self._ours:
            return
        node = getattr(cast(Any, ray)._private.worker, "_global_node", None)
        dead = [str(kind) for kind, _ in node.dead_processes()] if node is not None else []
        if node is not None and dead:
            raise FleetError(
                f"Ray's {' and '.join(dead)} on this machine ended: killed, or out of memory; its logs are in"
                f" {node.get_logs_dir_path()}"
            )

    def look(self) -> None:
        """End actors that were stopped. Raises FleetError, with the state of each, if no actor works any more."""
        self.refuse_dead()
        fleet = self._watched()
        for one in self._watchdog.look(fleet):
            self._ended = str(one)
            on_node(one.node, end, one.pid)
        if self._watchdog.stuck():
            lines = "\n".join(f"  {one}" for one in fleet)
            raise FleetError(
                f"nothing has moved for {_PATIENCE_SECONDS:.0f} s; the result is awaited from one of\n{lines}"
            )

    def _watched(self) -> list[Watched]:
        """Return the processes of those actors whose place is known."""
        known = []
        for worker, place in self._places.values():
            try:
                known.append((worker, *ray.get(place, timeout=0.1)))
            except RayError:  # it has not started, or has ended
                continue
        states: dict[str, dict[int, Process]] = {}
        for node in {node for _, node, _ in known}:
            states[node] = on_node(node, processes, [pid for _, other, pid in known if other == node]) or {}
        return [Watched(worker, node, pid, states[node].get(pid)) for worker, node, pid in known]

"""The processes of a fleet's actors: most are started ahead, as they take seconds, and get their workers later."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, cast

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from fedactors.fleet.layout import Want, further_kinds, room
from fedactors.fleet.ray.actor_process import OBSERVATION, ActorProcess
from fedactors.fleet.ray.cluster_nodes import available
from fedactors.fleet.ray.placement import EVALUATOR, SERVER, Placement

_SOME_MEMORY = 1_000_000
_LOOK_SECONDS = 1.0  # between looks at whether nodes were added


class ActorProcesses:
    """Starts processes on the nodes of a placement.

    Args:
        placement: where they go at the beginning.
        kinds: what a client host of each kind needs.
        wanted: number of client hosts; None for as many as there is room for.
        may_grow: whether nodes may be added to the cluster, or be lost.
        torch: whether client hosts need it, so that they import it ahead.
        task_events: whether Ray notes calls for its dashboard.
        environment: variables that the processes have besides those of Ray's own.

    """

    def __init__(
        self,
        placement: Placement,
        kinds: Sequence[Want],
        wanted: int | None,
        *,
        may_grow: bool,
        torch: bool,
        task_events: bool,
        environment: Mapping[str, str],
    ) -> None:
        self._placement = placement
        self._kinds = kinds
        self._wanted = wanted
        self._several_nodes = len(placement.nodes) > 1
        self._may_grow = may_grow or self._several_nodes
        self._torch = torch
        self._task_events = task_events
        self._environment = environment
        self._wants: dict[Any, Want] = {}
        self._idle_hosts: list[tuple[int, Any]] = []  # with the kind of each
        self._idle_others: list[Any] = []
        self._looked = 0.0
        self._seen = set(placement.nodes)

    def start_ahead(self, *, server: bool) -> None:
        """Start the processes of all client hosts, of the evaluator, and of the `server` if it needs no GPU."""
        for kind, node in zip(self._placement.kinds, self._placement.host_nodes, strict=True):
            self._idle_hosts.append((kind, self._start(self._kinds[kind], node)))
        for name in (EVALUATOR, SERVER) if server else (EVALUATOR,):
            self._idle_others.append(self._start(Want(), self._placement.other_nodes[name]))

    def startable_hosts(self, running: Sequence[int]) -> list[int]:
        """Return the kinds of hosts that can be started: those started ahead, later those for which nodes were added.

        `running` are the kinds of those there are. Looks at the cluster at most once a second. It may grow and shrink:
        where work is done changes no bit.
        """
        if self._idle_hosts:
            return sorted(kind for kind, _ in self._idle_hosts)
        if not self._may_grow or time.monotonic() < self._looked + _LOOK_SECONDS:
            return []
        self._looked = time.monotonic()
        return self._hosts_with_room(running)

    def _hosts_with_room(self, running: Sequence[int]) -> list[int]:
        """Return the kinds of hosts that there is room for, if nodes were added or hosts are missing."""
        nodes = available()
        added = {node.key for node in nodes} - self._seen
        planned = self._placement.kinds
        if not added and len(running) >= len(planned):
            return []
        self._seen |= added
        most = None if self._wanted is None else max(self._wanted, len(self._kinds))
        return further_kinds(nodes, self._kinds, running, planned, most)

    def host(self, kind: int) -> Any:
        """Return a process for a client host of a kind."""
        for place in reversed(range(len(self._idle_hosts))):
            if self._idle_hosts[place][0] == kind:
                return self._idle_hosts.pop(place)[1]
        return self._start(self._kinds[kind], None)

    def other(self, name: str, want: Want) -> Any:
        """Return a process for the actor of that name that is no client host."""
        if self._idle_others and not want.cpus and not want.gpus:
            return self._idle_others.pop()
        return self._start(want, self._placement.other_nodes[name])

    def idle(self) -> list[Any]:
        """Return the processes without a worker, which are not returned again."""
        found = [*(actor for _, actor in self._idle_hosts), *self._idle_others]
        self._idle_hosts.clear()
        self._idle_others.clear()
        return found

    def has_room_for(self, actor: Any) -> bool:
        """Whether the cluster has room for an actor that was lost."""
        return room(available(), self._wants[actor]) > 0

    def _start(self, want: Want, node: str | None) -> Any:
        """Start a process on a node, or elsewhere if that is lost."""
        options: dict[str, Any] = {
            "num_cpus": want.cpus,
            "num_gpus": want.gpus,
            "resources": dict(want.resources),
            "max_restarts": -1,
            "max_task_retries": 0,
            "enable_task_events": self._task_events,
        }
        if self._environment:
            options["runtime_env"] = {"env_vars": dict(self._environment)}
        if node is not None and self._several_nodes:
            options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(node, soft=True)
            options["memory"] = _SOME_MEMORY  # Ray puts an actor that needs nothing anywhere, whatever the strategy
        made: Any = cast("Any", ray).remote(concurrency_groups={OBSERVATION: 1})(ActorProcess)
        actor = made.options(**options).remote()
        if self._torch or not want.cpus:
            actor.warm.remote()
        self._wants[actor] = want
        return actor

"""Which node each actor goes to: arithmetic over what nodes offer, so that it can be shown before it is done.

Client hosts are spread: each goes where most of its kind would still fit. The server and the central learner get nodes
of their own, the smallest ones, if hosts do not need all nodes; else they are beside hosts, on the cores that these
leave. A fraction of a GPU is on one GPU; several hosts share it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import NamedTuple

_TINY = 1e-9  # fractions of GPUs add up to a little more than 1


class Want(NamedTuple):
    """What an actor needs of its node."""

    cpus: float = 0.0
    gpus: float = 0.0
    resources: Mapping[str, float] = {}


class HostKinds(NamedTuple):
    """What client hosts need besides cores and GPUs, by the clients they are for."""

    resources: Sequence[Mapping[str, float]] = ({},)  # of each kind of host
    first: Sequence[int] = (0,)  # client with which each stretch begins
    kinds: Sequence[int] = (0,)  # of each stretch


@dataclass
class Node:
    """What a node has left."""

    name: str
    cpus: float
    gpus: float = 0.0
    resources: dict[str, float] = field(default_factory=dict)
    free: list[float] = field(default_factory=list)  # of each GPU
    key: str = ""  # Ray's name for it

    def __post_init__(self) -> None:
        self.free = self.free or [1.0] * int(self.gpus)

    def copy(self) -> Node:
        """Return an independent copy."""
        return Node(self.name, self.cpus, self.gpus, dict(self.resources), list(self.free), self.key)

    def room(self, want: Want) -> int:
        """Return how many actors with this need still fit."""
        counts = [(self.cpus + _TINY) // want.cpus] if want.cpus else []
        counts += [(self.resources.get(name, 0.0) + _TINY) // amount for name, amount in want.resources.items()]
        if want.gpus >= 1:
            counts.append(sum(free > 1 - _TINY for free in self.free) // want.gpus)
        elif want.gpus:
            counts.append(sum((free + _TINY) // want.gpus for free in self.free))
        return int(min(counts, default=1_000_000))

    def take(self, want: Want) -> None:
        """Subtract what an actor needs; the node has it."""
        self.cpus -= want.cpus
        for name, amount in want.resources.items():
            self.resources[name] -= amount
        whole = int(want.gpus) if want.gpus >= 1 else 0
        for gpu in [gpu for gpu, free in enumerate(self.free) if free > 1 - _TINY][:whole]:
            self.free[gpu] = 0.0
        if 0 < want.gpus < 1:
            fitting = [gpu for gpu, free in enumerate(self.free) if free + _TINY >= want.gpus]
            self.free[min(fitting, key=self.free.__getitem__)] -= want.gpus


def room(nodes: Sequence[Node], want: Want) -> int:
    """Return how many actors with this need fit on `nodes` together."""
    return sum(node.room(want) for node in nodes)


def first_kinds(wanted: int | None, kinds: Sequence[Want], central: Want | None, nodes: Sequence[Node]) -> list[int]:
    """Return the kind of each host at the beginning: in turn, at least one of each; as many as fit if None is `wanted`.

    Hosts fill what the `central` learner leaves, which comes from the roomiest node that can hold it.
    """
    numbers = range(len(kinds))
    if wanted is not None:
        return list(islice(cycle(numbers), max(wanted, len(kinds))))
    left = [node.copy() for node in nodes]
    if central and (roomy := [node for node in left if node.room(central)]):
        max(roomy, key=lambda node: node.cpus).take(central)
    return _in_turn([room(left, want) for want in kinds], room(left, kinds[0]._replace(resources={})))


def _in_turn(room_for: Sequence[int], room_for_any: int) -> list[int]:
    """Return the kinds of as many hosts as there is room for, in turn, at least one of each kind."""
    kinds = range(len(room_for))
    in_turn = [kind for turn in range(max(room_for)) for kind in kinds if turn < max(room_for[kind], 1)]
    return in_turn[: max(len(kinds), room_for_any)] or [0]


def further_kinds(
    nodes: Sequence[Node], kinds: Sequence[Want], running: Sequence[int], planned: Sequence[int], most: int | None
) -> list[int]:
    """Return the kinds of the hosts to start beside those `running`: `most` in all, as many as fit if it is None.

    Kinds of which hosts are missing that were `planned` come first, then those of which there are fewest.
    """
    left = [node.copy() for node in nodes]
    there, plan = Counter(running), Counter(planned)
    found: list[int] = []
    while most is None or len(running) + len(found) < most:
        fitting = [kind for kind, want in enumerate(kinds) if room(left, want)]
        if not fitting:
            break
        kind = min(fitting, key=lambda kind: (there[kind] >= plan[kind], there[kind], kind))
        max(left, key=lambda node: node.room(kinds[kind])).take(kinds[kind])
        there[kind] += 1
        found.append(kind)
    return found


def layout(nodes: Sequence[Node], hosts: Sequence[Want], others: Sequence[Want]) -> tuple[list[int], list[int]] | None:
    """Return the node of each host and of each other actor, or None if not all fit.

    `others` are the server, the evaluator, and the central learner if there is one. Hosts choose first, unless they
    would leave no node whole for what another needs.
    """
    small = sorted(range(len(nodes)), key=lambda n: (nodes[n].gpus, nodes[n].cpus, -n))
    for count in range(min(len(others) - 1, len(nodes) - 1), -1, -1):  # the evaluator needs no node of its own
        if (found := _hosts_first(nodes, small[:count], hosts, others)) is not None:
            return found
    left = [node.copy() for node in nodes]
    beside = _beside(left, [], others)
    placed = None if beside is None else _spread(left, range(len(nodes)), hosts)
    return None if beside is None or placed is None else (placed, beside)


def _hosts_first(
    nodes: Sequence[Node], own: Sequence[int], hosts: Sequence[Want], others: Sequence[Want]
) -> tuple[list[int], list[int]] | None:
    """Return the layout in which hosts choose first, on all nodes but the others' `own`; None if not all fit."""
    left = [node.copy() for node in nodes]
    placed = _spread(left, [place for place in range(len(nodes)) if place not in own], hosts)
    beside = None if placed is None else _beside(left, own, others)
    return None if placed is None or beside is None else (placed, beside)


def _spread(left: Sequence[Node], allowed: Sequence[int], hosts: Sequence[Want]) -> list[int] | None:
    placed = []
    for want in hosts:
        best = max(allowed, key=lambda n: (left[n].room(want), -n))
        if not left[best].room(want):
            return None
        left[best].take(want)
        placed.append(best)
    return placed


def _beside(left: Sequence[Node], own: Sequence[int], others: Sequence[Want]) -> list[int] | None:
    """Place actors that are no hosts: in turn on nodes of their own, or where most is left."""
    placed = []
    for number, want in enumerate(others):
        turn = 0 if number < 2 else 1  # server and evaluator, central learner
        choices = [own[turn % len(own)]] if own else []
        choices += sorted(range(len(left)), key=lambda n: (-left[n].cpus, n))
        fitting = [n for n in choices if left[n].room(want)]
        if not fitting:
            return None
        left[fitting[0]].take(want)
        placed.append(fitting[0])
    return placed


def table(nodes: Sequence[Node], rows: Sequence[tuple[str, int, Want]]) -> str:
    """Return the placement as lines of text; `rows` are (actor, node, what it gets)."""
    lines = []
    for number, node in enumerate(nodes):
        counts = Counter((name, want.cpus, want.gpus) for name, place, want in rows if place == number)
        parts = [f"{count} {name}{'s' * (count > 1)}{_gets(*gets)}" for (name, *gets), count in counts.items()]
        lines.append(f"  {node.name:<16} {', '.join(parts) or 'nothing'}")
    return "\n".join(["placement:", *lines])


def _gets(cpus: float, gpus: float) -> str:
    parts = [f"{cpus:g} CPU" * bool(cpus), f"{gpus:g} GPU" * bool(gpus)]
    text = ", ".join(part for part in parts if part)
    return f" ({text} each)" if text else ""

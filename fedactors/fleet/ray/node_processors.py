"""The kinds of processors of the nodes that a fleet uses: at the beginning, later of each new one at its first use.

Nodes may join a cluster while a run lasts, and an actor that was lost may start again on another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import ray
from ray.exceptions import RayError

from fedactors.bits import Bits, processor_kind
from fedactors.fleet.ray.node_calls import on_nodes


class NodeProcessors:
    """Asks the `nodes` that actors were placed on, once, and then the process of every actor that starts."""

    def __init__(self, nodes: Sequence[str]) -> None:
        self._nodes = nodes
        self._bits: Bits | None = None  # that kinds are wanted for; None before anybody has asked
        self._known = set[str]()
        self._asked: list[Any] = []  # Ray's references to answers that are not here yet

    def started(self, actor: Any) -> None:
        """Ask the process of an actor that starts, or starts again, on a node that may be new; does not wait."""
        if self._bits is not None:
            self._asked.append(actor.processor.remote(self._bits))

    def kinds(self, bits: Bits) -> list[str]:
        """Return the kinds that are known now, sorted, each once; waits for nodes only at the first call."""
        if self._bits != bits:
            self._bits = bits
            self._known = {kind for kind in on_nodes(self._nodes, processor_kind, bits) if kind is not None}
        if self._asked:
            answered, self._asked = ray.wait(self._asked, num_returns=len(self._asked), timeout=0)
            for reference in answered:
                with suppress(RayError):  # its process has died: the next one is asked
                    self._known.add(ray.get(reference))
        return sorted(self._known)

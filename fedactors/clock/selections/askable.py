"""Whom an asynchronous server can ask: clients that can be asked, not busy, and not known to be unreachable."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedactors.clock.availability import Int64
from fedactors.clock.world import World


class Askable:
    """The clients of a `world` among which an asynchronous server draws.

    The cost of a drawing follows the clients drawn where the selection looks at nobody else
    (`World.free_clients`), and the population where it looks at every candidate.
    """

    def __init__(self, world: World, among: str) -> None:
        self._world = world
        self._among = among
        self._free = world.free_clients(among)
        self.busy: NDArray[np.bool_] = np.zeros(len(world.population), bool)
        self.unreachable: set[int] = set()  # free, but their trips from this instant on would fail at once

    def hold(self, client: int) -> None:
        """Count a client as busy."""
        self.busy[client] = True
        if self._free is not None:
            self._free.hold(client)

    def release(self, client: int) -> None:
        """Count a client as free again."""
        self.busy[client] = False
        if self._free is not None:
            self._free.release(client)

    def note_unreachable(self, client: int) -> None:
        """Leave out a free client, whose trip has failed at once, until `forget_unreachable`."""
        self.unreachable.add(client)
        if self._free is not None:
            self._free.hold(client)

    def forget_unreachable(self) -> None:
        """Let all clients that were unreachable be asked again."""
        if self._free is not None:
            for client in sorted(self.unreachable):
                self._free.release(client)
        self.unreachable = set()

    def draw(self, version: int, count: int, turn: int) -> Int64:
        """Return `count` clients that are asked now, or all if there are fewer, ascending; see `World.draw`."""
        world = self._world
        if self._free is not None:
            return world.draw_free(version, self._free, count, turn)
        candidates = world.candidates(self._among)
        candidates = candidates[~self.busy[candidates]]
        if self.unreachable:
            candidates = candidates[~np.isin(candidates, sorted(self.unreachable))]
        return world.draw(version, candidates, count, turn)

"""Whom an asynchronous server can ask: clients that can be asked, that are not busy, and that are not set aside."""

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
        self.aside: set[int] = set()  # not asked for now, though free

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

    def set_aside(self, client: int) -> None:
        """Leave out a free client until `take_back`."""
        self.aside.add(client)
        if self._free is not None:
            self._free.hold(client)

    def take_back(self) -> None:
        """Let all that were set aside be asked again."""
        if self._free is not None:
            for client in sorted(self.aside):
                self._free.release(client)
        self.aside = set()

    def draw(self, version: int, count: int, turn: int) -> Int64:
        """Return `count` clients that are asked now, or all if there are fewer, ascending; see `World.draw`."""
        world = self._world
        if self._free is not None:
            return world.draw_free(version, self._free, count, turn)
        candidates = world.candidates(self._among)
        candidates = candidates[~self.busy[candidates]]
        if self.aside:
            candidates = candidates[~np.isin(candidates, sorted(self.aside))]
        return world.draw(version, candidates, count, turn)

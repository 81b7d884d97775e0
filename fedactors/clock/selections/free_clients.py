"""Clients that can be asked now and are not busy, found by their place among them without a look at everybody.

A server that asks one client for each update that arrives would otherwise list the whole population each time. Here
the free clients are counted in blocks: to count them, and to find the one at a place, costs the number of blocks, and
a client that comes, goes, begins or ends costs one block.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedactors.clock.availability import Int64
from fedactors.clock.presence import Presence
from fedactors.plan import Time

_BLOCK = 1_024  # clients


class FreeClients:
    """The clients that are present and not `held`; all are released at first."""

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        devices = len(presence.on)
        self._held: NDArray[np.bool_] = np.zeros(devices, bool)
        self._blocks: NDArray[np.bool_] = np.zeros((-(-devices // _BLOCK), _BLOCK), bool)  # who is free
        self._free = self._blocks.reshape(-1)[:devices]
        self._count_all()
        presence.follow(self._changed)

    def advance(self, time: Time) -> None:
        """Apply the comings and goings up to and including `time`."""
        self._presence.advance(time)

    def __len__(self) -> int:
        return self._total

    def hold(self, client: int) -> None:
        """Count a client as busy, whether it is present or not."""
        self._held[client] = True
        self._set(client, free=False)

    def release(self, client: int) -> None:
        """Count a client as free, as long as it is present."""
        self._held[client] = False
        self._set(client, free=bool(self._presence.on[client]))

    def all(self) -> Int64:
        """Return all free clients, ascending."""
        filled = np.flatnonzero(self._counts)
        block, inside = np.nonzero(self._blocks[filled])
        return filled[block] * _BLOCK + inside

    def at(self, places: Int64) -> Int64:
        """Return the clients at `places` among the free ones, which count from 0 in the order of their numbers."""
        if len(places) >= len(self._counts):
            return np.flatnonzero(self._free)[places]
        ends = np.cumsum(self._counts)
        blocks = np.searchsorted(ends, places, side="right")
        inside = places - (ends - self._counts)[blocks]
        found = zip(blocks.tolist(), inside.tolist(), strict=True)
        return np.array([block * _BLOCK + np.flatnonzero(self._blocks[block])[k] for block, k in found], np.int64)

    def _set(self, client: int, *, free: bool) -> None:
        if free != self._free[client]:
            more = 1 if free else -1
            self._free[client] = free
            self._counts[client // _BLOCK] += more
            self._total += more

    def _changed(self, devices: Int64 | None) -> None:
        """Look again at devices that came or went; None: at all of them."""
        if devices is None:
            self._count_all()
            return
        devices = np.unique(devices)
        free = self._presence.on[devices] & ~self._held[devices]
        more = free.astype(np.int64) - self._free[devices]
        self._free[devices] = free
        np.add.at(self._counts, devices // _BLOCK, more)
        self._total += int(more.sum())

    def _count_all(self) -> None:
        """Look at all devices, and count those that are free in each block and in all."""
        np.logical_and(self._presence.on, ~self._held, out=self._free)
        self._counts = np.count_nonzero(self._blocks, axis=1)
        self._total = int(self._counts.sum())

"""What a server can have seen of its devices: when each was on, until now.

A selection gets nothing else of the recordings. Whatever comes after `now` counts as not seen, so that another future
of the same recordings leaves every choice before it as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from fedactors.clock.availability import Int64
from fedactors.plan import Time


class Seen(Protocol):
    """Virtual time, and the devices in it."""

    @property
    def now(self) -> Time:
        """Virtual time, ns."""
        ...

    def arrivals(self, clients: Int64) -> Int64:
        """Return when each client joined the population, ns."""
        ...

    def on_between(self, clients: Int64, begin: Int64, end: Int64) -> Int64:
        """Return the ns that each client was on in its [begin, end), none of which may end after now."""
        ...


class History:
    """The past of all devices, or of `members` alone, which then have numbers of their own, from 0.

    `in_rounds` says how much of virtual time rounds took until now, ns; by default all of it.
    """

    def __init__(
        self, seen: Seen | None, members: Int64 | None = None, in_rounds: Callable[[], Time] | None = None
    ) -> None:
        self._seen = seen
        self._members = members
        self._in_rounds = in_rounds

    @property
    def now(self) -> Time:
        """Virtual time, ns."""
        return 0 if self._seen is None else self._seen.now

    @property
    def in_rounds(self) -> Time:
        """How much of virtual time rounds took, ns: all of it, but for an edge, which also waits for the cloud."""
        return self.now if self._in_rounds is None else self._in_rounds()

    def since(self, clients: Int64) -> Int64:
        """Return from when on each client has been seen, `(clients,)` ns."""
        if self._seen is None:
            return np.zeros(len(clients), np.int64)
        return np.clip(self._seen.arrivals(self._numbers(clients)), 0, self.now)

    def on_time(self, clients: Int64, begin: Int64, end: Int64) -> Int64:
        """Return the ns that each client was on in its [begin, end), as far as that was seen."""
        if self._seen is None:
            return np.zeros(len(clients), np.int64)
        begin = np.maximum(begin, self.since(clients))
        end = np.minimum(end, self.now)
        return self._seen.on_between(self._numbers(clients), begin, np.maximum(begin, end))

    def _numbers(self, clients: Int64) -> Int64:
        """Return the numbers of clients in the population."""
        return clients if self._members is None else self._members[clients]


NOTHING_SEEN = History(None)

"""What each trip of a run may have moved, by what `summary.json` says of messages and by the trips before it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedactors.plan import Order, Outcome


class TripSizes:
    """Follows what clients have been sent; orders of each client come in the order of its trips."""

    def __init__(self, wire: Mapping[str, Any]) -> None:
        self._wire = wire
        self._once: int = wire["once"]
        self._missed: int = wire.get("missed", 0)
        self._most: int = wire.get("missed_at_most", 0)
        self._versions: dict[int, int] = {}  # of clients that have completed a download, that of the last one

    def wrong(self, order: Order) -> str:
        """Return what is wrong with the bytes of an order; nothing if they are right."""
        up, down = (_of_client(self._wire[way], order.client) for way in ("up", "down"))
        expected = down + self._more(order)
        known = order.client in self._versions
        if order.down == expected:
            self._versions[order.client] = order.base
        if order.heard or order.outcome is Outcome.QUARANTINED:
            return self._of_heard(order, up, expected, twice=known and order.down == down + self._once)
        return "" if 0 <= order.up <= up and 0 <= order.down <= expected else _found(order)

    def _of_heard(self, order: Order, up: int, down: int, *, twice: bool) -> str:
        """Return what is wrong with the bytes of an order that was heard, and moves `up` and `down` bytes."""
        if (order.up, order.down) == (up, down):
            return ""
        sent_again = twice and self._once and not self._missed
        return "was sent twice what is sent once" if sent_again else f"heard with {_found(order)}"

    def _more(self, order: Order) -> int:
        """Return the bytes that a client is sent besides, to start from the version that it started from."""
        last = self._versions.get(order.client)
        if last is None:
            return self._once
        return min((order.base - last - 1) * self._missed, self._most)


def _found(order: Order) -> str:
    return f"{order.down} down, {order.up} up"


def _of_client(size: int | list[int], client: int) -> int:
    """Return the bytes that a client sends or receives, of one number for all or of one for each."""
    return size if isinstance(size, int) else size[client]

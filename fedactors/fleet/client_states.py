"""What clients keep between their trips, as handles: control variates, dynamic regularisers.

Each client's state is an immutable object that a host made; only its handle is here. On Ray the objects are in the
object stores of the cluster, which spill to disk when they are full. A round in flight proposes new handles and later
rounds build on those. They are adopted when the round has succeeded and dropped when it is submitted again, so a fault
loses nothing and counts nothing twice. A client without a trip so far has no handle: its state is zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fedactors.fleet.base import Handle
from fedactors.learning.training_task import Vectors


class ClientStates:
    """Handles of what clients keep, adopted and proposed."""

    def __init__(self) -> None:
        self._adopted: dict[int, Handle[Vectors]] = {}
        self._proposed: dict[int, dict[int, Handle[Vectors]]] = {}  # by version, ascending

    def of(self, client: int) -> Handle[Vectors] | None:
        """Return the handle that the next round submitted builds on; None for a client without a trip so far."""
        for version in reversed(self._proposed):
            if client in self._proposed[version]:
                return self._proposed[version][client]
        return self._adopted.get(client)

    def of_those_that_keep(self, clients: Iterable[int]) -> list[Handle[Vectors]]:
        """Return the handles of those among `clients` that keep something."""
        handles = [self.of(client) for client in clients]
        return [handle for handle in handles if handle is not None]

    def propose(self, version: int, clients: Sequence[int], handles: Sequence[Handle[Vectors]]) -> None:
        """Note what `clients` will keep after round `version`."""
        self._proposed.setdefault(version, {}).update(zip(clients, handles, strict=True))

    def adopt(self, version: int) -> None:
        """Make the proposals of round `version`, the oldest in flight, the clients' states."""
        self._adopted |= self._proposed.pop(version, {})

    def restore(self, client: int, handle: Handle[Vectors]) -> None:
        """Set what `client` keeps, from a saved state."""
        self._adopted[client] = handle

    def drop(self) -> None:
        """Drop all proposals: their rounds will be submitted again."""
        self._proposed.clear()

    def forget(self, clients: Iterable[int]) -> None:
        """Drop what clients kept that have left for good."""
        for client in clients:
            self._adopted.pop(client, None)

    def clear(self) -> None:
        """Drop everything: other states are about to be restored."""
        self._adopted.clear()
        self._proposed.clear()

    def items(self) -> list[tuple[int, Handle[Vectors]]]:
        """Return (client, handle) of every adopted state, ascending by client."""
        return sorted(self._adopted.items(), key=lambda item: item[0])

"""What clients keep between their trips, as handles: control variates, dynamic regularisers.

Each client's state is an immutable object that a host made; here is only the handle. On Ray the objects lie in the
object stores of the cluster, which spill to disk when they are full. A round in flight proposes new handles and the
rounds behind it build on those; they are adopted when the round has succeeded (commit on ack) and dropped when it is
submitted again, so a fault loses nothing and counts nothing twice. A client never heard has no handle: its state is
zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fedactors.fleet.base import Handle


class ClientStates:
    """Handles of what clients keep, adopted and proposed."""

    def __init__(self) -> None:
        self._adopted: dict[int, Handle] = {}
        self._proposed: dict[int, dict[int, Handle]] = {}  # by version, ascending

    def of(self, client: int) -> Handle | None:
        """Return the handle that the next round submitted builds on; None for a client never heard."""
        for version in reversed(self._proposed):
            if client in self._proposed[version]:
                return self._proposed[version][client]
        return self._adopted.get(client)

    def propose(self, version: int, clients: Sequence[int], handles: Sequence[Handle]) -> None:
        """Note what round `version` will leave with `clients`."""
        self._proposed.setdefault(version, {}).update(zip(clients, handles, strict=True))

    def adopt(self, version: int) -> None:
        """Make the proposals of round `version`, the oldest in flight, the clients' states."""
        self._adopted |= self._proposed.pop(version, {})

    def restore(self, client: int, handle: Handle) -> None:
        """Take over what `client` kept in a run that this one continues."""
        self._adopted[client] = handle

    def drop(self) -> None:
        """Forget all proposals: their rounds will be submitted again."""
        self._proposed.clear()

    def forget(self, clients: Iterable[int]) -> None:
        """Let go of what clients kept that have left for good."""
        for client in clients:
            self._adopted.pop(client, None)

    def items(self) -> list[tuple[int, Handle]]:
        """Return (client, handle) of every adopted state, ascending by client."""
        return sorted(self._adopted.items(), key=lambda item: item[0])

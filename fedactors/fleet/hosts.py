"""The client hosts of a run, and how a round's chunks are shared out among them and their sums brought together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedactors.fleet.base import Actor, Fault, Fleet, Handle, WorkerClass
from fedactors.fleet.chunk_placement import by_kind, ranges, spread
from fedactors.fleet.client_states import ClientStates
from fedactors.learning.training_task import Chunk

_DIRECT = 16  # chunks whose sums go to the server one by one; more are added up on the way


class Hosts:
    """As many hosts of a role as the fleet has room for; with `states` if their clients keep something."""

    def __init__(self, fleet: Fleet, role: WorkerClass, made_of: Sequence[Any], states: ClientStates | None) -> None:
        self._fleet, self._role, self._made_of, self._states = fleet, role, made_of, states
        self.actors: list[Actor] = []
        self._kinds: list[int] = []  # of each
        self.grow()

    def grow(self) -> None:
        """Start as many hosts as there is room for: at the beginning all, later those of nodes that came."""
        for kind in self._fleet.more():
            self.actors.append(self._fleet.start(self._role, *self._made_of, host=True, kind=kind))
            self._kinds.append(kind)

    def revive(self) -> int:
        """Wait for all hosts, and go on without those that do not come back; return how many had died.

        Raises Fault if none comes back.
        """
        died = 0
        for place, host in reversed(list(enumerate(self.actors))):
            try:
                died += self._fleet.revive(host)
            except Fault:
                if len(self.actors) == 1:
                    raise
                self._fleet.stop(host)
                del self.actors[place], self._kinds[place]
                died += 1
        return died

    def learned(self, chunks: Sequence[Chunk], bases: Sequence[Handle], tries: int) -> list[Handle]:
        """Have hosts train all chunks; return what the server is to add, in few pieces however many chunks there are.

        Few go to it directly. Of many, each host adds up its own and what the host before it hands over.
        """
        handed_on = len(chunks) > _DIRECT
        places = self._places(chunks, tries, in_ranges=handed_on)
        calls = self._calls(chunks, places)
        if not handed_on:
            return [self._learn(self.actors[place], mine, bases) for place, mine in calls]
        results: dict[int, list[Handle]] = {}
        for place, mine in calls:
            results.setdefault(place, []).append(self._learn(self.actors[place], mine, bases))
        total: list[Handle] = []
        for place in dict.fromkeys(places):
            total = [self._fleet.call(self.actors[place], "fold", *total, *results[place])]
        return total

    def loads(self, chunks: Sequence[Chunk]) -> list[int]:
        """Return the local steps of a round that each host is given."""
        load = [0] * len(self.actors)
        places = self._places(chunks, 0, in_ranges=len(chunks) > _DIRECT)
        for chunk, place in zip(chunks, places, strict=True):
            load[place] += chunk.cost
        return load

    def _places(self, chunks: Sequence[Chunk], tries: int, *, in_ranges: bool) -> list[int]:
        """Return the host of each chunk, by position."""
        kinds = [self._fleet.kind_of(chunk.clients[0]) for chunk in chunks]
        places = [0] * len(chunks)
        for mine, hosts in by_kind(kinds, self._kinds):
            costs, count = [chunks[chunk].cost for chunk in mine], len(hosts)
            parts = [chunks[chunk].branch for chunk in mine]
            found = ranges(costs, parts, count, tries) if in_ranges else spread(costs, count, tries)
            for chunk, place in zip(mine, found, strict=True):
                places[chunk] = hosts[place]
        return places

    def _calls(self, chunks: Sequence[Chunk], places: Sequence[int]) -> list[tuple[int, list[Chunk]]]:
        """Return the calls of a round as (host, chunks): one for each host.

        Where clients keep something, one for each chunk: a call has what all its clients keep in memory at once.
        """
        if self._states is not None:
            return [(place, [chunk]) for place, chunk in zip(places, chunks, strict=True)]
        shares: dict[int, list[Chunk]] = {}
        for place, chunk in zip(places, chunks, strict=True):
            shares.setdefault(place, []).append(chunk)
        return sorted(shares.items())

    def _learn(self, host: Actor, chunks: Sequence[Chunk], bases: Sequence[Handle]) -> Handle:
        """Have a host train its chunks of a round; what clients keep is noted as proposed by that round."""
        if self._fleet.near:
            self._fleet.call(host, "prepare", chunks)  # while it waits for models
        if self._states is None:
            return self._fleet.call(host, "learn", chunks, *bases)
        clients = [client for chunk in chunks for client in chunk.clients]
        kept = [self._states.of(client) for client in clients]
        learned, *renewed = self._fleet.call(host, "learn", chunks, *bases, *kept, returns=1 + len(kept))
        self._states.propose(chunks[0].version, clients, renewed)
        return learned

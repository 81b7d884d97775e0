"""The client hosts of a run: which host trains which chunks of a round, and how their sums are added up."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from fedactors.errors import FleetError
from fedactors.fleet.base import Fault, Fleet, Handle, WorkerClass
from fedactors.fleet.chunk_placement import by_kind, ranges, spread
from fedactors.fleet.client_states import ClientStates
from fedactors.fleet.flight import Flight
from fedactors.fleet.stubs import ClientHostStub, Results
from fedactors.learning.dissimilarity import GradientSum
from fedactors.learning.training_task import Chunk, Vectors

_SEARCH_SECONDS = 60.0  # for the client whose training ends its process
_DIRECT = 16  # chunks whose sums go to the server one by one; of more, hosts add up the sums


class Hosts:
    """As many client hosts as the fleet has room for.

    Args:
        fleet: where to start them.
        worker: the class of a host.
        made_of: arguments of its constructor, which may be handles.
        states: what clients keep; None if they keep nothing.

    """

    def __init__(self, fleet: Fleet, worker: WorkerClass, made_of: Sequence[Any], states: ClientStates | None) -> None:
        self._fleet = fleet
        self._worker = worker
        self._made_of = made_of
        self._states = states
        self.stubs: list[ClientHostStub] = []
        self._kinds: list[int] = []  # of each
        self.at_once: int | None = None  # clients that each may train at once; None: as it sees fit
        self.grow()

    def grow(self) -> None:
        """Start as many hosts as there is room for: all at the beginning, later those on nodes that were added."""
        for kind in self._fleet.startable_hosts():
            actor = self._fleet.start(self._worker, *self._made_of, role="client host", kind=kind)
            host = ClientHostStub(self._fleet, actor)
            self.stubs.append(host)
            self._kinds.append(kind)
            if self.at_once is not None:
                host.limit(self.at_once)

    def revive(self) -> int:
        """Wait for all hosts and stop those that do not come back; return how many had died.

        Raises Fault if none comes back.
        """
        died = 0
        for place, host in reversed(list(enumerate(self.stubs))):
            try:
                died += self._fleet.revive(host.actor)
            except Fault:
                if len(self.stubs) == 1:
                    raise
                self._fleet.stop(host.actor)
                del self.stubs[place]
                del self._kinds[place]
                died += 1
        if died and self.at_once is not None:  # those that have restarted do not know of it
            self.limit(self.at_once)
        return died

    def limit(self, clients: int) -> None:
        """Have each host, also those that are started later, train at most so many clients at once."""
        self.at_once = clients
        for host in self.stubs:
            host.limit(clients)

    def learned(self, chunks: Sequence[Chunk], bases: Sequence[Handle[Vectors]], tries: int) -> list[Results]:
        """Train all chunks; return what the server adds up, in few pieces however many chunks there are.

        Of few chunks the server gets each host's results. Of many, hosts add them up two by two, and then the sums of
        two pairs, and so on.
        """
        handed_on = len(chunks) > _DIRECT
        places = self._places(chunks, tries, in_ranges=handed_on)
        calls = self._calls(chunks, places)
        if not handed_on:
            return [self._learn(self.stubs[place], mine, bases) for place, mine in calls]
        results: dict[int, list[Results]] = {}
        for place, mine in calls:
            results.setdefault(place, []).append(self._learn(self.stubs[place], mine, bases))
        sums = [(place, self._sum_of(place, results[place])) for place in dict.fromkeys(places)]
        while len(sums) > 1:
            pairs = zip(sums[::2], sums[1::2], strict=False)
            added = [(place, self.stubs[place].fold([mine], [other])) for (place, mine), (_, other) in pairs]
            sums = added + sums[2 * len(added) :]
        return [total for _, total in sums]

    def _sum_of(self, place: int, results: list[Results]) -> Results:
        """Return what one host learned, in one piece."""
        return results[0] if len(results) == 1 else self.stubs[place].fold(results)

    def explained(self, flight: Flight, bases: Sequence[Handle[Vectors]], reason: str) -> str:
        """Return why actors of a task die again and again: the client that ends its process, else `reason`.

        Clients are looked at only if a host has died.
        """
        try:
            if not self.revive():
                return reason
            if self._states is not None:
                self._states.drop()  # proposals of processes that have died
            found = self.crashing_client(flight.task.chunks, bases)
        except (Fault, FleetError):
            return reason
        return f"round {flight.task.facts.version + 1}, {found} ({flight.tries} times)" if found else reason

    def crashing_client(self, chunks: Sequence[Chunk], bases: Sequence[Handle[Vectors]]) -> str:
        """Return which client ends the process that trains it, and how; empty if none does, or after a minute.

        Each chunk is tried on one host, all hosts at once. Raises Fault if one dies.
        """
        until = time.monotonic() + _SEARCH_SECONDS
        queues: dict[int, list[Chunk]] = {}
        for place, chunk in zip(self._places(chunks, 0, in_ranges=False), chunks, strict=True):
            queues.setdefault(place, []).append(chunk)
        while queues and (left := until - time.monotonic()) > 0:
            handles = [self._searched(place, queue.pop(0), bases, left) for place, queue in queues.items()]
            queues = {place: queue for place, queue in queues.items() if queue}
            if found := next(filter(None, map(self._fleet.get, handles)), ""):
                return found
        return ""

    def _searched(self, place: int, chunk: Chunk, bases: Sequence[Handle[Vectors]], seconds: float) -> Handle[str]:
        """Have a host look for the client of `chunk` that ends its process."""
        kept = [] if self._states is None else [self._states.of(client) for client in chunk.clients]
        return self.stubs[place].crashing_client(chunk, bases, kept, seconds)

    def gradient_sums(
        self, groups: Sequence[Sequence[int]], public: Handle[Vectors], tries: int, first_of: int | None = None
    ) -> list[Handle[GradientSum]]:
        """Return sums of gradients over each group of clients at the model in `public`.

        They are those of whole data sets, or of first batches in round `first_of`.
        """
        sums = []
        places = spread([len(group) for group in groups], len(self.stubs), tries)
        for place, group in zip(places, groups, strict=True):
            host = self.stubs[place]
            if first_of is None:
                sums.append(host.gradient_sum(group, public))
            else:
                sums.append(host.first_gradient_sum(group, first_of, public))
        return sums

    def loads(self, chunks: Sequence[Chunk]) -> list[int]:
        """Return the local steps of a round that each host is given."""
        load = [0] * len(self.stubs)
        places = self._places(chunks, 0, in_ranges=len(chunks) > _DIRECT)
        for chunk, place in zip(chunks, places, strict=True):
            load[place] += chunk.cost
        return load

    def _places(self, chunks: Sequence[Chunk], tries: int, *, in_ranges: bool) -> list[int]:
        """Return the host of each chunk, by position."""
        kinds = [self._fleet.kind_of(chunk.clients[0]) for chunk in chunks]
        places = [0] * len(chunks)
        for mine, hosts in by_kind(kinds, self._kinds):
            costs = [chunks[chunk].cost for chunk in mine]
            found = (ranges if in_ranges else spread)(costs, len(hosts), tries)
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

    def _learn(self, host: ClientHostStub, chunks: Sequence[Chunk], bases: Sequence[Handle[Vectors]]) -> Results:
        """Train chunks of a round on a host; what clients keep afterwards is proposed by that round."""
        if self._fleet.cheap_calls:
            host.prepare(chunks)  # done while the models are not there yet
        if self._states is None:
            return host.learn(chunks, bases)
        clients = [client for chunk in chunks for client in chunk.clients]
        kept = [self._states.of(client) for client in clients]
        learned, renewed = host.learn_with_states(chunks, bases, kept)
        self._states.propose(chunks[0].version, clients, renewed)
        return learned

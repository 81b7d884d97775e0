"""The search for a client that ends its process: once for each client, and only where a host has died."""

from types import SimpleNamespace

import pytest

from fedactors.fleet import hosts
from fedactors.fleet.flight import Flight
from fedactors.fleet.hosts import Hosts
from fedactors.fleet.local import LocalFleet
from fedactors.fleet.workers import Worker
from fedactors.learning.training_task import Chunk

REASON = "round 1 failed 5 times, last with ActorDiedError"
CHUNKS = tuple(
    Chunk(0, tuple(range(at, at + 8)), (0,) * 8, (0,) * 8, (60,) * 8, (1.0,) * 8, 0.1) for at in range(0, 1000, 8)
)


class Searching(Worker):
    """A host that notes which clients it was to try."""

    def __init__(self, tried, crashing):
        super().__init__("cpu")
        self._tried, self._crashing = tried, crashing

    def crashing_client(self, chunk, seconds, *given):
        assert 0 < seconds <= 60
        self._tried.append((id(self), chunk.clients))
        return f"client {self._crashing}: ended" if self._crashing in chunk.clients else ""


class Restarting(LocalFleet):
    """A local fleet of 16 hosts, which have died and come back, or have not died."""

    died = True

    def startable_hosts(self):
        return [] if self._started else [0] * 16

    def revive(self, actor):
        return self.died


@pytest.fixture
def fleet():
    with Restarting() as made:
        yield made


def explained(fleet, crashing=None):
    """Return what a round is said to end with, and who was tried where."""
    tried = []
    found = Hosts(fleet, Searching, (tried, crashing), None)
    flight = Flight(SimpleNamespace(facts=SimpleNamespace(version=0), chunks=CHUNKS), died=5)
    return found.explained(flight, [{}], REASON), tried


def test_each_client_is_tried_once_and_all_hosts_take_part(fleet):
    said, tried = explained(fleet)
    assert said == REASON
    assert sorted(client for _, clients in tried for client in clients) == list(range(1000))
    assert len({host for host, _ in tried[:16]}) == 16


def test_the_client_is_named(fleet):
    said, tried = explained(fleet, crashing=777)
    assert said == "round 1, client 777: ended (5 times)"
    assert len(tried) < len(CHUNKS)


def test_nobody_is_tried_after_the_death_of_another_actor(fleet):
    fleet.died = False
    assert explained(fleet, crashing=777) == (REASON, [])


def test_the_search_ends_when_its_time_is_up(fleet, monkeypatch):
    monkeypatch.setattr(hosts, "_SEARCH_SECONDS", 0.0)
    assert explained(fleet, crashing=777) == (REASON, [])


class Noted(Worker):
    """A host that notes which limits it is given."""

    def __init__(self):
        super().__init__("cpu")
        self.limits = []

    def limit(self, clients):
        self.limits.append(clients)


class Growing(LocalFleet):
    """A fleet that has room for one more host whenever it is asked, and on which hosts named in `dead` have died."""

    dead = ()

    def startable_hosts(self):
        return [0]

    def revive(self, actor):
        if died := actor in self.dead:
            actor.limits.clear()  # it is a new process
        return died


def test_a_host_that_comes_after_an_out_of_memory_trains_as_few_at_once():
    """Nodes join a cluster that is short of memory: without the limit each would run out of memory as the first did."""
    with Growing() as fleet:
        hosts = Hosts(fleet, Noted, (), None)
        hosts.grow()
        assert [host.actor.limits for host in hosts.stubs] == [[], []]
        hosts.limit(4)
        hosts.grow()
        assert [host.actor.limits for host in hosts.stubs] == [[4], [4], [4]]
        fleet.dead = [hosts.stubs[1].actor]
        assert hosts.revive() == 1
        assert all(host.actor.limits[-1] == 4 for host in hosts.stubs)

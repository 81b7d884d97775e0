"""The seam under the fleet on Ray: both transports do the same, and the fleet uses nothing but the seam."""

import ast
import inspect

import numpy as np
import pytest

from fedactors.fleet.base import Fault
from fedactors.fleet.ray import liveness, ray_fleet
from fedactors.fleet.ray.ray_fleet import RayFleet
from fedactors.fleet.transport.base import Transport
from fedactors.fleet.transport.ray_transport import RayTransport
from fedactors.fleet.transport.socket_transport import SocketTransport
from fedactors.fleet.transport.transport_choice import choose_transport
from fedactors.fleet.workers import Worker

TRANSPORTS = [RayTransport, SocketTransport]


class Adder(Worker):
    """Adds vectors to what it is made of."""

    def __init__(self, begin):
        super().__init__("cpu")
        self.begin = begin

    def add(self, *vectors):
        return self.begin + sum(vectors)

    def halves(self, vector):
        return vector[: len(vector) // 2], vector[len(vector) // 2 :]

    def move(self):
        self.begin = self.begin + 1

    def broken(self):
        raise ValueError("no such thing")


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_transport_has_what_the_seam_names(transport):
    for name, method in inspect.getmembers(Transport, inspect.isfunction):
        if not name.startswith("_"):
            assert inspect.signature(getattr(transport, name)) == inspect.signature(method), name


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_same_calls_give_the_same_results(transport, monkeypatch):
    monkeypatch.setattr(liveness, "LOOK_SECONDS", 0.05)  # shorter than an actor takes to start: several looks pass
    with RayFleet(1, transport=transport()) as fleet:
        one = fleet.start(Adder, fleet.put(np.full(10_000, 1.0)), role="client host")
        other = fleet.start(Adder, fleet.put(np.full(10_000, 10.0)), role="evaluator")
        vector = fleet.put(np.arange(10_000.0))
        first = fleet.call(one, "add", vector)
        second = fleet.call(other, "add", first, vector, np.ones(10_000))
        low, high = fleet.call_several(one, "halves", second, returns=2)
        assert np.array_equal(fleet.get(second), 2 * np.arange(10_000.0) + 12)
        assert np.array_equal(np.concatenate([fleet.get(low), fleet.get(high)]), fleet.get(second))
        assert np.array_equal(fleet.get(vector), np.arange(10_000.0))
        broken = fleet.call(one, "broken")
        for failed in (broken, fleet.call(other, "add", broken)):
            with pytest.raises(Fault, match="no such thing") as told:
                fleet.get(failed)
            assert not told.value.died
        for method in ["move"] * 9 + ["broken"]:
            assert fleet.call_several(other, method, returns=0) == []
        assert fleet.get(fleet.call(other, "add", vector))[0] == 19


def test_the_fleet_does_not_look_which_transport_it_has():
    tree = ast.parse(inspect.getsource(ray_fleet))
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert not names & {"SocketTransport", "isinstance", "PutValue", "Reply"}
    made = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "RayTransport"]
    assert len(made) == 1, "only as the default"


def test_sockets_are_for_a_ray_of_our_own_and_few_vectors():
    assert isinstance(choose_transport(None, few_vectors=True), SocketTransport)
    assert isinstance(choose_transport(None, few_vectors=False), RayTransport)
    assert isinstance(choose_transport("auto", few_vectors=True), RayTransport)

"""Several nodes, in earnest: Ray's own test cluster on this machine. Same digests, whatever comes, goes or dies."""

import os
import time

import numpy as np
import pytest
import ray
from ray.cluster_utils import Cluster

import fedactors
from fedactors import Scenario, bits
from fedactors.errors import ClusterError, FleetError
from fedactors.fleet.ray.node_calls import on_nodes
from fedactors.fleet.ray.ray_fleet import RayFleet
from fedactors.fleet.ray.ray_start import _loopback
from fedactors.fleet.workers import Worker
from fedactors.simulation.progress import Silent
from fedactors.simulation.runner import resume
from tests.fleet.conftest import QUICKSTART

pytestmark = pytest.mark.slow


@pytest.fixture
def cluster():
    """A head with one core; tests add nodes."""
    with _loopback():
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        ray.init(made.address, log_to_driver=False, logging_level="ERROR")
        yield made
        ray.shutdown()
        made.shutdown()


def scenario(*overrides):
    return Scenario.load(QUICKSTART, ["server.rounds=12", *overrides])


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("expected")
    return fedactors.run(scenario(), folder / "run", fleet="local", report=False).summary["digests"]


class Event(Silent):
    """Does something to the cluster at a round, and keeps what is told."""

    def __init__(self, at, act):
        self.at, self.act, self.notes = at, act, []

    def round(self, row):
        if row["round"] == self.at:
            self.act()

    def note(self, text):
        self.notes.append(text)


def nowhere():
    """Do nothing."""


@pytest.mark.parametrize("nodes", [1, 2, 4])
def test_the_same_digests_on_several_nodes(cluster, expected, tmp_path, nodes):
    for _ in range(nodes - 1):
        cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    told = Event(0, nowhere)
    made = scenario("cluster.address=auto")
    result = fedactors.run(made, tmp_path / "run", progress=told, report=False)
    assert result.summary["digests"] == expected
    placement = next(note for note in told.notes if note.startswith("placement"))
    assert placement.count("client host") == nodes, "a host on each node: as many as fit"


def test_each_node_is_asked_for_its_processor_and_a_lost_one_is_left_out(cluster, monkeypatch):
    monkeypatch.setattr("fedactors.fleet.ray.node_calls._ANSWER_SECONDS", 120.0)  # processes start when they are asked
    others = [cluster.add_node(num_cpus=1) for _ in range(2)]
    cluster.wait_for_nodes()
    with RayFleet(None, address="auto") as fleet:
        assert fleet.hosts == 3
        nodes = [node["NodeID"] for node in ray.nodes()]
        assert on_nodes(nodes, bits.processor_kind, "portable") == [bits.vendor()] * 3
        assert fleet.processors("portable") == [bits.vendor()]
        assert fleet.processors("native") == [bits.processor()]
        monkeypatch.setattr("fedactors.fleet.ray.node_calls._ANSWER_SECONDS", 10.0)
        cluster.remove_node(others[0], allow_graceful=False)
        assert sorted(map(str, on_nodes(nodes, bits.processor_kind, "portable"))) == [bits.vendor()] * 2 + ["None"]


VENDOR = """
from fedactors import bits

bits.vendor = lambda: "Another"
"""


def test_a_node_that_comes_is_asked_for_its_processor_when_an_actor_starts_there(cluster, tmp_path):
    """Python executes `sitecustomize` in each process of the node that comes, which has another vendor there."""
    (tmp_path / "sitecustomize.py").write_text(VENDOR)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    with RayFleet(None, address="auto") as fleet:
        assert fleet.processors("portable") == [bits.vendor()]
        fleet.start(Place, role="client host")
        cluster.add_node(num_cpus=1, env_vars={"PYTHONPATH": path})
        cluster.wait_for_nodes()
        waited_until = time.monotonic() + 60
        while not (kinds := fleet.startable_hosts()) and time.monotonic() < waited_until:
            time.sleep(0.2)
        fleet.start(Place, role="client host", kind=kinds[0])
        while len(fleet.processors("portable")) == 1 and time.monotonic() < waited_until:
            time.sleep(0.2)
        assert fleet.processors("portable") == sorted([bits.vendor(), "Another"])


def test_a_node_killed_in_the_middle_changes_no_bit(cluster, expected, tmp_path):
    """Its core is gone for good: the run goes on with the hosts that are left."""
    lost = cluster.add_node(num_cpus=1)
    cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    told = Event(4, lambda: cluster.remove_node(lost, allow_graceful=False))
    result = fedactors.run(scenario(), tmp_path / "run", actors=3, progress=told, report=False)
    assert result.summary["digests"] == expected
    assert (tmp_path / "run/faults.jsonl").read_text()


def test_what_clients_keep_may_be_lost_with_a_node_and_the_run_is_resumed_to_the_same_bits(cluster, tmp_path):
    """A vector of 154 kB lies on the node of the host that made it, and nowhere else."""
    large = scenario("server.algorithm=scaffold", "task.model.hidden=[512]", "cluster.checkpoint_every=1")
    whole = fedactors.run(large, tmp_path / "whole", fleet="local", report=False).summary["digests"]
    lost = cluster.add_node(num_cpus=2)
    cluster.wait_for_nodes()
    told = Event(6, lambda: cluster.remove_node(lost, allow_graceful=False))
    with pytest.raises(FleetError, match="a machine was lost with what only it held"):
        fedactors.run(large, tmp_path / "run", actors=3, progress=told, report=False)
    assert any("fedactors resume" in note for note in told.notes)
    assert resume(tmp_path / "run", actors=1, report=False).summary["digests"] == whole


def test_a_node_that_comes_is_used(cluster, expected, tmp_path, monkeypatch):
    def more():
        cluster.add_node(num_cpus=2)
        cluster.wait_for_nodes()
        time.sleep(1.5)  # the fleet looks once a second

    started, original = [], RayFleet.start

    def start(self, worker, *args, role, **kwargs):
        started.append(role)
        return original(self, worker, *args, role=role, **kwargs)

    monkeypatch.setattr(RayFleet, "start", start)
    result = fedactors.run(scenario("cluster.address=auto"), tmp_path / "run", progress=Event(3, more), report=False)
    assert result.summary["digests"] == expected
    assert started.count("client host") == 3, "one at first, two when the node came"


class Place(Worker):
    """Says where it is, and which GPUs it was given."""

    def __init__(self):
        super().__init__("cpu")

    def where(self):
        context = ray.get_runtime_context()
        return context.get_node_id(), tuple(context.get_accelerator_ids()["GPU"])


def test_hosts_share_declared_gpus_and_the_server_has_its_own_node(cluster):
    """Two nodes with two declared GPUs each: eight hosts of half a GPU, two on each of them."""
    for _ in range(2):
        cluster.add_node(num_cpus=4, num_gpus=2)
    cluster.wait_for_nodes()
    with RayFleet(8, 1.0, 0.5, "auto") as fleet:
        hosts = [fleet.start(Place, role="client host") for _ in fleet.startable_hosts()]
        server = fleet.start(Place, role="server")
        found = [fleet.get(fleet.call(host, "where")) for host in hosts]
        assert len(set(found)) == 4
        assert all(found.count(place) == 2 for place in found)
        assert fleet.get(fleet.call(server, "where"))[0] not in {node for node, _ in found}
    with pytest.raises(ClusterError, match="GPU"):
        RayFleet(9, 0.1, 0.5, "auto")


def test_hosts_of_a_group_go_where_its_resource_is(cluster, tmp_path, expected):
    cluster.add_node(num_cpus=2, resources={"arm": 2})
    cluster.wait_for_nodes()
    told = Event(0, nowhere)
    made = scenario('cluster.resources={"tablets": {"arm": 1}}', "cluster.actors=2", "cluster.address=auto")
    result = fedactors.run(made, tmp_path / "run", progress=told, report=False)
    assert result.summary["digests"] == expected


def test_a_model_is_sent_to_each_node_once(cluster):
    """Two hosts of one node read the same copy: the object lies there once, and nowhere it was not asked for."""
    cluster.add_node(num_cpus=2)
    cluster.add_node(num_cpus=2)
    cluster.wait_for_nodes()
    with RayFleet(4, 1.0, address="auto") as fleet:
        hosts = [fleet.start(Reader, role="client host") for _ in fleet.startable_hosts()]
        model = fleet.put(np.ones(10**6, np.float32))
        found = [fleet.get(fleet.call(host, "read", model)) for host in hosts]
        used = {node for node, *_ in found}
        lies = set(ray.experimental.get_object_locations([model])[model]["node_ids"])
        driver = ray.get_runtime_context().get_node_id()
        assert lies == used | {driver}
        assert all(not owned for _, owned in found), "hosts read the node's copy where it lies"


class Reader(Worker):
    """Reads an array."""

    def __init__(self):
        super().__init__("cpu")

    def read(self, array):
        return ray.get_runtime_context().get_node_id(), bool(array.flags.owndata or array.flags.writeable)

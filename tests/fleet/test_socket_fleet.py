"""A fleet on a Ray of its own, called over sockets: what dies or fails at any time is reported, and changes no bit."""

import os
import signal
import threading

import numpy as np
import psutil
import pytest

import fedactors
from fedactors.fleet.base import Fault
from fedactors.fleet.ray.ray_fleet import RayFleet
from fedactors.fleet.transport.socket_transport import SocketTransport
from fedactors.fleet.workers import Worker
from fedactors.simulation.progress import Silent
from tests.fleet.test_ray import wait_until


class Reader(Worker):
    """Returns what it was given."""

    def __init__(self, told=None):
        super().__init__("cpu")
        self.told = told

    def read(self, vector):
        return float(vector.sum()), self.told

    def threads(self):
        import torch

        return torch.get_num_threads()


class Broken(Worker):
    """Cannot be made."""

    def __init__(self):
        raise ValueError("no such device")


class Killing(Silent):
    """Kills a host at its second round, with SIGKILL."""

    def __init__(self, pipelines):
        self.pipelines, self.killed = pipelines, 0

    def round(self, row):
        if row["round"] == 2:
            import ray

            assert self.pipelines[-1]._fleet.cheap_calls
            self.killed = ray.get(self.pipelines[-1].hosts[0].actor.about.remote())["pid"]
            os.kill(self.killed, signal.SIGKILL)


@pytest.mark.slow
def test_a_host_killed_in_a_run_changes_no_bit(scenario, tmp_path, pipelines):
    calm = fedactors.run(scenario, tmp_path / "calm", fleet="local", report=False).summary["digests"]
    killing = Killing(pipelines)
    result = fedactors.run(scenario, tmp_path / "run", actors=1, progress=killing, report=False)
    assert killing.killed
    assert result.summary["digests"] == calm
    assert '"died": true' in (tmp_path / "run/faults.jsonl").read_text()
    assert not [thread for thread in threading.enumerate() if thread.name == "socket calls"]


@pytest.mark.slow
def test_what_goes_wrong_at_the_start_is_told_soon_and_can_be_mended():
    with RayFleet(1, transport=SocketTransport()) as fleet:
        broken = fleet.start(Broken, role="evaluator")
        with pytest.raises(Fault, match="died while nobody waited"):
            fleet.get(fleet.call(broken, "about"))
        with pytest.raises(Fault, match="no such device"):
            fleet.revive(broken)

        vector = fleet.put(np.ones(1000, np.float32))
        host = fleet.start(Reader, fleet.put("told"), role="client host")
        asked = fleet.call(host, "read", vector)
        wait_until(actor_processes)
        for one in actor_processes():  # while they import what they need
            one.kill()
        with pytest.raises(Fault) as told:
            fleet.get(asked)
        assert told.value.died
        assert fleet.revive(host)
        assert fleet.get(fleet.call(host, "read", vector)) == (1000.0, "told")
        assert fleet.get(fleet.call(host, "threads")) == 1
        assert fleet.get(vector).sum() == 1000.0


def actor_processes():
    """Return the processes of actors that descend from this one."""
    children = psutil.Process().children(recursive=True)
    return [child for child in children if any("ActorProcess" in word for word in child.cmdline())]

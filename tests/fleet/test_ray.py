"""Ray as we use it: what is refused, where it listens, and that nothing is left behind."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
import ray

import fedactors
from fedactors import Scenario
from fedactors.errors import ClusterError, FleetError
from fedactors.fleet.workers import ClientHost
from fedactors.simulation.fleet_choice import open_fleet
from tests.fleet.conftest import QUICKSTART


def ray_processes():
    """Return the processes of Ray that descend from this one."""
    return [p for p in psutil.Process().children(recursive=True) if "ray" in " ".join(safe_command(p)).lower()]


def safe_command(process):
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_work_that_raises_twice_stops_the_run_with_clients_and_traceback(scenario, tmp_path, monkeypatch):
    def broken(self, chunks, *sent):
        raise pipeline_error(chunks[0])

    def pipeline_error(chunk):
        return RuntimeError(f"round {chunk.version}, clients {chunk.clients}: disk on fire")

    monkeypatch.setattr(ClientHost, "learn", broken)
    with pytest.raises(FleetError, match=r"(?s)round 1 failed 2 times.*disk on fire"):
        fedactors.run(scenario, tmp_path / "run", fleet="local")
    assert len((tmp_path / "run/faults.jsonl").read_text().splitlines()) == 2


def test_an_exception_on_a_worker_carries_its_traceback(scenario, tmp_path, monkeypatch):
    monkeypatch.setattr("fedactors.learning.trainer.Trainer._rows", lambda *given: 1 / 0)
    with pytest.raises(FleetError, match=r"(?s)clients? \d+.*ZeroDivisionError"):
        fedactors.run(scenario, tmp_path / "run", fleet="local")


@pytest.mark.slow
def test_more_than_the_cluster_has_is_refused():
    scenario = Scenario.load(QUICKSTART, ["cluster.gpus_per_actor=1"])
    if open_has_gpu():
        pytest.skip("this machine has a GPU")
    with pytest.raises(ClusterError, match="GPU"), open_fleet(scenario.cluster, "ray", 1):
        pass
    assert not ray.is_initialized()


def open_has_gpu():
    import torch

    return torch.cuda.is_available()


def test_an_address_without_a_cluster_is_refused():
    scenario = Scenario.load(QUICKSTART)
    with pytest.raises(ClusterError, match="no Ray cluster at"), open_fleet(scenario.cluster, "ray", 1, "127.0.0.1:1"):
        pass


@pytest.mark.slow
def test_ray_listens_on_the_loopback_address_only(scenario):
    with open_fleet(scenario.cluster, "ray", 1):
        listening = {
            connection.laddr.ip
            for process in ray_processes()
            for connection in process.net_connections(kind="inet")
            if connection.status == psutil.CONN_LISTEN
        }
    assert listening <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
    assert listening


@pytest.mark.slow
def test_runs_in_one_process_leave_nothing_behind(tmp_path):
    scenario = Scenario.load(QUICKSTART, ["server.rounds=1"])
    files, before = [], sessions()
    for number in range(3):
        fedactors.run(scenario, tmp_path / str(number), actors=1)
        files.append(psutil.Process().num_fds())
        assert not ray.is_initialized()
    wait_until(lambda: not ray_processes())
    assert sessions() == before
    assert files[2] <= files[1] + 2
    assert threading.active_count() < 40


def sessions():
    """Return the folders of logs of those Rays that this process has started."""
    return set(Path("/tmp/ray").glob(f"session_*_{os.getpid()}"))


def wait_until(condition, seconds=20):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        threading.Event().wait(0.2)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_an_interrupted_run_ends_its_actors_and_closes_its_books(tmp_path, number):
    command = [sys.executable, "-m", "fedactors", "run", str(QUICKSTART), "--set", "server.rounds=100000"]
    process = subprocess.Popen(
        [*command, "--out", str(tmp_path / "run")], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    metrics = Path(tmp_path / "run/metrics.jsonl")
    wait_until(lambda: metrics.exists() and metrics.read_text().count("\n") > 2, seconds=240)
    children = psutil.Process(process.pid).children(recursive=True)
    if number == signal.SIGHUP:  # goes to all that a terminal has started
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.rstrip().endswith("fedactors: interrupted")
    assert "Traceback" not in said
    assert "model" in json.loads((tmp_path / "run/summary.json").read_text())["digests"]
    assert (tmp_path / "run/checkpoint/model.safetensors").exists()
    wait_until(lambda: not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children))

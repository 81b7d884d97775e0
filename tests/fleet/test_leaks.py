"""Many runs in one process: what they open, they close; except two descriptors per start that Ray keeps."""

import gc
import os
from pathlib import Path

import psutil
import pytest
import ray

import fedactors
from fedactors import Scenario
from fedactors.fleet.transport.socket_calls import POSSIBLE
from tests.fleet.conftest import QUICKSTART
from tests.fleet.test_ray import ray_processes, wait_until

SHARED_MEMORY = Path("/dev/shm")


def sizes():
    """Return (open files, threads, files in shared memory) of this process and its machine."""
    mine = psutil.Process()
    shared = len(os.listdir(SHARED_MEMORY)) if SHARED_MEMORY.exists() else 0
    return mine.num_fds(), mine.num_threads(), shared


@pytest.fixture
def no_collector():
    gc.disable()
    yield
    gc.enable()


@pytest.mark.skipif(not POSSIBLE, reason="models lie in memory files on Linux alone")
@pytest.mark.slow
def test_models_go_with_the_run(tmp_path, no_collector):
    fedactors.run(Scenario.load(QUICKSTART, ["server.rounds=2"]), tmp_path / "run", actors=2, report=False)
    assert not [name for name in open_files() if "memfd:fedactors" in name]


def open_files():
    """Return what each descriptor of this process stands for."""
    links = (Path("/proc/self/fd") / number for number in os.listdir("/proc/self/fd"))
    return [os.readlink(link) for link in links if link.is_symlink()]


@pytest.mark.slow
def test_twenty_runs_in_one_process_leak_nothing(tmp_path):
    scenario = Scenario.load(QUICKSTART, ["server.rounds=2"])
    digests, seen = set(), []
    for number in range(20):
        result = fedactors.run(scenario, tmp_path / str(number), actors=2)
        digests.add(result.summary["digests"]["model"])
        assert not ray.is_initialized()
        wait_until(lambda: not ray_processes(), seconds=30)
        seen.append(sizes())
    assert len(digests) == 1
    files, threads, shared = zip(*seen, strict=True)
    # Ray itself keeps two descriptors of each ray.init until the process ends: its core's log file and a socket
    assert max(files) <= files[0] + 2 * len(files), files
    assert max(threads[10:]) <= max(threads[2:6]) + 2, threads
    assert max(shared[10:]) <= max(shared[2:6]) + 2, shared

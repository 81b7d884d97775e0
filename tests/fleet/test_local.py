"""The fleet in this process: what was handed out is done when the call returns, so nothing is handed out ahead."""

import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

import fedactors
from fedactors.cli.main import main
from fedactors.fleet.local import LocalFleet
from fedactors.fleet.workers import Worker
from fedactors.simulation.progress import Silent
from tests.fleet.test_central import scenario


class Watched(Silent):
    """Notes how many rounds are in flight when one is told of."""

    def __init__(self, pipelines):
        self.pipelines, self.others = pipelines, []

    def round(self, row):
        self.others.append(self.pipelines[-1].in_flight)


def test_a_round_that_is_done_is_told_before_the_next_one_begins(tmp_path, pipelines):
    watched = Watched(pipelines)
    fedactors.run(scenario("fedavg", rounds=6), tmp_path / "run", fleet="local", progress=watched, report=False)
    assert watched.others == [0] * 6


@pytest.fixture
def _two_threads():
    """Have torch and the BLAS libraries compute in two threads, as they do where OMP_NUM_THREADS is 2."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    with threadpool_limits(2, user_api="blas"):
        yield
    torch.set_num_threads(before)


def threads():
    """Return in how many threads torch computes, and each BLAS library."""
    return torch.get_num_threads(), {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


@pytest.mark.usefixtures("_two_threads")
def test_a_worker_computes_in_one_thread():
    assert threads() == (2, {2})
    Worker("cpu")
    assert threads() == (1, {1})


@pytest.mark.usefixtures("_two_threads")
def test_a_fleet_in_this_process_computes_in_one_thread_and_then_restores_their_numbers():
    with LocalFleet() as fleet:
        assert threads()[1] == {1}
        fleet.start(Worker, "cpu", role="evaluator")
        assert threads() == (1, {1})
    assert threads() == (2, {2})


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_gpus_that_are_not_there_are_refused_before_anything_runs(tmp_path, capsys):
    said = "cluster.gpus_per_actor: torch finds no GPU here"
    out = tmp_path / "run"
    asking = ["quickstart", "--set", "cluster.gpus_per_actor=0.5"]
    assert main(["run", *asking, "--fleet", "local", "--out", str(out)]) == 2
    assert said in capsys.readouterr().err
    assert not out.exists()
    assert main(["check", *asking]) == 0
    assert "cluster.gpus_per_actor: torch finds no GPU on this machine" in capsys.readouterr().out

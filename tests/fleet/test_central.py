"""The central learner as an actor: it works while clients do, and changes no bit when it is killed."""

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Literal

import cloudpickle
import numpy as np
import pytest
import ray

import fedactors
from fedactors import Scenario
from fedactors.algorithms.parallel_training import ParallelTraining
from fedactors.errors import ClusterError
from fedactors.fleet.layout import Want
from fedactors.fleet.pipeline import Pipeline
from fedactors.fleet.ray.ray_fleet import RayFleet
from fedactors.fleet.ray.ray_start import _loopback
from fedactors.fleet.workers import Worker
from fedactors.simulation.prepare import prepare
from fedactors.simulation.progress import Silent
from fedactors.simulation.runner import load
from fedactors.simulation.tasks import task_of
from fedactors.simulation.verify import verify

PAPERS = Path(__file__).parents[2] / "scenarios/papers/mixed"
BASE = {
    "name": "mixed",
    "seed": 3,
    "task": {
        "dataset": "digits",
        "split": {"name": "labels", "central": [5, 6, 7, 8, 9], "positive": [5, 6, 7, 8, 9]},
        "model": {"name": "mlp", "hidden": [8]},
        "partition": {"name": "iid", "samples": 40},
    },
    "population": [{"name": "phones", "count": 8}],
    "server": {
        "rounds": 5,
        "cohort": 4,
        "local": {"steps": 3, "batch": 5},
        "schedule": {"name": "constant", "lr": 0.2},
        "data": "central",
        "dissimilarity_every": 2,
    },
}


def scenario(algorithm, **server):
    return Scenario.model_validate({**BASE, "server": {**BASE["server"], "algorithm": algorithm, **server}})


@pytest.fixture(scope="module")
def ray_running():
    with _loopback():
        ray.init("local", num_cpus=4, num_gpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


class Meeting(ParallelTraining):
    """Parallel Training in which neither side goes on before both have begun the round's work."""

    name: Literal["mixed-pt"] = "mixed-pt"
    folder: str

    def contribute(self, state, round, central):
        self.meet("central", "client")
        return super().contribute(state, round, central)

    def correction(self, sent, kept):
        self.meet("client", "central")

    def meet(self, mine, other):
        """Say that `mine` is at work, and wait until `other` has said so; each process does so once."""
        (Path(self.folder) / f"{mine}-{os.getpid()}").touch()
        limit = time.monotonic() + 120
        while not list(Path(self.folder).glob(f"{other}-*")):
            assert time.monotonic() < limit, f"{mine} work began, and {other} work waits for its end"
            threading.Event().wait(0.01)


@pytest.mark.slow
@pytest.mark.usefixtures("ray_running")
def test_central_work_and_client_work_overlap(tmp_path):
    """Each waits, in the middle of its work, for the other to be at work: one after the other would never end."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    meeting = scenario("mixed-pt")
    meeting.server.__dict__["algorithm"] = Meeting(folder=str(tmp_path))
    prepared = prepare(meeting)
    with RayFleet(1, central=Want(cpus=1.0)) as fleet:
        pipeline = Pipeline(fleet, *load(prepared))
        plan = next(prepared.clock())
        pipeline.submit(task_of(plan, prepared, "cpu", last=True))
        found = pipeline.finish()
        state = pipeline.state(1)
    assert found.evaluated is not None
    workers = {path.name.split("-")[0]: path.name.split("-")[1] for path in tmp_path.iterdir()}
    assert len(set(workers.values())) == 2
    expected = fedactors.run(scenario("mixed-pt", rounds=1), tmp_path / "run", fleet="local")
    assert np.array_equal(state["x"], expected.state["x"])


class CentralHost(Worker):
    """Says what Ray has given the central learner."""

    def __init__(self):
        super().__init__("cpu")

    def given(self):
        return ray.get_runtime_context().get_assigned_resources()


@pytest.mark.slow
@pytest.mark.usefixtures("ray_running")
def test_the_central_learner_is_given_the_cores_and_the_gpu_it_is_to_keep():
    """Of a GPU that Ray is told of, whether or not there is one."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with RayFleet(1, central=Want(cpus=2.0, gpus=1.0)) as fleet:
        assert fleet.get(fleet.call(fleet.start(CentralHost, role="central learner"), "given")) == {
            "CPU": 2.0,
            "GPU": 1.0,
        }
        assert "1 central learner (2 CPU, 1 GPU each)" in fleet.placement
    with pytest.raises(ClusterError, match=r"cluster\.central_cpus.*no central learner"):
        fedactors.run(Scenario.model_validate({**scenario("fedavg").dump(), "cluster": {"central_cpus": 1}}))


class Killer(Silent):
    """Kills the central learner with SIGKILL at a round."""

    def __init__(self, pipelines):
        self.pipelines, self.notes = pipelines, []

    def round(self, row):
        if row["round"] == 2:
            (stub,) = self.pipelines[-1].central
            os.kill(ray.get(stub.actor.about.remote())["pid"], signal.SIGKILL)

    def note(self, text):
        self.notes.append(text)


@pytest.mark.usefixtures("ray_running")
@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["mixed-1w", "mixed-pt", "mixed-2w"])
def test_a_central_learner_killed_in_the_middle_changes_no_bit(algorithm, tmp_path, monkeypatch):
    pipelines, original = [], Pipeline.__init__

    def remember(self, *args, **kwargs):
        original(self, *args, **kwargs)
        pipelines.append(self)

    monkeypatch.setattr(Pipeline, "__init__", remember)
    calm = fedactors.run(scenario(algorithm, rounds=12), tmp_path / "calm", fleet="local")
    killer = Killer(pipelines)
    result = fedactors.run(scenario(algorithm, rounds=12), tmp_path / "killed", actors=2, progress=killer)
    assert result.summary["digests"] == calm.summary["digests"]
    assert killer.notes, "the fault must be told"


BITS = [("local", 1), ("ray", 1), ("ray", 2)]


@pytest.mark.slow
@pytest.mark.usefixtures("ray_running")
@pytest.mark.parametrize("algorithm", ["mixed-pt", "mixed-1w", "mixed-2w", "mixed-et"])
def test_every_mixed_algorithm_gives_the_same_bits_on_every_fleet(algorithm):
    """With partial work: slow devices do two steps of three."""
    groups = [
        {"name": name, "count": 4, "compute": {"per_sample": each}} for name, each in (("a", "10ms"), ("b", "30ms"))
    ]
    base = scenario({"name": algorithm, "central_batch": 20}, deadline="450ms").dump()
    found = verify(Scenario.model_validate({**base, "population": groups}), BITS)
    assert found["equal"], found


@pytest.mark.slow
@pytest.mark.usefixtures("ray_running")
@pytest.mark.parametrize("path", sorted(PAPERS.glob("*-reduced.yaml")), ids=lambda path: path.stem)
def test_the_papers_scenarios_give_the_same_bits_on_every_fleet(path):
    if "mnist" in path.read_text() and "FEDACTORS_DATA" not in os.environ:
        pytest.skip("FEDACTORS_DATA names no folder with the data sets")
    found = verify(Scenario.load(path, ["server.rounds=6", "server.dissimilarity_every=3"]), BITS)
    assert found["equal"], found

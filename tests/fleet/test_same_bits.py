"""The same bits on every fleet, with client hosts killed on the way."""

import os
import signal

import pytest
import ray

import fedactors
from fedactors import Scenario
from fedactors.fleet import pipeline
from fedactors.fleet.ray.ray_start import _loopback
from fedactors.simulation.progress import Silent
from fedactors.simulation.verify import verify
from tests.fleet.conftest import QUICKSTART


@pytest.fixture(scope="module")
def ray_running():
    """One Ray for several tests: runs join it, and leave it as they found it."""
    with _loopback():
        ray.init("local", num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


@pytest.mark.usefixtures("ray_running")
def test_digests_are_equal_for_the_local_fleet_and_ray():
    """A sample, for every day, of the test below."""
    found = verify(Scenario.load(QUICKSTART, ["server.rounds=4"]), [("local", 1), ("ray", 2)])
    assert found["equal"]


@pytest.mark.slow
@pytest.mark.usefixtures("ray_running")
def test_digests_are_equal_for_the_local_fleet_and_ray_with_one_two_and_three_actors(scenario):
    found = verify(scenario)
    assert [(run["fleet"], run["actors"]) for run in found["runs"]] == [
        ("local", 1),
        ("ray", 1),
        ("ray", 2),
        ("ray", 3),
    ]
    assert len({tuple(sorted(run["digests"].items())) for run in found["runs"]}) == 1
    assert found["equal"]


@pytest.mark.slow
@pytest.mark.usefixtures("ray_running")
def test_rounding_to_bfloat16_gives_the_same_bits_everywhere_and_others_than_float32():
    exact, rounded = (Scenario.load(QUICKSTART, ["server.rounds=3", f"precision={p}"]) for p in ("fp32", "bf16"))
    found = verify(rounded, [("local", 1), ("ray", 2)])
    assert found["equal"]
    exact = verify(exact, [("local", 1)])["runs"][0]["digests"]
    assert exact["plans"] == found["runs"][0]["digests"]["plans"]
    assert exact["model"] != found["runs"][0]["digests"]["model"]


SERVERS = {
    "rounds": {"cohort": 12},
    "heads": {"cohort": 12, "personal": ["3.*"]},
    "older models": {"timing": {"name": "fedbuff", "concurrency": 12, "buffer": 4}},
}


@pytest.mark.slow
@pytest.mark.usefixtures("ray_running")
@pytest.mark.parametrize("name", SERVERS)
def test_a_loss_by_what_the_global_model_answers_has_the_same_bits_everywhere(name):
    said = {
        "name": "answers",
        "task": {"dataset": "digits", "model": {"name": "mlp", "hidden": [16]}, "partition": "iid"},
        "population": [{"name": "phones", "count": 20, "compute": {"per_sample": "10ms", "spread": 0.5}}],
        "server": {"rounds": 3, "algorithm": "fedntd", "local": {"epochs": 1, "batch": 10}, **SERVERS[name]},
    }
    assert verify(Scenario.model_validate(said), [("local", 1), ("ray", 2)])["equal"]


@pytest.mark.slow
@pytest.mark.usefixtures("ray_running")
def test_weights_by_losses_of_clients_have_the_same_bits_everywhere():
    said = {
        "name": "fair",
        "task": {
            "dataset": "digits",
            "model": {"name": "mlp", "hidden": [16]},
            "partition": {"name": "dirichlet", "alpha": 0.5},
        },
        "population": [{"name": "phones", "count": 20, "compute": {"per_sample": "10ms", "spread": 0.5}}],
        "server": {"rounds": 3, "cohort": 12, "algorithm": "qfedavg", "local": {"epochs": 1, "batch": 10}},
    }
    assert verify(Scenario.model_validate(said), [("local", 1), ("ray", 2)])["equal"]


class Killer(Silent):
    """Kills a client host with SIGKILL at a round."""

    def __init__(self, at):
        self.at, self.notes, self.killed = at, [], None

    def round(self, row):
        if row["round"] == self.at:
            hosts = pipelines[-1].hosts
            self.killed = ray.get(hosts[0].actor.about.remote())["pid"]
            os.kill(self.killed, signal.SIGKILL)

    def note(self, text):
        self.notes.append(text)


pipelines = []


@pytest.fixture
def watched(monkeypatch):
    """Keep hold of the pipelines that runs make, to find their actors."""
    original = pipeline.Pipeline.__init__

    def remember(self, *args, **kwargs):
        original(self, *args, **kwargs)
        pipelines.append(self)

    monkeypatch.setattr(pipeline.Pipeline, "__init__", remember)


@pytest.mark.usefixtures("watched", "ray_running")
@pytest.mark.slow
@pytest.mark.parametrize("actors", [1, 2])
def test_a_host_killed_in_the_middle_changes_no_bit(scenario, tmp_path, actors):
    expected = fedactors.run(scenario, tmp_path / "calm", fleet="local").summary["digests"]
    killer = Killer(at=3)
    result = fedactors.run(scenario, tmp_path / "killed", actors=actors, progress=killer)
    assert result.summary["digests"] == expected
    assert killer.killed
    assert killer.notes, "the fault must be told"
    assert "Actor" in (tmp_path / "killed/faults.jsonl").read_text()

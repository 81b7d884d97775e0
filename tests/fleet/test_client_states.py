"""What clients keep: same bits on every fleet and with killed hosts, adopted once and only when the round succeeded."""

import json
import os
import signal

import numpy as np
import pytest
import ray

import fedactors
from fedactors import Scenario
from fedactors.fleet.client_states import ClientStates
from fedactors.fleet.local import LocalFleet
from fedactors.fleet.pipeline import Pipeline
from fedactors.simulation import execution, runner
from fedactors.simulation.prepare import prepare
from fedactors.simulation.progress import Silent
from fedactors.simulation.tasks import task_of
from fedactors.simulation.verify import verify
from tests.fleet.conftest import QUICKSTART

ALGORITHMS = ["scaffold", "feddyn"]


def scenario_of(algorithm, *more):
    return Scenario.load(QUICKSTART, ["server.rounds=7", f"server.algorithm={algorithm}", *more])


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_digests_are_equal_on_the_local_fleet_and_on_ray(algorithm):
    found = verify(scenario_of(algorithm), fleets=(("local", 1), ("ray", 2)))
    assert found["equal"], json.dumps(found, indent=2)


class Killer(Silent):
    """Kills a client host with SIGKILL at a round."""

    def __init__(self, pipelines, at):
        self.pipelines, self.at, self.notes = pipelines, at, []

    def round(self, row):
        if row["round"] == self.at:
            os.kill(ray.get(self.pipelines[-1].hosts[0].actor.about.remote())["pid"], signal.SIGKILL)

    def note(self, text):
        self.notes.append(text)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_host_killed_in_the_middle_changes_no_bit_of_any_clients_state(algorithm, tmp_path, kept, pipelines):
    expected = fedactors.run(scenario_of(algorithm), tmp_path / "calm", fleet="local").summary["digests"]
    calm = kept.pop()
    killer = Killer(pipelines, at=3)
    result = fedactors.run(scenario_of(algorithm), tmp_path / "killed", actors=2, progress=killer)
    assert killer.notes
    assert result.summary["digests"] == expected
    stormy = kept.pop()
    assert calm.keys() == stormy.keys()
    assert len(calm) > 40
    for client, vectors in calm.items():
        for name, value in vectors.items():
            assert np.array_equal(value, stormy[client][name]), (client, name)


@pytest.fixture
def kept(monkeypatch):
    """Keep what the clients of each run keep at its end."""
    found, original = [], execution.Execution._conclude

    def conclude(self, ended):
        found.append({client: {k: np.copy(v) for k, v in state.items()} for client, state in self._pipeline.kept()})
        return original(self, ended)

    monkeypatch.setattr(execution.Execution, "_conclude", conclude)
    return found


@pytest.mark.parametrize(("algorithm", "mean", "name"), [("scaffold", "c", "c"), ("feddyn", "r", "r")])
def test_the_servers_mean_is_the_mean_of_what_clients_keep_after_every_round(algorithm, mean, name):
    """I-SC2 and I-FD1 in a real run with partial work, offline clients, and several rounds in flight."""
    prepared = prepare(scenario_of(algorithm))
    with LocalFleet() as fleet:
        pipeline = Pipeline(fleet, *runner.load(prepared))
        for plan in prepared.clock():
            pipeline.submit(task_of(plan, prepared, "cpu", last=False))
            if pipeline.in_flight == 3:
                agree(pipeline, pipeline.finish().version + 1, mean, name, len(prepared.population))
        while pipeline.in_flight:
            agree(pipeline, pipeline.finish().version + 1, mean, name, len(prepared.population))


def agree(pipeline, version, mean, name, clients):
    total = np.sum([state[name].astype(float) for _, state in pipeline.kept()], axis=0)
    found = pipeline.state(version)[mean]
    np.testing.assert_allclose(found, total / clients, rtol=2e-3, atol=2e-5 * np.abs(found).max())


def test_proposals_chain_over_rounds_in_flight_and_are_adopted_in_order():
    states = ClientStates()
    states.propose(0, [1, 2], ["a1", "a2"])
    states.propose(1, [2, 3], ["b2", "b3"])
    assert [states.of(client) for client in (1, 2, 3, 4)] == ["a1", "b2", "b3", None]
    states.adopt(0)
    assert states.items() == [(1, "a1"), (2, "a2")]
    assert states.of(2) == "b2"
    states.drop()
    assert [states.of(client) for client in (1, 2, 3)] == ["a1", "a2", None]
    states.forget([1, 9])
    assert states.items() == [(2, "a2")]


@pytest.mark.slow
def test_client_state_that_does_not_fit_the_object_store_is_spilled(tmp_path):
    """60 clients keep 6 MB each in a store of 100 MB; the bits are those of the fleet in one process."""
    task = {"dataset": "digits", "model": {"name": "mlp", "hidden": [20_000]}, "partition": "iid"}
    server = {
        "rounds": 2,
        "cohort": 60,
        "algorithm": "scaffold",
        "local": {"steps": 1, "batch": 2},
        "evaluate_every": 9,
    }
    spilling = Scenario.model_validate(
        {
            "name": "spill",
            "task": task,
            "population": [{"name": "phones", "count": 60}],
            "server": server,
            "cluster": {"object_store": "100 MB"},
        }
    )
    expected = fedactors.run(spilling, tmp_path / "local", fleet="local").summary["digests"]
    assert fedactors.run(spilling, tmp_path / "ray", actors=1).summary["digests"] == expected


def test_going_back_to_a_snapshot_brings_back_what_clients_kept():
    """A round that is tried, undone and played again leaves the state of a round that was played once."""
    prepared = prepare(scenario_of("scaffold", "server.cohort=all", "server.deadline=none"))
    plans = prepared.clock()
    first, second, third = (task_of(next(plans), prepared, "cpu", last=False) for _ in range(3))
    with LocalFleet() as fleet:
        pipeline = Pipeline(fleet, *runner.load(prepared))

        def played(*tasks):
            for task in tasks:
                pipeline.submit(task)
                pipeline.finish()
            return pipeline.state(tasks[-1].facts.version + 1)

        played(first)
        snapshot = pipeline.snapshot()
        expected = played(second, third)
        pipeline.rewind(snapshot)
        found = played(second, third)
    assert all(np.array_equal(found[name], expected[name]) for name in expected)

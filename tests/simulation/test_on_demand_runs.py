"""Runs over samples that are made on demand: the same results, and no samples of clients that are never asked."""

import pytest
import yaml

import fedactors
from fedactors import load_run
from fedactors.data import on_demand
from fedactors.data.sets.synthetic_data import SyntheticClients
from fedactors.run_files import records
from fedactors.simulation.prepare import prepare
from fedactors.simulation.prepared import Prepared
from fedactors.simulation.resume.branch import branch
from fedactors.simulation.runner import resume

WIDE = {
    "name": "wide",
    "task": {"dataset": {"name": "synthetic", "samples": 40}, "model": "logistic", "partition": "natural"},
    "population": [{"name": "phones", "count": 60, "compute": {"per_sample": "1ms"}}],
    "server": {
        "rounds": 5,
        "cohort": 12,
        "local": {"epochs": 2, "batch": 10},
        "schedule": {"name": "constant", "lr": 0.1},
    },
}


def scenario(tmp_path, **changes):
    path = tmp_path / "wide.yaml"
    path.write_text(yaml.safe_dump(WIDE))
    return fedactors.Scenario.load(path, [f"{key}={value}" for key, value in changes.items()])


def digests(folder, wide):
    fedactors.run(wide, folder, fleet="local", report=False)
    return load_run(folder).summary["digests"]


@pytest.mark.parametrize("algorithm", ["fedavg", "scaffold"])
def test_the_result_is_that_of_data_made_beforehand(tmp_path, monkeypatch, algorithm):
    wide = scenario(tmp_path, **{"server.algorithm": algorithm})
    assert prepare(wide).client_source is not None
    found = digests(tmp_path / "on-demand", wide)
    monkeypatch.setattr(Prepared, "client_source", None)
    assert digests(tmp_path / "beforehand", wide) == found


def test_a_branch_with_more_rounds_may_have_its_data_made_beforehand(tmp_path):
    fedactors.run(scenario(tmp_path), tmp_path / "run", fleet="local", report=False)
    longer = scenario(tmp_path, **{"server.rounds": 7})
    assert prepare(longer).client_source is None
    found = branch(tmp_path / "run", 3, ["server.rounds=7"], tmp_path / "branch", fleet="local", report=False)
    assert found.summary["digests"] == digests(tmp_path / "longer", longer)


def test_a_full_ring_changes_no_result(tmp_path, monkeypatch):
    wide = scenario(tmp_path)
    found = digests(tmp_path / "all", wide)
    monkeypatch.setattr(on_demand.OnDemandSplit.__init__, "__defaults__", (1,))
    monkeypatch.setattr("fedactors.simulation.loaded_data.most_together", lambda cohort: 12)
    assert digests(tmp_path / "ring", wide) == found


def test_clients_that_are_never_asked_have_no_samples(tmp_path, monkeypatch):
    asked = set()
    whole = SyntheticClients.samples

    def noted(self, client):
        asked.add(client)
        return whole(self, client)

    monkeypatch.setattr(SyntheticClients, "samples", noted)
    run = tmp_path / "run"
    digests(run, scenario(tmp_path, **{"server.rounds": 2, "task.dataset.test_clients": 3}))
    assert asked == set(records.read(run).orders["client"]) | {0}  # the data are identified by the first client
    assert len(asked) < 30


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"server.rounds": 6}, "clients are asked more than once"),
        ({"server.data": "{name: iid, samples: 20}", "server.algorithm": "fsl"}, "the server takes samples of all"),
    ],
)
def test_data_are_made_beforehand_where_all_are_needed(tmp_path, changes, why):
    assert prepare(scenario(tmp_path, **changes)).client_source is None, why


def test_a_killed_run_goes_on_with_the_same_bits(tmp_path):
    wide = scenario(tmp_path)
    found = digests(tmp_path / "whole", wide)
    half = tmp_path / "half"
    fedactors.run(wide, half, fleet="local", report=False, stop_after=2)
    resume(half, fleet="local", report=False)
    assert load_run(half).summary["digests"] == found

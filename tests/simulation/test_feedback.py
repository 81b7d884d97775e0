"""Runs that select clients by what they learned: same bits everywhere, recorded, replayed, gone on with."""

import json

import numpy as np
import pytest

import fedactors
from fedactors.errors import RunFolderError, ScenarioError
from fedactors.simulation.record.metric_rows import MetricRows
from fedactors.simulation.record.run_totals import RunTotals
from fedactors.simulation.replay import replay
from fedactors.simulation.runner import resume
from tests.algorithms.test_runs import scenario

POLICIES = [
    {"selection": {"name": "power-of-choice", "candidates": 8}},
    {"selection": "oort"},
    {"selection": "oort", "cohort": "all", "timing": {"name": "fedbuff", "concurrency": 5, "buffer": 2}},
]


def with_feedback(policy, **server):
    return scenario(**{"rounds": 8, "evaluate_every": 3, "cohort": 4, **policy, **server})


@pytest.mark.parametrize("policy", POLICIES, ids=["power-of-choice", "oort", "oort-fedbuff"])
def test_losses_decide_are_recorded_and_can_be_replayed(tmp_path, policy):
    made = with_feedback(policy)
    found = fedactors.run(made, tmp_path / "run", fleet="local", report=False)
    assert found.summary["plans"] == 8
    rows = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert all(len(row["losses"]) == row["heard"] for row in rows)
    lottery = fedactors.run(
        with_feedback({**policy, "selection": "uniform"}), tmp_path / "lot", fleet="local", report=False
    )
    assert lottery.summary["digests"]["plans"] != found.summary["digests"]["plans"]
    again = replay(made, feedback=tmp_path / "run").summary
    assert again["digests"]["plans"] == found.summary["digests"]["plans"]


def test_a_run_that_steers_goes_on_where_it_stopped(tmp_path):
    made = with_feedback(POLICIES[1])
    whole = fedactors.run(made, tmp_path / "whole", fleet="local", report=False)
    fedactors.run(made, tmp_path / "run", fleet="local", report=False, stop_after=5)
    found = resume(tmp_path / "run", fleet="local", report=False)
    assert found.summary["digests"] == whole.summary["digests"]


def test_an_asynchronous_run_goes_on_where_it_stopped(tmp_path):
    """Its checkpoint holds the older models that updates in flight started from."""
    timing = {"name": "fedbuff", "concurrency": 6, "buffer": 2}
    made = scenario(rounds=9, cohort="all", timing=timing, algorithm="scaffold")
    whole = fedactors.run(made, tmp_path / "whole", fleet="local", report=False)
    fedactors.run(made, tmp_path / "run", fleet="local", report=False, stop_after=4)
    found = resume(tmp_path / "run", fleet="local", report=False)
    assert found.summary["digests"] == whole.summary["digests"]
    assert found.summary["staleness"]["max"] > 1


def test_the_last_model_is_examined_although_nobody_knew_that_it_was(tmp_path):
    """Virtual time ends the run in the middle of a stretch without examinations."""
    made = with_feedback(POLICIES[0], rounds=99, until="3s", evaluate_every=50)
    found = fedactors.run(made, tmp_path / "run", fleet="local", report=False).summary
    assert found["ended_because"] == "virtual time limit"
    assert 0 <= found["final"]["accuracy"] <= 1


def test_a_replay_without_losses_is_refused(tmp_path):
    with pytest.raises(ScenarioError, match="--feedback"):
        replay(with_feedback(POLICIES[1]))
    run = fedactors.run(scenario(), tmp_path / "run", fleet="local", report=False).folder
    with pytest.raises(RunFolderError, match="no losses of round 1"):
        replay(with_feedback(POLICIES[1]), feedback=run)


def gini(given, devices):
    totals = RunTotals(devices=devices)
    totals.given = np.array(given, np.int64)
    return totals.summary()["fairness"]["gini"]


def test_contributions_are_as_uneven_as_gini_says():
    """Four devices that give 1, 1, 1, 1; 0, 0, 0, 4; 1, 2, 3, 4: mean differences 0, 1.5, 1.25 over twice the mean."""
    assert gini([1, 1, 1, 1], 4) == 0
    assert gini([4], 4) == pytest.approx(0.75)
    assert gini([4, 2, 1, 3], 4) == pytest.approx(0.25)
    assert gini([], 4) == 0


def test_rows_of_metrics_are_read_when_a_program_asks_for_them(tmp_path, monkeypatch):
    """A run reads its rows twice, one at a time, for its summary; no list of them is made until `metrics` is read."""
    made, loops = with_feedback(POLICIES[0]), []
    every = MetricRows.__iter__
    monkeypatch.setattr(MetricRows, "__iter__", lambda self: loops.append(len(self)) or every(self))
    found = fedactors.run(made, tmp_path / "run", fleet="local", report=False)
    assert loops == [0, 8, 8]
    rows = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert found.metrics == list(found.rows) == rows
    assert found.metrics is found.metrics

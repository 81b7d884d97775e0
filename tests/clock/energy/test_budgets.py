"""Budgets: no further round begins once they are spent, in rounds and without them, in runs as in replays."""

import pytest

import fedactors
from fedactors import Scenario
from fedactors.errors import ScenarioError
from fedactors.simulation.inspect.audit import audit
from fedactors.simulation.replay import replay
from tests.fleet.conftest import QUICKSTART

ENERGY = "population.phones.energy={down: 0.8 W, compute: 3 W, up: 1.2 W, carbon: 400 g/kWh}"
FEDBUFF = [
    "server.cohort=all",
    "server.participation=uniform",
    "server.timing={name: fedbuff, concurrency: 20, buffer: 8}",
]


TIMINGS = pytest.mark.parametrize("timing", [[], FEDBUFF], ids=["rounds", "fedbuff"])


def replayed(*changes):
    return replay(Scenario.load(QUICKSTART, [ENERGY, *changes])).summary


@TIMINGS
@pytest.mark.parametrize(
    ("budget", "spent"),
    [
        ("{energy: 2 kJ}", lambda summary: summary["joules"] - 2_000),
        ("{carbon: 250 mg}", lambda summary: summary["co2_grams"] - 0.25),
        ("{traffic: 3 MB, energy: 5 kWh}", lambda summary: sum(summary["bytes"].values()) - 3e6),
    ],
)
def test_the_round_that_spends_the_rest_is_the_last(timing, budget, spent):
    summary = replayed(*timing, f"server.budget={budget}")
    assert 1 < summary["plans"] < 60
    assert summary["ended_because"].startswith("the budget of ")
    assert summary["ended_because"].endswith("is spent")
    assert summary["ended"] == "budget"
    assert sum(summary["outcomes"].values()) == summary["asked"], "whoever was under way is cancelled"
    assert spent(summary) >= 0
    if not timing:
        assert spent(replayed(f"server.rounds={summary['plans'] - 1}")) < 0


@TIMINGS
def test_a_summary_says_of_which_kind_the_end_was(timing):
    assert replayed(*timing, "server.rounds=4")["ended"] == "done"
    assert replayed(*timing, "server.until=9s")["ended"] == "time"


def test_a_run_ends_as_its_replay_does_and_its_records_agree(tmp_path):
    scenario = Scenario.load(QUICKSTART, [ENERGY, "server.budget={energy: 150 J}"])
    summary = fedactors.run(scenario, tmp_path / "run", fleet="local", report=False).summary
    replayed = replay(scenario, tmp_path / "replay").summary
    for key in ("plans", "joules", "joules_wasted", "joules_of_stages", "co2_grams", "ended", "ended_because"):
        assert summary[key] == replayed[key]
    assert "loss" in summary["final"], "the last model is evaluated"
    found = audit(tmp_path / "run")
    assert found["sound"], found
    assert "budget of 150 J" in summary["ended_because"]


def test_a_budget_of_what_nobody_counts_is_refused():
    with pytest.raises(ScenarioError, match=r"server\.budget\.energy: no population group says"):
        Scenario.load(QUICKSTART, ["server.budget={energy: 5 kWh}"])
    with pytest.raises(ScenarioError, match=r"server\.budget\.carbon: no population group's electricity emits any"):
        Scenario.load(QUICKSTART, ["population.phones.energy={compute: 3 W}", "server.budget={carbon: 5 g}"])
    with pytest.raises(ScenarioError, match="nothing is limited"):
        Scenario.load(QUICKSTART, ["server.budget={}"])


def test_without_watts_run_folders_have_no_new_file(tmp_path):
    changes = ["server.rounds=2", "population.phones.energy={per_step: 1 J}"]
    summary = replay(Scenario.load(QUICKSTART, changes), tmp_path / "old").summary
    assert "joules" in summary
    assert not {"joules_of_stages", "co2_grams"} & summary.keys()
    assert not (tmp_path / "old/stages.parquet").exists()

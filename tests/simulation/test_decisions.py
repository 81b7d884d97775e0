"""Who decides about departures: by the rule, with its numbers written down, or by trying both futures."""

import json

import numpy as np
import pytest

import fedactors
from fedactors.algorithms.members.departure import Constants, excludes
from fedactors.errors import ScenarioError
from fedactors.fleet.local import LocalFleet
from fedactors.fleet.pipeline import Pipeline
from fedactors.learning.local_optimum import local_optimum
from fedactors.simulation.departure_decisions import by_rule
from fedactors.simulation.objective_state import Objective, Verdict, settled
from fedactors.simulation.prepare import prepare
from fedactors.simulation.record.metric_rows import MetricRows
from fedactors.simulation.runner import load, resume
from fedactors.simulation.tasks import task_of
from tests.simulation.test_moving import run, scenario

GROUPS = ({}, {}, {}, {"depart": "50s"})


def membership(departures):
    return {"name": "vanilla", "departures": departures, "trial_rounds": 5}


def decided(result):
    return [move for row in result.metrics for move in row.get("moves", ())]


@pytest.mark.parametrize("rate", [0.05, 1.5])
def test_lookahead_takes_the_better_of_two_runs_and_leaves_no_trace(tmp_path, rate):
    """A run that includes and one that excludes give the losses that it wrote down; it goes on as the better one."""
    both = {
        name: run(
            tmp_path / name, *GROUPS, rounds=8, membership=membership(name), rate={"name": "staircase", "lr": rate}
        )
        for name in ("include", "exclude", "lookahead")
    }
    (move,) = decided(both["lookahead"])
    losses = {name: both[name].summary["final"]["loss"] for name in ("include", "exclude")}
    assert move["numbers"] == {f"loss_{name}": loss for name, loss in losses.items()}
    best = "exclude" if losses["exclude"] <= losses["include"] else "include"
    assert move["decision"] == best
    assert both["lookahead"].summary["digests"]["model"] == both[best].summary["digests"]["model"]
    assert both["lookahead"].summary["final"] == both[best].summary["final"]


def test_several_departures_are_tried_one_after_the_other(tmp_path):
    groups = ({}, {}, {"depart": "30s"}, {"depart": "30s"}, {"depart": "50s"})
    found = run(tmp_path / "run", *groups, rounds=8, membership=membership("lookahead"))
    assert [move["client"] for move in decided(found)] == [2, 3, 4]


@pytest.mark.parametrize("departures", ["auto", "lookahead"])
def test_decisions_are_resumed_with_the_same_bits(tmp_path, departures):
    """Stopped before the decision and after it; what was decided is not decided again."""
    whole = run(tmp_path / "whole", *GROUPS, rounds=8, membership=membership(departures))
    for stop in (4, 5, 7):
        path = tmp_path / str(stop)
        fedactors.run(
            scenario(*GROUPS, rounds=8, membership=membership(departures)), path, fleet="local", stop_after=stop
        )
        again = resume(path, fleet="local")
        assert again.summary["digests"] == whole.summary["digests"]
        rows = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
        assert [move for row in rows for move in row.get("moves", ())] == decided(whole)


def test_auto_writes_down_what_it_decided_by(tmp_path):
    found = run(tmp_path / "run", *GROUPS, rounds=8, membership=membership("auto"))
    (move,) = decided(found)
    numbers = move["numbers"]
    constants = Constants(**{name: numbers[name] for name in Constants._fields})
    assert (constants.done, constants.rounds, constants.local_steps) == (5, 8, 4)
    assert excludes(constants) == (move["decision"] == "exclude")
    assert numbers["share"] == 0.25
    assert numbers["gamma_l"] == pytest.approx(numbers["loss_device"] - numbers["loss_alone"])
    assert numbers["gamma_l"] > 0
    assert numbers["d"] == pytest.approx(4 * numbers["gamma_l"])


def test_the_last_member_is_kept_by_auto(tmp_path):
    found = run(tmp_path / "run", {"depart": "20s"}, {"arrive": "40s"}, membership=membership("auto"))
    assert [move["decision"] for move in decided(found)] == ["include", "include"]


def test_the_last_member_that_holds_samples_is_kept_by_auto(tmp_path):
    prepared = prepare(scenario({"depart": "20s"}, {}, membership=membership("auto")))
    prepared.held[:] = (40, 0)
    objective = Objective(prepared)
    objective.at(next(prepared.clock()), settled("include"))
    with LocalFleet() as fleet:
        pipeline = Pipeline(fleet, *load(prepared))
        found = by_rule(prepared, pipeline, objective, 0, 1, MetricRows(tmp_path / "metrics.jsonl"))
    assert found == Verdict(False, {"share": 1.0})


def test_a_device_alone_is_trained_by_the_engine_of_the_hosts():
    """It gets better by itself at a small rate; rounds that hurt are taken back; without rounds it stays as it is."""
    prepared = prepare(scenario(*GROUPS))
    with LocalFleet() as fleet:
        task, samples, evaluation_set, own = load(prepared)
        pipeline = Pipeline(fleet, task, samples, evaluation_set, own)
        plan = next(iter(prepared.clock()))
        pipeline.submit(task_of(plan, prepared, "cpu", last=True))
        pipeline.finish()
        x = pipeline.state(1)["x"]
        small, none = pipeline.local_optimum(3, 0.1, 10), pipeline.local_optimum(3, 0.1, 0)
        wild = local_optimum(task, samples, 3, x, 1e4, 3, 1)
    assert none["loss_alone"] == none["loss_device"] == small["loss_device"] == wild["loss_device"]
    assert small["loss_alone"] < small["loss_device"]
    assert wild["loss_alone"] == wild["loss_device"]
    assert np.isfinite(small["loss_alone"])


def test_lookahead_is_refused_where_clients_are_selected_by_what_was_learned():
    data = scenario(
        *GROUPS, cohort=2, selection={"name": "power-of-choice", "candidates": 3}, membership=membership("lookahead")
    )
    with pytest.raises(ScenarioError, match="lookahead cannot try futures"):
        prepare(data)


@pytest.mark.slow
@pytest.mark.parametrize("departures", ["auto", "lookahead"])
def test_a_cluster_decides_with_the_same_bits(tmp_path, departures):
    """I-S2, with decisions that need learned values."""
    alone = run(tmp_path / "local", *GROUPS, rounds=8, membership=membership(departures))
    data = scenario(*GROUPS, rounds=8, membership=membership(departures))
    found = fedactors.run(data, tmp_path / "ray", fleet="ray", actors=2)
    assert found.summary["digests"] == alone.summary["digests"]

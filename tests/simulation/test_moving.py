"""Arrivals and departures in whole runs: who is trained for, who is tested on, and what resuming does to it."""

import json

import numpy as np
import pytest

import fedactors
from fedactors import Scenario
from fedactors.fleet.local import LocalFleet
from fedactors.fleet.messages import SavedState
from fedactors.fleet.pipeline import Pipeline
from fedactors.learning.evaluation import ModelEvaluator
from fedactors.simulation.objective_state import Objective, settled
from fedactors.simulation.prepare import prepare
from fedactors.simulation.runner import load, resume
from fedactors.simulation.tasks import task_of

RATE = {"name": "staircase", "lr": 0.3}


def scenario(*groups, rounds=6, rate=RATE, **server):
    population = [
        {"name": f"g{k}", "count": 1, "compute": {"per_sample": f"{10 + k}ms"}, **group}
        for k, group in enumerate(groups)
    ]
    said = {
        "rounds": rounds, "among": "members", "deadline": "10s", "close_early": False,
        "local": {"epochs": 1, "batch": 10}, "schedule": rate, "participation": "C", "membership": "fast-reboot",
    }  # fmt: skip
    task = {
        "dataset": "digits",
        "model": {"name": "mlp", "hidden": [8]},
        "partition": {"name": "classes", "classes": 2, "samples": 40, "test_samples": 20},
    }
    return Scenario.model_validate(
        {"name": "moving", "seed": 4, "task": task, "population": population, "server": {**said, **server}}
    )


def run(folder, *groups, **changes):
    return fedactors.run(scenario(*groups, **changes), folder, fleet="local")


def columns(result, *names):
    return [tuple(row.get(name) for name in names) for row in result.metrics]


def test_a_device_that_arrives_before_round_1_changes_nothing(tmp_path):
    """The server learns for 50 s before the first round; who arrives meanwhile was there from the start."""
    before = {
        "data": {"name": "clients", "clients": 2, "samples": 25},
        "pretraining": {"epochs": 1},
        "compute_per_sample": "1s",
    }
    early = run(tmp_path / "a", {}, {}, {"arrive": "30s"}, **before)
    always = run(tmp_path / "b", {}, {}, {}, **before)
    assert columns(early, "accuracy", "loss", "lr", "moves") == columns(always, "accuracy", "loss", "lr", "moves")
    assert early.summary["digests"]["model"] == always.summary["digests"]["model"]


def test_the_test_set_and_the_rate_follow_the_members(tmp_path):
    found = run(tmp_path / "run", {}, {}, {"arrive": "20s", "depart": "40s"})
    prepared = prepare(scenario(*[{}] * 3))
    training_task, _, evaluation_set, _ = load(prepared)
    hosted = [set(evaluation_set.y[training_task.holdout.of(k)].tolist()) for k in range(3)]
    assert [len(training_task.holdout.of(k)) for k in range(3)] == [20] * 3
    assert all(len(mine) == 2 for mine in hosted)
    assert [row["lr"] for row in found.metrics] == pytest.approx([0.3, 0.15, 0.3, 0.15, 0.3, 0.15])
    moves = [(row["round"], m["client"], m["event"], m["after"]) for row in found.metrics for m in row.get("moves", ())]
    assert moves == [(3, 2, "arrival", 2), (5, 2, "departure", 4)]
    # the last model, examined by hand on what the two who stayed hold out
    rows = np.concatenate([training_task.holdout.of(k) for k in (0, 1)])
    expected = ModelEvaluator(training_task.model, evaluation_set).evaluate(found.state["x"], rows)
    assert found.summary["final"] == pytest.approx(expected)


@pytest.mark.parametrize("departures", ["include", "exclude"])
def test_excluding_equals_from_then_on_a_run_that_never_had_it_given_the_same_model(tmp_path, departures):
    """From round 4 on, a population without the device goes on from the same model: bit for bit, if it is excluded."""
    groups = ({}, {}, {"depart": "30s"})
    constant = {"name": "constant", "lr": 0.1}
    membership = {"name": "vanilla", "departures": departures}
    whole = run(tmp_path / "run", *groups, rate=constant, membership=membership, participation="B")
    first = run(tmp_path / "part", *groups, rate=constant, membership=membership, participation="B", rounds=3)
    without = prepare(scenario(*groups[:2], rate=constant, membership=membership, participation="B"))
    data = prepare(scenario(*groups, rate=constant, membership=membership, participation="B"))
    with LocalFleet() as fleet:
        pipeline = Pipeline(fleet, *load(data), saved=SavedState(3, first.state))
        objective = Objective(without)
        for plan in without.clock():
            objective_state = objective.at(plan, settled(departures))
            if plan.version >= 3:
                audience = np.append(objective_state.audience, False)
                task = task_of(
                    plan, without, "cpu", last=False, objective_state=objective_state._replace(audience=audience)
                )
                pipeline.submit(task)
                outcome = pipeline.finish()
        same = np.array_equal(pipeline.state(6)["x"], whole.state["x"])
    assert same == (departures == "exclude")
    if same:
        assert outcome.evaluated == whole.summary["final"]


def test_control_variates_keep_their_mean_over_the_objective(tmp_path):
    """I-SC2 over arrivals and departures; an included device stays in the mean."""
    for departures, members in (("exclude", 3), ("include", 4)):
        data = scenario(
            {}, {}, {"arrive": "15s"}, {"depart": "32s"}, participation="uniform", algorithm="scaffold",
            membership={"name": "vanilla", "departures": departures},
        )  # fmt: skip
        prepared = prepare(data)
        objective = Objective(prepared)
        with LocalFleet() as fleet:
            pipeline = Pipeline(fleet, *load(prepared))
            for plan in prepared.clock():
                objective_state = objective.at(plan, settled(departures))
                pipeline.submit(task_of(plan, prepared, "cpu", last=False, objective_state=objective_state))
                pipeline.finish()
            kept = [vectors["c"] for _, vectors in pipeline.kept()]
            assert len(kept) == members
            np.testing.assert_allclose(pipeline.state(6)["c"], sum(kept) / members, atol=1e-6)


def test_three_lines_compose_with_server_learning(tmp_path):
    found = run(
        tmp_path / "run", {}, {}, {"arrive": "20s"}, algorithm="fsl", participation="C", membership="fast-reboot",
        data={"name": "clients", "clients": 2, "samples": 25},
    )  # fmt: skip
    assert found.summary["plans"] == 6
    assert found.metrics[2]["moves"][0]["event"] == "arrival"


def test_resuming_answers_moves_as_the_run_did(tmp_path):
    groups = ({}, {}, {"arrive": "20s", "depart": "45s"})
    whole = run(tmp_path / "whole", *groups)
    cut = scenario(*groups)
    fedactors.run(cut, tmp_path / "cut", fleet="local", stop_after=4)
    again = resume(tmp_path / "cut", fleet="local")
    assert again.summary["digests"] == whole.summary["digests"]
    rows = [json.loads(line) for line in (tmp_path / "cut" / "metrics.jsonl").read_text().splitlines()]
    assert sum(len(row.get("moves", ())) for row in rows) == 2

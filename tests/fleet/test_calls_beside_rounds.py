"""Work that no round waits for, the last evaluation and a client trained alone: done again after a fault, or told."""

import json
import os
import signal

import pytest
import ray

import fedactors
from fedactors import Scenario
from fedactors.errors import FleetError
from fedactors.fleet.evaluator import Evaluator
from fedactors.fleet.local import LocalFleet
from fedactors.fleet.pipeline import Pipeline
from fedactors.fleet.workers import ClientHost
from fedactors.simulation.prepare import prepare
from fedactors.simulation.progress import Silent
from fedactors.simulation.runner import load
from fedactors.simulation.tasks import task_of
from tests.simulation.test_feedback import POLICIES, with_feedback

METRIC = """
def mine(outputs, labels):
    if (outputs.argmax(1) == labels).float().mean() > 0.15:  # before the run it is tried with an untrained model
        raise ZeroDivisionError("of a trained model")
    return 0.0
"""


def ending(evaluate_every=50):
    """A scenario whose last round nobody knows in time, so that its model is evaluated after it."""
    return with_feedback(POLICIES[0], rounds=99, until="3s", evaluate_every=evaluate_every)


def failing(monkeypatch, worker, method, times, error):
    """Have a method of a worker raise an error the first few times."""
    original, calls = getattr(worker, method), []

    def replaced(self, *args):
        calls.append(args)
        if len(calls) <= times:
            raise error
        return original(self, *args)

    monkeypatch.setattr(worker, method, replaced)
    return calls


def faults(folder):
    return [json.loads(line) for line in (folder / "faults.jsonl").read_text().splitlines()]


def test_the_last_evaluation_is_tried_twice(tmp_path, monkeypatch):
    calm = fedactors.run(ending(), tmp_path / "calm", fleet="local", report=False)
    calls = failing(monkeypatch, Evaluator, "evaluate", 1, RuntimeError("once"))
    found = fedactors.run(ending(), tmp_path / "run", fleet="local", report=False)
    assert found.summary["final"] == calm.summary["final"]
    assert found.summary["ended_because"] == "virtual time limit"
    assert len(calls) == 2
    (row,) = faults(tmp_path / "run")
    assert "once" in row["text"]
    failing(monkeypatch, Evaluator, "evaluate", 9, RuntimeError("always"))
    with pytest.raises(FleetError, match=r"(?s)evaluation of the last model, after round \d+: 2 failures, .*always"):
        fedactors.run(ending(), tmp_path / "bad", fleet="local", report=False)
    assert (tmp_path / "bad/summary.json").exists()


def test_a_metric_that_raises_in_the_last_evaluation_is_told_once(tmp_path):
    (tmp_path / "own.py").write_text(METRIC)
    metric = {"name": "mine", "factory": f"{tmp_path}/own.py:mine", "higher_is_better": True}
    written = ending().model_dump(mode="json")
    made = Scenario.model_validate({**written, "task": {**written["task"], "metrics": [metric]}})
    with pytest.raises(FleetError, match=r"(?s)of a trained model.*evaluation of the last model") as found:
        fedactors.run(made, tmp_path / "run", fleet="local", report=False)
    assert "failures" not in str(found.value)
    assert "Traceback" not in str(found.value)
    assert len(faults(tmp_path / "run")) == 1


def test_a_client_is_trained_alone_on_a_second_try(monkeypatch):
    prepared, told = prepare(with_feedback(POLICIES[0])), []
    with LocalFleet() as fleet:
        pipeline = Pipeline(fleet, *load(prepared), on_fault=lambda version, fault: told.append(fault.cause))
        pipeline.submit(task_of(next(iter(prepared.clock())), prepared, "cpu", last=True))
        pipeline.finish()
        calm = pipeline.local_optimum(0, 0.1, 2)
        failing(monkeypatch, ClientHost, "local_optimum", 1, RuntimeError("once"))
        assert pipeline.local_optimum(0, 0.1, 2) == calm
        assert told == ["CallError"]
        failing(monkeypatch, ClientHost, "local_optimum", 9, RuntimeError("always"))
        with pytest.raises(FleetError, match=r"(?s)client 0 by itself, after round 1: 2 failures, .*always"):
            pipeline.local_optimum(0, 0.1, 2)


def test_a_model_that_is_lost_is_told():
    with LocalFleet() as fleet:
        pipeline = Pipeline(fleet, *load(prepare(with_feedback(POLICIES[0]))))
        lost = fleet.call(pipeline.server.actor, "nothing")
        pipeline._models.set_state(4, lost, lost)
        with pytest.raises(FleetError, match="the model after round 4: CallError: "):
            pipeline.state(4)


class Killer(Silent):
    """Kills the evaluator once it has evaluated a model."""

    def __init__(self, pipelines):
        self.pipelines, self.killed = pipelines, 0

    def round(self, row):
        if "loss" in row and not self.killed:
            process = ray.get(self.pipelines[-1].evaluator.actor.about.remote())["pid"]
            os.kill(process, signal.SIGKILL)
            self.killed += 1


@pytest.mark.slow
def test_an_evaluator_that_died_evaluates_the_last_model(tmp_path, pipelines):
    """No round evaluates after the one that is evaluated in the middle."""
    rounds = fedactors.run(ending(), tmp_path / "long", fleet="local", report=False).summary["plans"]
    made = ending(evaluate_every=rounds // 2 + 1)
    calm = fedactors.run(made, tmp_path / "calm", fleet="local", report=False)
    assert ["loss" in row for row in calm.metrics].count(True) == 1
    killer = Killer(pipelines)
    found = fedactors.run(made, tmp_path / "run", fleet="ray", actors=2, progress=killer, report=False)
    assert killer.killed
    assert {row["cause"] for row in faults(tmp_path / "run")} & {"ActorDiedError", "ActorUnavailableError"}
    assert found.summary["final"] == calm.summary["final"]
    assert found.summary["digests"] == calm.summary["digests"]

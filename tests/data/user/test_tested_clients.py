"""Clients that have test samples and none to train on: their samples are tested on by the server, and no client's."""

import numpy as np
import pytest

from fedactors.data.validation import with_validation
from fedactors.errors import ScenarioError
from fedactors.learning.evaluation import ModelEvaluator
from fedactors.simulation.checks.check import check
from fedactors.simulation.prepare import prepare
from fedactors.simulation.runner import load, run
from tests.data.user.scenes import scene

DATA = """
import numpy as np

def part(clients, count, seed):
    draws = np.random.default_rng(seed)
    return {client: (draws.normal(size=(count, 4)) + number, np.arange(count) % 3)
            for number, client in enumerate(clients)}

def one_more():
    return part(["u0", "u1", "u3"], 12, 0), part(["u0", "u1", "u2", "u3"], 6, 1)
def known():
    return part(["u0", "u1", "u3"], 12, 0), part(["u0", "u1", "u3"], 6, 1)
def others():
    return part(["u0", "u1", "u3"], 12, 0), part([f"v{k}" for k in range(7)], 6, 1)
def unowned():
    train, test = known()
    return train, test["u0"]
"""
ALL = {"every": 1, "clients": "all"}


@pytest.fixture
def given(tmp_path):
    (tmp_path / "data.py").write_text(DATA)

    def made(function, partition="natural", evaluation=ALL):
        dataset = {"name": "torch", "factory": f"data.py:{function}"}
        task = {"dataset": dataset, "model": "logistic", "partition": partition}
        return scene(tmp_path, task, 3, **({"evaluation": evaluation} if evaluation else {}))

    return made


def test_their_samples_come_last_and_are_of_no_client(given):
    prepared = prepare(given("one_more"))
    task, _, test, _ = load(prepared)
    data = prepared.scenario.task.load(0, 3)
    assert data.test_clients.tolist() == [0, 6, 12, 18]
    assert len(test.y) == prepared.info.test_size == 24
    assert [task.holdout.of(client).tolist() for client in range(3)] == [
        list(range(first, first + 6)) for first in (0, 6, 12)
    ]
    four = np.random.default_rng(1).normal(size=(4, 6, 4)) + np.arange(4)[:, None, None]
    order = [0, 1, 3, 2]  # u2 last
    assert np.array_equal(test.x, four[order].reshape(24, 4).astype(np.float32))


def test_check_and_run_say_how_many_there_are(given, tmp_path):
    said = (
        "1 of 4 test clients has no training samples (u2): its 6 test samples are in the test set of the server, and no"
        " client is evaluated on them"
    )
    scenario = given("one_more")
    assert said in check(scenario)["notes"]
    found = run(scenario, tmp_path / "run", fleet="local", report=False)
    assert said in found.summary["remarks"]
    rows = found.frames.client_metrics
    assert sorted(set(rows["client"])) == [0, 1, 2]
    assert set(rows["samples"]) == {6}


def test_the_server_tests_on_all_of_them(given):
    """The accuracy over 24 samples is that of 18 of clients and 6 of none, each with its share."""
    prepared = prepare(given("one_more"))
    task, _, test, _ = load(prepared)
    evaluator = ModelEvaluator(task.model, test)
    flat = np.random.default_rng(3).normal(size=task.model.parameters).astype(np.float32)
    parts = [evaluator.evaluate(flat, rows)["accuracy"] for rows in (np.arange(18), np.arange(18, 24))]
    assert evaluator.evaluate(flat)["accuracy"] == pytest.approx((3 * parts[0] + parts[1]) / 4)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("others", r"none of the 7 test clients has training samples: v0, v1, v2, v3, v4, …"),
        ("unowned", r"the test samples do not come by client"),
    ],
)
def test_check_refuses_to_evaluate_clients_of_which_none_has_test_samples(given, function, said):
    with pytest.raises(ScenarioError, match=said):
        check(given(function))
    assert check(given(function, evaluation=None))["notes"] == []
    assert check(given(function, evaluation=ALL | {"on": "test"}))["notes"] == []


def test_nothing_is_said_where_all_train_or_clients_are_others(given):
    assert check(given("known"))["notes"] == []
    assert check(given("one_more", "iid"))["notes"] == []


def test_with_samples_for_validation_the_remark_says_that_theirs_may_be_among_these(given):
    scenario = given("one_more")
    scenario = scenario.model_copy(update={"task": scenario.task.model_copy(update={"validation": 0.5})})
    said = check(scenario)["notes"][0]
    assert "its 6 test samples are in the test set of the server or for validation, and no client is" in said


def test_samples_for_validation_are_put_aside_of_theirs_too(given):
    """A half of the test samples of each client, and of those of no client."""
    data = with_validation(given("one_more").task.load(0, 3), 0.5)
    assert np.diff(data.test_clients).tolist() == [3, 3, 3]
    assert len(data.test_y) == len(data.validation_y) == 12

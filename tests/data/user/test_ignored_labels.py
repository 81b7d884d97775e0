"""Labels that do not count in the loss: they may be negative, and are no label otherwise."""

import json

import numpy as np
import pytest

from fedactors.errors import DataError
from fedactors.simulation.prepare import prepare
from fedactors.simulation.runner import run
from tests.data.user.scenes import scene

CODE = """
import numpy as np
from torch import nn

def spoken():
    x = np.random.default_rng(0).normal(size=(12, 6, 2))
    y = np.where(np.arange(3) < np.arange(12)[:, None] % 3 + 1, 1 + np.arange(12)[:, None] % 2, -1)
    return (x, y), (x[:4], y[:4])

def some(ignored=-100, others=(0, 1, 2), n=12):
    x = np.random.default_rng(0).normal(size=(n, 4))
    y = np.array([*others, ignored])[np.arange(n) % (len(others) + 1)]
    return (x, y), (x, y)

class Labels(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(2, 3)
    def forward(self, x):
        return self.out(x)
"""


@pytest.fixture
def given(tmp_path):
    (tmp_path / "own.py").write_text(CODE)

    def made(function, loss, model="logistic", partition="iid", **options):
        dataset = {"name": "torch", "factory": f"own.py:{function}", **options}
        return scene(tmp_path, {"dataset": dataset, "model": model, "partition": partition, "loss": loss}, 3)

    return made


def test_ctc_trains_on_sequences_that_are_filled_up(given, tmp_path):
    scenario = given("spoken", "ctc", {"name": "torch", "factory": "own.py:Labels"})
    assert prepare(scenario).info.classes == 3
    run(scenario, tmp_path / "run", fleet="local")
    last = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert np.isfinite(last["loss"])
    assert last.get("accuracy") is None


@pytest.mark.parametrize("partition", ["iid", {"name": "dirichlet", "alpha": 1.0}])
def test_a_negative_label_that_does_not_count_is_no_label(given, tmp_path, partition):
    scenario = given("some", {"name": "cross_entropy", "ignore_index": -100}, partition=partition)
    prepared = prepare(scenario)
    assert (prepared.info.classes, prepared.info.class_counts) == (3, (6, 3, 3))
    run(scenario, tmp_path / "run", fleet="local")


def test_numbering_leaves_out_what_does_not_count(given):
    loss = {"name": "cross_entropy", "ignore_index": -1}
    scenario = given("some", loss, labels="remap", arguments={"ignored": -1, "others": [5, 7]})
    data = scenario.task.load(0, 3)
    assert (data.classes, data.y[:3].tolist(), data.label_names) == (2, [0, 1, -1], ("5", "7"))
    scenario = given("some", loss | {"ignore_index": 9}, labels="remap", arguments={"ignored": 9, "others": [5, 7]})
    with pytest.raises(DataError, match="9, which does not count, would be numbered 2"):
        prepare(scenario)
    loss = {"name": "cross_entropy", "ignore_index": 0}
    data = given("some", loss, labels="remap", arguments={"ignored": 0, "others": [5, 7]}).task.load(0, 3)
    assert (data.classes, data.y[:3].tolist()) == (3, [1, 2, 0])


def test_other_negative_labels_are_refused_as_ever(given):
    for loss in ("cross_entropy", {"name": "cross_entropy", "ignore_index": -1}):
        with pytest.raises(DataError, match="labels: found -100"):
            prepare(given("some", loss))
    with pytest.raises(DataError, match="all are -100, which does not count"):
        prepare(given("some", {"name": "cross_entropy", "ignore_index": -100}, arguments={"others": []}))

"""Code of the user that changes in place what others still need: it is named, and nothing of what is stored changes."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedactors import Scenario, run
from fedactors.data.evaluation_set import EvaluationSet
from fedactors.errors import FleetError, ScenarioError, UserCodeError
from fedactors.in_place import unchanged
from fedactors.learning.evaluation import ModelEvaluator
from fedactors.metric_names import MetricSpec
from fedactors.models.loss_description import LossDescription
from fedactors.models.module_description import described
from fedactors.models.module_layer import InputSpec, ModuleMaker
from fedactors.models.network import initial
from fedactors.own_code.user_code import parse
from fedactors.simulation.resume import checkpoint

PLUGIN = """
from typing import Literal

from fedactors.learning.algorithm import Algorithm
from fedactors.plan import Payload
from fedactors.transforms.base import UpdateTransform

class Pure(Algorithm):
    name: Literal["pure"] = "pure"
    def undefined(self, mixing): return ""
    def payload(self, setting): return Payload(down=1.0, up=1.0)
    def aggregate(self, state, sums, round, central): return {"x": state["x"] + sums["delta"]}

class Aggregates(Pure):
    name: Literal["aggregates"] = "aggregates"
    def aggregate(self, state, sums, round, central):
        state["x"].add_(sums["delta"])
        return state

class Later(Pure):
    name: Literal["later"] = "later"
    def aggregate(self, state, sums, round, central):
        return {"x": state["x"].add_(sums["delta"]) if round.version == 2 else state["x"] + sums["delta"]}

class Uploads(Pure):
    name: Literal["uploads"] = "uploads"
    def upload(self, trip):
        trip.sent["x"].mul_(0.9)
        return {"delta": trip.delta}

class Corrects(Pure):
    name: Literal["corrects"] = "corrects"
    def correction(self, sent, kept):
        return sent["x"].mul_(0.9)

class Replaces(Pure):
    name: Literal["replaces"] = "replaces"
    def aggregate(self, state, sums, round, central):
        state["x"] = state["x"] + sums["delta"]  # the mapping is the algorithm's own
        return state

class Halves(UpdateTransform):
    down = True
    name: Literal["halves"] = "halves"
    def apply(self, rows, kept, given):
        return rows.mul_(0.5), {}
"""
SCENARIO = """
name: in-place
plugins: [mine.py]
task: {dataset: digits, model: logistic, partition: iid}
population: [{name: phones, count: 12, compute: {per_sample: 1ms, spread: 1.0}}]
server:
  rounds: 3
  timing: {name: fedbuff, concurrency: 6, buffer: 2}
  algorithm: pure
  local: {epochs: 1, batch: 50}
"""


@pytest.fixture
def played(tmp_path):
    (tmp_path / "mine.py").write_text(PLUGIN)
    (tmp_path / "in-place.yaml").write_text(SCENARIO)

    def play(*overrides):
        scenario = Scenario.load(tmp_path / "in-place.yaml", overrides)
        return run(scenario, tmp_path / f"run-{len(list(tmp_path.iterdir()))}", fleet="local", report=False)

    return play


CHANGES = {
    "aggregates": "aggregate changes state",
    "uploads": "upload changes start and sent",
    "corrects": "correction changes sent",
}


@pytest.mark.parametrize("algorithm", CHANGES)
def test_an_algorithm_that_changes_a_model_in_place_is_named(algorithm, played):
    wanted = rf"{algorithm.title()}: {CHANGES[algorithm]}\['x'\] in place \(accepted: return new tensors\)"
    with pytest.raises(ScenarioError, match=wanted):
        played(f"server.algorithm={algorithm}")


def test_the_model_that_a_run_goes_on_from_is_not_spoiled(played, tmp_path):
    with pytest.raises(FleetError, match="algorithm later changes state"):
        played("server.algorithm=later")
    (failed,) = tmp_path.glob("run-*")
    saved = checkpoint.load(failed).saved()
    assert saved.version == 2
    assert np.array_equal(saved.state["x"], played("server.rounds=2").state["x"])


def test_an_algorithm_may_change_the_mapping_that_it_is_given(played):
    digests = [played(f"server.algorithm={name}").summary["digests"]["model"] for name in ("pure", "replaces")]
    assert digests[0] == digests[1]


def test_a_transform_that_changes_the_servers_own_model_is_named(played, monkeypatch):
    changes = ("server.timing=synchronous", "server.cohort=6", "server.downlink=[halves]")
    with pytest.raises(ScenarioError, match=r"server.downlink: mine.py, Halves: apply changes rows in place"):
        played(*changes)
    monkeypatch.setattr("fedactors.simulation.runner.try_own_classes", lambda prepared: None)  # as of a larger model
    with pytest.raises(FleetError, match=r"^a transform of server.downlink changes state\['x'\] in place"):
        played(*changes)


def test_several_tensors_and_views_of_them_are_named():
    one, other = torch.zeros(3), torch.zeros(3)

    def change():
        with unchanged("it", a={"one": one, "third": torch.zeros(3)}, b={"two": other[1:]}):
            one.view(3, 1)[0] = 1.0
            other[2] += 1.0

    with pytest.raises(UserCodeError, match=r"^it changes a\['one'\] and b\['two'\] in place"):
        change()
    with torch.inference_mode(), unchanged("it", a={"one": torch.zeros(3)}):
        pass  # torch counts nothing there


RUDE = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.out = torch.nn.Linear(12, 3)
    def forward(self, x):
        if not self.training:
            x.sub_(1.0)
            self.out.weight.data.mul_(0.5)
        return self.out(x)

def loss(outputs, labels):
    labels.fill_(0)
    outputs.zero_()
    return torch.ones(len(labels))

def metric(outputs, labels):
    labels.fill_(0)
    return outputs.zero_().sum() + 1.0

def later(outputs, labels):
    return outputs.abs().sum() * labels.sum()
"""


def test_an_evaluation_gives_code_of_the_user_copies_of_its_own(tmp_path):
    (tmp_path / "nets.py").write_text(RUDE)
    loss = LossDescription("loss", "class", reference=parse("nets.py:loss", tmp_path))
    maker = ModuleMaker(parse("nets.py:Net", tmp_path), "{}")
    model = replace(described(maker, (InputSpec("", (12,)),)), loss=loss)
    x = np.random.default_rng(0).normal(size=(20, 12)).astype(np.float32)
    stored = [initial(model, 0), x, np.arange(20) % 3]
    before = [part.copy() for part in stored]
    names = [MetricSpec(name, parse(f"nets.py:{name}", tmp_path)) for name in ("metric", "later")]
    evaluator = ModelEvaluator(model, EvaluationSet(*stored[1:]), metrics=names)
    first, second = (evaluator.evaluate(stored[0]) for _ in range(2))
    assert first == second
    assert first["later"] > 0
    assert first["accuracy"] > 0
    assert all(map(np.array_equal, stored, before))

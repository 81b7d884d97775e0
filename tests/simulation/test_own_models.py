"""Runs whose model is a module of the user: what plain PyTorch computes, the same bits on every fleet."""

import copy

import numpy as np
import pytest
import torch
import yaml
from torch.nn import functional

from fedactors import Scenario, run
from fedactors.errors import ScenarioError, UsageError
from fedactors.models.network import initial, views
from fedactors.models.torch_modules import made
from fedactors.simulation.prepare import prepare
from fedactors.simulation.runner import load
from fedactors.simulation.verify import verify

NETS = """
import torch
from torch import nn
from torch.nn import functional

class Normed(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, width, 3), nn.BatchNorm2d(width)
        self.out = nn.Linear(width * 36, 10)
    def forward(self, x):
        return self.out(functional.relu(self.norm(self.conv(x))).flatten(1))

class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.drop = nn.Linear(64, 10), nn.Linear(64, 10), nn.Dropout(0.3)
    def forward(self, x):
        x = self.drop(x.flatten(1))
        return self.a(x) * torch.sigmoid(self.b(x))

def images():
    convolved = nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
    return nn.Sequential(*convolved, nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))

def plain():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
"""
BASE = {
    "name": "own",
    "seed": 3,
    "task": {"dataset": "digits", "model": {"name": "torch", "factory": "nets.py:Normed"}, "partition": "iid"},
    "population": [{"name": "devices", "count": 8}],
    "server": {"rounds": 3, "cohort": 4, "local": {"epochs": 1, "batch": 32}},
}


@pytest.fixture
def scenario(tmp_path):
    (tmp_path / "nets.py").write_text(NETS)

    def made(factory="Normed", *overrides):
        file = tmp_path / "own.yaml"
        file.write_text(yaml.safe_dump(BASE))
        factories = [f"task.model.factory=nets.py:{factory}"] if factory else []
        return Scenario.load(file, [*factories, *overrides])

    return made


def played(scenario, folder, **options):
    return run(scenario, folder, fleet="local", report=False, **options)


def test_one_client_with_whole_batches_learns_what_torch_learns(scenario, tmp_path):
    """One device, one batch a pass: three rounds of two epochs are six steps of SGD, statistics included."""
    overrides = ("population.devices.count=1", "server.cohort=1", "server.local.epochs=2", "server.local.batch=100000")
    chosen = scenario("Normed", *overrides, "server.schedule.lr=0.2")
    result = played(chosen, tmp_path / "run")
    prepared = prepare(chosen)
    _, data, _, _ = load(prepared)
    layer = prepared.model.layers[0]
    module = layer.maker.factory.load()()
    names = [spec.name for spec in layer.specs()]
    start = views(prepared.model, torch.from_numpy(initial(prepared.model, 3)))
    module.load_state_dict(dict(zip(names, start, strict=True)), strict=False)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.2)
    x, y = torch.from_numpy(data.x), torch.from_numpy(data.y)
    module.train()
    for _ in range(6):
        optimizer.zero_grad()
        functional.cross_entropy(module(x), y).backward()
        optimizer.step()
    expected = torch.cat([module.state_dict()[name].flatten() for name in names]).numpy()
    assert np.allclose(result.state["x"], expected, atol=2e-5)
    assert not np.allclose(result.state["x"][-8:], [0] * 4 + [1] * 4, atol=0.01), "statistics have moved"


def test_statistics_are_the_weighted_mean_of_the_clients(scenario, tmp_path):
    """With FedAvg, buffers are averaged like parameters; a rate of the server does not touch them."""
    once = played(scenario("Normed", "server.rounds=1"), tmp_path / "once").state["x"]
    twice = played(
        scenario("Normed", "server.rounds=1", "server.algorithm={name: fedavg, global_lr: 2}"), tmp_path / "twice"
    ).state["x"]
    assert np.allclose(once[-8:], twice[-8:])
    assert not np.allclose(once[:-8], twice[:-8])


def test_buffers_that_are_kept_stay_as_they_were(scenario, tmp_path):
    result = played(scenario("Normed", "task.model.buffers=keep_global"), tmp_path / "run")
    assert result.state["x"][-8:].tolist() == [0] * 4 + [1] * 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "overrides",
    [
        ("server.algorithm=scaffold",),
        ("server.algorithm={name: feddyn, alpha: 0.1}",),
        ("server.algorithm=fednova",),
        ("server.algorithm=fsl", "server.data={name: iid, samples: 60}"),
        ("server.algorithm=fed-lamb",),
        ("server.timing={name: fedbuff, concurrency: 4, buffer: 2}", "server.cohort=all"),
        ("server.timing={name: fedasync, concurrency: 4}", "server.cohort=all", "server.rounds=16"),
    ],
    ids=["scaffold", "feddyn", "fednova", "fsl", "fed-lamb", "fedbuff", "fedasync"],
)
@pytest.mark.parametrize("factory", ["Normed", "Branch"])
def test_algorithms_go_with_modules(scenario, tmp_path, factory, overrides):
    result = played(scenario(factory, *overrides), tmp_path / "run")
    assert np.isfinite(result.state["x"]).all()
    losses = [row["train_loss"] for row in result.metrics]
    assert losses[-1] < losses[0]
    if factory == "Normed":
        assert (result.state["x"][-4:] > 0).all(), "variances"


def test_a_stack_of_known_layers_is_the_model_of_ours(scenario, tmp_path):
    """The same layers; their first values are other draws, so losses of the first round differ, by less than 10 %."""
    mine = scenario("plain", "server.rounds=1")
    theirs = scenario("", "server.rounds=1", "task.model={name: mlp, hidden: [16]}")
    assert prepare(mine).model.layers == prepare(theirs).model.layers
    rows = [played(chosen, tmp_path / name).metrics for name, chosen in (("mine", mine), ("theirs", theirs))]
    start = [float(row[0]["train_loss"]) for row in rows]
    assert start[0] == pytest.approx(start[1], rel=0.1)


@pytest.mark.parametrize("factory", ["plain", pytest.param("images", marks=pytest.mark.slow)])
def test_modules_and_layers_of_ours_learn_the_same(scenario, tmp_path, factory):
    """What vmap or one client after the other computes of a module is what our engines compute of its layers."""
    chosen = scenario(factory, "server.rounds=20")
    assert prepare(chosen).model.origin is not None
    fast = played(chosen, tmp_path / "fast").metrics
    for engine in ("vmap", "sequential"):
        slow = played(scenario(factory, "server.rounds=20", f"task.engine={engine}"), tmp_path / engine).metrics
        found = [(one["train_loss"], other["train_loss"]) for one, other in zip(fast, slow, strict=True)]
        assert max(abs(one - other) for one, other in found) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("factory", ["Normed", "Branch", "plain"])
def test_the_same_bits_on_every_fleet(scenario, factory):
    found = verify(scenario(factory), [("local", 1), ("ray", 1), ("ray", 3)])
    assert found["equal"], found["runs"]


def test_the_users_module_is_never_changed(scenario, tmp_path):
    """It is made once in a process, and runs with tensors that it is given; statistics it writes are among them."""
    chosen = scenario("Normed")
    module = made(prepare(chosen).model.layers[0])
    before, passes = copy.deepcopy(module.state_dict()), []
    module.register_forward_pre_hook(lambda *given: passes.append(module.training))
    result = played(chosen, tmp_path / "run")
    assert set(passes) == {True, False}, "it was trained and evaluated"
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    assert not np.allclose(result.state["x"][-8:], [0] * 4 + [1] * 4, atol=0.01), "statistics have moved"


def test_a_package_that_is_missing_is_told_before_code_of_the_user_is_run(scenario, tmp_path, monkeypatch):
    (tmp_path / "nets.py").write_text("raise ValueError('it was run')\n")
    made = scenario("plain", "task.metrics=[f1_macro]")
    with pytest.raises(UsageError, match="it was run"):
        prepare(made)
    monkeypatch.setattr("fedactors.simulation.checks.prepare_task.find_spec", lambda name: None)
    with pytest.raises(ScenarioError, match="needs the package torchmetrics"):
        prepare(made)

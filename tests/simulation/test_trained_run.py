"""The trained model comes back as the module that the user wrote, and starts a further run."""

import json
import shutil

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file
from torch import nn

import fedactors
from fedactors import Scenario, load_run, run
from fedactors.cli.main import main
from fedactors.data.sets.digits import Digits
from fedactors.errors import RunFolderError, UsageError
from fedactors.models.layers import Flatten, Pool, Relu, conv, dense, stack
from fedactors.models.mixed_models import CharGru, DualEncoder
from fedactors.models.network import forward, initial, views
from fedactors.models.personal import tensor_names
from fedactors.models.residual import group_norm, residual
from fedactors.models.trained_weights import trained_module
from fedactors.simulation.prepare import prepare

NETS = '''
import torch
from torch import nn

class Reordered(nn.Module):
    """A chain of layers that are defined in another order than they act."""
    def __init__(self):
        super().__init__()
        self.last, self.second, self.first = nn.Linear(64, 10), nn.Linear(64, 64), nn.Linear(64, 64)
    def forward(self, x):
        return self.last(self.second(self.first(x.flatten(1)).relu()).relu())

class Normed(nn.Module):
    """BatchNorm with its count of batches, dropout, an integer buffer, one of doubles, and one that is not saved."""
    def __init__(self, width=4):
        super().__init__()
        self.conv, self.norm, self.drop = nn.Conv2d(1, width, 3), nn.BatchNorm2d(width), nn.Dropout(0.3)
        self.out = nn.Linear(width * 36, 10)
        self.register_buffer("order", torch.arange(width * 36).flip(0))
        self.register_buffer("scale", torch.full((1,), 0.1, dtype=torch.float64))
        self.register_buffer("mask", torch.ones(width * 36), persistent=False)
    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x))).flatten(1)[:, self.order] * self.mask
        return self.out(self.drop(x * (10 * self.scale).float()))

class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.into, self.back, self.out = nn.Linear(64, 64, bias=False), nn.Linear(64, 64), nn.Linear(64, 10)
        self.back.weight = self.into.weight
    def forward(self, x):
        return self.out(torch.relu(self.back(torch.tanh(self.into(x.flatten(1))))))

class LoRA(nn.Module):
    """A frozen matrix, drawn at random, and a trained one of rank 2 that is added to it."""
    def __init__(self):
        super().__init__()
        self.base, self.out = nn.Linear(64, 32).requires_grad_(False), nn.Linear(32, 10)
        self.down, self.up = nn.Parameter(torch.randn(2, 64) / 8), nn.Parameter(torch.zeros(32, 2))
    def forward(self, x):
        x = x.flatten(1)
        return self.out(torch.relu(self.base(x) + x @ self.down.T @ self.up.T))

class Frozen(LoRA):
    """As LoRA, with another matrix."""
    def __init__(self):
        super().__init__()
        with torch.no_grad():
            self.base.weight.mul_(2)
            self.base.bias.mul_(2)
'''
OWN = ("Reordered", "Normed", "Tied", "LoRA")
DATA = {
    "name": "trained",
    "seed": 3,
    "task": {"dataset": "digits", "model": "logistic", "partition": "iid"},
    "population": [{"name": "devices", "count": 4}],
    "server": {
        "rounds": 4,
        "cohort": 3,
        "local": {"epochs": 1, "batch": 16},
        "schedule": {"name": "constant", "lr": 0.2},
    },
}


def torch_model(name, **options):
    return {"name": "torch", "factory": f"nets.py:{name}", **options}


def scenario(root, model, *overrides):
    """Return a scenario that lies in the folder `root` beside the code of the modules."""
    (root / "nets.py").exists() or (root / "nets.py").write_text(NETS)
    file = root / "scenario.yaml"
    file.write_text(yaml.safe_dump(DATA | {"task": DATA["task"] | {"model": model}}))
    return Scenario.load(file, overrides)


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Return a function that runs a scenario with a model, each once, and returns its result."""
    root, results = tmp_path_factory.mktemp("trained"), {}

    def result(model, *overrides):
        key = json.dumps([model, overrides])
        if key not in results:
            folder = root / f"run-{len(results)}"
            results[key] = run(scenario(root, model, *overrides), folder, fleet="local", report=False)
        return results[key]

    return result


def accuracy(module):
    """Return the share of the test samples that a module in evaluation mode gets right."""
    test = Digits().load(DATA["seed"], 4)
    with torch.no_grad():
        answers = module(torch.as_tensor(test.test_x)).argmax(1)
    return (answers == torch.as_tensor(test.test_y)).double().mean().item()


def written(name):
    """Return a module as the code of the user makes it, its first values drawn anew."""
    code = {}
    exec(NETS, code)
    return code[name]()


@pytest.mark.parametrize("name", OWN)
def test_a_module_of_the_user_takes_what_a_run_has_trained(played, name):
    """Strictly, in the run's own process or from the folder; and it is as good as the run said."""
    result = played(torch_model(name))
    for found in (result, load_run(result.folder)):
        module = written(name)
        module.load_state_dict(found.state_dict())
        assert accuracy(module.eval()) == result.summary["final"]["accuracy"] > 0.3
    again = load_run(result.folder).module()
    assert not again.training
    assert type(again).__name__ == name
    assert accuracy(again) == result.summary["final"]["accuracy"]


@pytest.mark.parametrize(
    "model",
    [{"name": "logistic"}, {"name": "mlp", "hidden": [16], "dropout": 0.2}],
    ids=lambda model: model["name"],
)
def test_a_model_of_fedactors_comes_back_as_a_torch_module(played, model):
    result = played(model)
    assert accuracy(load_run(result.folder).module()) == result.summary["final"]["accuracy"]
    if model["name"] == "logistic":
        plain = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
        plain.load_state_dict(result.state_dict())
        assert accuracy(plain) == result.summary["final"]["accuracy"]


BLOCK = (conv(4, 3, "same"), group_norm(2), residual(conv(4, 3, "same"), Relu()), Pool(2), Flatten(), dense(3))
WORDS = torch.randint(9, (2, 6)).float()


@pytest.mark.parametrize(
    ("model", "x"),
    [
        (stack("block", (1, 4, 4), *BLOCK), torch.rand(2, 1, 4, 4)),
        (CharGru(embedding=4, units=3).build((6,), 9), WORDS),
        (DualEncoder().build((6,), 9), WORDS),
    ],
    ids=["residual", "char_gru", "dual_encoder"],
)
def test_modules_of_all_layers_answer_as_the_model_does(model, x):
    vector = initial(model, 3)
    module = trained_module(model, vector)
    with torch.no_grad():
        assert torch.equal(module(x), forward(model, views(model, torch.from_numpy(vector)), x))
    for name, spec in zip(tensor_names(model), model.tensors, strict=True):
        assert tuple(module.state_dict()[name].shape) == spec.shape


def test_a_folder_has_what_a_result_has(played):
    result = played(torch_model("Reordered"))
    found = load_run(result.folder)
    assert found.metrics == result.metrics
    assert found.state.keys() == result.state.keys()
    assert np.array_equal(found.state["x"], result.state["x"])
    assert found.scenario.dump() == result.scenario.dump()


def test_layout_says_how_the_vector_is_split(played):
    """The layers of a chain lie in the order in which they act, which is not that of named_parameters()."""
    result = played(torch_model("Reordered"))
    found = json.loads((result.folder / "checkpoint/model.json").read_text())
    named = [f"{layer}.{part}" for layer in ("first", "second", "last") for part in ("weight", "bias")]
    assert [one["name"] for one in found["tensors"]] == named
    first = found["tensors"][0]["shape"]
    assert np.array_equal(result.state["x"][:4096].reshape(first), result.state_dict()["first.weight"].numpy())
    fixed = json.loads((played(torch_model("LoRA")).folder / "checkpoint/model.json").read_text())["fixed"]
    assert sorted(fixed) == ["base.bias", "base.weight"]


def test_the_best_model_and_those_of_clients(played):
    stop = "server.stop={metric: loss, patience: 5}"
    result = played(
        torch_model("Reordered"), stop, "server.personal=[last.*]", "server.rounds=3", "server.schedule.lr=1"
    )
    best, last = result.state_dict(best=True), result.state_dict()
    assert result.summary["best"]["round"] < 3
    kept = load_file(result.folder / "checkpoint/best.safetensors")["x"]
    assert torch.equal(best["first.weight"].flatten(), kept[:4096])
    assert not torch.equal(best["first.weight"], last["first.weight"])
    models = [load_run(result.folder).state_dict(client=client) for client in range(4)]
    assert all(torch.equal(one["first.weight"], last["first.weight"]) for one in models)
    taken = set(result.frames.orders.client)
    assert {n for n, one in enumerate(models) if not torch.equal(one["last.bias"], last["last.bias"])} == taken
    ditto = played({"name": "logistic"}, "server.algorithm={name: ditto, pull: 0.5}", "server.rounds=1")
    (absent,) = {*range(4)} - set(ditto.frames.orders.client)
    last, own, none = (ditto.state_dict(client=n)["1.weight"] for n in (None, (absent + 1) % 4, absent))
    assert torch.equal(none, last)
    assert not torch.equal(own, last)
    for wrong, said in (({"client": 4}, "no client 4"), ({"client": 0, "best": True}, "one of them")):
        with pytest.raises(RunFolderError, match=said):
            result.module(**wrong)


def test_what_is_not_there_is_said(played, tmp_path):
    result = played(torch_model("Reordered"))
    with pytest.raises(RunFolderError, match=r"best.safetensors: not there .*server.stop"):
        result.state_dict(best=True)
    with pytest.raises(RunFolderError, match="clients keep no model"):
        result.state_dict(client=0)
    replayed = fedactors.replay(result.scenario, tmp_path / "replay")
    with pytest.raises(RunFolderError, match=r"model.safetensors: not there .*a replay has none"):
        load_run(replayed.folder).state_dict()


def test_code_that_makes_another_module_now_is_refused(tmp_path):
    """Frozen values are others, or layers act in another order: sizes are equal, and values would be wrong."""
    base = "self.base, self.out = "
    for name, before, after in (
        ("LoRA", base, f"self.drawn = nn.Linear(2, 2).requires_grad_(False)\n        {base}"),
        ("LoRA", base, f"torch.randn(1)\n        {base}"),
        ("Reordered", "self.second(self.first(", "self.first(self.second("),
    ):
        (tmp_path / "nets.py").write_text(NETS)
        folder = tmp_path / f"run-{len(list(tmp_path.iterdir()))}"
        run(scenario(tmp_path, torch_model(name), "server.rounds=1"), folder, fleet="local", report=False)
        (tmp_path / "nets.py").write_text(NETS.replace(before, after))
        with pytest.raises(UsageError, match="the run's model had other tensors, or other values"):
            load_run(folder).state_dict()
        file = folder / "model.safetensors"
        assert main(["export", str(folder), "--out", str(file), "--run-code"]) == 0
        assert load_file(file).keys() == written(name).state_dict().keys()


def test_copies_of_code_are_executed_only_where_asked_for_and_other_paths_stay(played, tmp_path, monkeypatch):
    """A scenario whose weights lie beside it; then a folder whose scenario would lie in itself, with the copies."""
    assert main(["export", str(played(torch_model("LoRA")).folder), "--out", str(tmp_path / "first.pt")]) == 0
    said = scenario(tmp_path, torch_model("LoRA", weights="first.pt"), "server.rounds=1")
    folder = run(said, tmp_path / "run", fleet="local", report=False).folder
    (tmp_path / "nets.py").write_text(NETS.replace("class LoRA", "class Other"))
    assert main(["export", str(folder), "--out", str(tmp_path / "second.pt"), "--run-code"]) == 0
    for checkpoint in folder.glob("checkpoint/round-*"):
        shutil.rmtree(checkpoint)
    monkeypatch.chdir(folder)
    with pytest.raises(RunFolderError, match="its code lies in the run folder itself"):
        load_run(folder).state_dict()


@pytest.mark.parametrize("name", OWN)
def test_a_run_starts_from_what_another_one_has_trained(played, tmp_path, name):
    """From its folder, from a file in it, or from what `export` writes."""
    earlier = played(torch_model(name))
    expected = earlier.state_dict()
    exported = [tmp_path / "model.safetensors", tmp_path / "model.pt"]
    for file in exported:
        assert main(["export", str(earlier.folder), "--out", str(file)]) == 0
    assert load_file(exported[0]).keys() == written(name).state_dict().keys()
    for weights in (earlier.folder, earlier.folder / "checkpoint/model.safetensors", *exported):
        model = prepare(scenario(tmp_path, torch_model(name, weights=str(weights)))).model
        found = trained_module(model, initial(model, 7)).state_dict()
        assert all(torch.equal(found[key], expected[key]) for key in expected)


@pytest.mark.parametrize(
    ("earlier", "later", "said"),
    [
        (torch_model("Reordered"), torch_model("Normed"), "it has no first.bias, first.weight, last.bias and 3 more"),
        (torch_model("Normed"), torch_model("Normed", arguments={"width": 3}), "conv.weight has the shape"),
        ({"name": "logistic"}, torch_model("Tied"), "it has no 1.bias, 1.weight, which the run's model has"),
        (torch_model("LoRA"), torch_model("Frozen"), "base.weight, base.bias, which the run does not train, had other"),
    ],
)
def test_a_run_that_does_not_fit_is_one_message(played, tmp_path, earlier, later, said):
    weights = {"weights": str(played(earlier).folder)}
    with pytest.raises(UsageError, match=said) as error:
        prepare(scenario(tmp_path, later | weights))
    assert "model.safetensors: does not fit nets.py:" in str(error.value)


def test_a_vector_without_names_is_refused(played, tmp_path):
    """A file that was copied alone, or that is of an earlier version of fedactors."""
    file = shutil.copy(played(torch_model("LoRA")).folder / "checkpoint/model.safetensors", tmp_path)
    with pytest.raises(UsageError, match=r"model.json: not there.*accepted: a run's folder, or what `fedactors export"):
        prepare(scenario(tmp_path, torch_model("LoRA", weights=str(file))))


def test_files_of_other_kinds_are_refused(played, tmp_path, capsys):
    run = played(torch_model("LoRA")).folder
    kept = (run / "checkpoint/model.safetensors").read_bytes()
    for out in (tmp_path / "model.onnx", run / "checkpoint/model.safetensors"):
        assert main(["export", str(run), "--out", str(out)]) == 2
    assert (run / "checkpoint/model.safetensors").read_bytes() == kept
    said = capsys.readouterr().err
    assert "accepted: a file that ends in .safetensors, .pt or .pth" in said
    assert "accepted: another folder" in said


def test_a_damaged_vector_is_told(played, tmp_path):
    """One that is cut, one that is longer, and none at all."""
    folder = tmp_path / "run"
    shutil.copytree(played(torch_model("LoRA")).folder, folder)
    file = folder / "checkpoint/model.safetensors"
    whole = load_file(file)
    for state in ({"x": whole["x"][:9].clone()}, {"x": torch.cat([whole["x"], whole["x"]])}, {"y": whole["x"]}):
        save_file(state, file)
        with pytest.raises(
            RunFolderError, match=r"model.safetensors: damaged: x is not the [\d,]+ values of the model"
        ):
            load_run(folder).state_dict()


def test_a_client_is_a_whole_number(played):
    for client in ("0", True, 1.5):
        with pytest.raises(RunFolderError, match=r"no client .* \(accepted: 0 to"):
            load_run(played(torch_model("LoRA")).folder).state_dict(client=client)

"""Wrong modules, data, losses, metrics and plugins of the user: one message, exit code 2, nothing run, no traceback."""

import pytest
import yaml

from fedactors.cli.main import main

FILE = """
import numpy as np
import torch
from torch import nn

class Good(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.a, self.b = nn.Linear(64, width), nn.Linear(width, 10)
    def forward(self, x):
        return self.b(torch.sigmoid(self.a(x.flatten(1))))

class Wide(Good):
    def forward(self, x):
        return self.b(x.flatten(1))

class Raises(Good):
    def forward(self, x):
        raise ValueError("not today")

class RaisesInTraining(Good):
    def forward(self, x):
        if self.training:
            raise ValueError("not while training")
        return super().forward(x)

class NoInput(Good):
    def forward(self):
        return self.b.weight

class Pair(Good):
    def forward(self, x):
        return super().forward(x), x

class Nine(Good):
    def forward(self, x):
        return super().forward(x)[:, :9]

class Scalar(Good):
    def forward(self, x):
        return super().forward(x).sum()

class Frozen(Good):
    def __init__(self):
        super().__init__()
        self.requires_grad_(False)

class Detached(Good):
    def forward(self, x):
        return super().forward(x).detach()

class Half(Good):
    def __init__(self):
        super().__init__()
        self.half()

class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.LazyLinear(10)
    def forward(self, x):
        return self.a(x.flatten(1))

def made_raises():
    raise OSError("no such weights")

def not_a_module():
    return "a network"

nothing = 3

def pair(rows=20, label=0):
    return np.zeros((rows, 5), np.float32), np.arange(rows) % 2 + label

def good_data():
    return pair(), pair(10)

def values():
    x, y = pair()
    return (x, y + 0.5), (x, y + 0.5)

def only_train():
    return pair()

def data_raise():
    return pair()[7]

def no_rows():
    return pair(0), pair(10)

def nan_inputs():
    x, y = pair()
    x[3, 2] = np.nan
    return (x, y), pair(10)

def labels_from_one():
    return pair(label=1), pair(10, label=1)

def text_inputs():
    return [("cat", 0), ("dog", 1)], [("cat", 0)]

def ragged():
    return [([1.0], 0), ([1.0, 2.0], 1)], [([1.0], 0)]

def other_each_time():
    x, y = pair()
    return (np.random.default_rng().normal(size=x.shape), y), pair(10)

def no_labels():
    return [np.ones(3)], [np.ones(3)]

def loss_raises(outputs, labels):
    return outputs[:, 99].mean()

def loss_of_one_argument(outputs):
    return outputs.mean()

def loss_of_a_shape(outputs, labels):
    return outputs

def loss_without_gradient(outputs, labels):
    return outputs.detach().mean()

def loss_of_a_number(outputs, labels):
    return 3.0

def metric_raises(outputs, labels):
    return 1 / 0

def metric_of_rows(outputs, labels):
    return outputs

def metric_of_text(outputs, labels):
    return "good"

def metric_of_one_argument(outputs):
    return 0.0

def owner_raises(sample):
    return sample["writer"]
"""
PLUGIN = """
from typing import Literal
from fedactors.algorithms.fedavg import Averaging
from fedactors.options import Options

class Halved(%s):
    name: Literal["halved"] = "halved"
"""
BASE = {
    "name": "wrong",
    "task": {"dataset": "digits", "model": {"name": "torch", "factory": "own.py:Good"}, "partition": "iid"},
    "population": [{"name": "phones", "count": 4}],
    "server": {"rounds": 2, "local": {"epochs": 1, "batch": 50}},
}


def model(factory, **more):
    return {"model": {"name": "torch", "factory": factory if ":" in factory else f"own.py:{factory}", **more}}


def dataset(factory, partition="iid", **more):
    return {
        "dataset": {"name": "torch", "factory": f"own.py:{factory}", **more},
        "model": "logistic",
        "partition": partition,
    }


def loss(factory, **more):
    return {"loss": {"name": "torch", "factory": f"own.py:{factory}", **more}}


def metric(factory, **more):
    return {"metrics": [{"name": "mine", "factory": f"own.py:{factory}", "higher_is_better": True} | more]}


CASES = {
    # factories of models
    "no such file": (model("nest.py:Good"), "no file"),
    "no such name": (model("Goood"), 'has no Goood; did you mean "'),
    "no such package": (model("no_such_package:Net"), "No module named 'no_such_package'"),
    "no name at all": (model("own.py:"), '(accepted: "file.py:Name" or "package.module:Name")'),
    "not callable": (model("nothing"), "own.py:nothing: raised TypeError: 'int' object is not callable"),
    "no module": (model("not_a_module"), "returned str (accepted: a torch.nn.Module"),
    "raises when made": (model("made_raises"), "raised OSError: no such weights"),
    "unknown argument": (model("Good", arguments={"depth": 2}), "unexpected keyword argument 'depth'"),
    "shapes do not fit": (model("Wide"), "(return self.b(x.flatten(1))): forward on a batch of shape (2, 1, 8, 8)"),
    "forward raises": (model("Raises"), "raised ValueError: not today"),
    "forward raises in training": (model("RaisesInTraining"), "raised ValueError: not while training"),
    "forward takes nothing": (model("NoInput"), "takes 1 positional argument but 2 were given"),
    "a pair": (model("Pair"), "forward returned tuple (accepted: a tensor)"),
    "a scalar": (model("Scalar"), "forward returned shape () for 2 samples"),
    "too few outputs": (model("Nine"), "9"),
    "all frozen": (model("Frozen"), "has no parameters to train"),
    "detached": (model("Detached"), "own.py:Detached"),
    "half precision": (model("Half"), "torch.float16 (accepted: torch.float32)"),
    "lazy": (model("Lazy"), "own.py:Lazy: a is a LazyLinear"),
    "no weights": (model("Good", weights="lost.pt"), "lost.pt"),
    "nothing to train": (model("Good", trainable=["c.*"]), 'no parameter is called "c.*"'),
    "unknown policy of buffers": (model("Good", buffers="averaged"), "task.model.buffers"),
    "unknown architecture": ({"model": {"name": "torchvision", "arch": "resnet81"}}, 'no model "resnet81"; did you'),
    "images too small": ({"model": {"name": "torchvision", "arch": "alexnet"}}, "torchvision:alexnet"),
    # data
    "one part": (dataset("only_train"), "own.py:only_train"),
    "data raise": (dataset("data_raise"), "raised IndexError"),
    "no samples": (dataset("no_rows"), "train: has no samples"),
    "NaN": (dataset("nan_inputs"), "train sample 3, input: found nan"),
    "labels from one": (dataset("labels_from_one"), "labels: found 1 to 2 but no 0"),
    "texts": (dataset("text_inputs"), "train sample 0, input: found text"),
    "ragged": (dataset("ragged"), "found shape (2,), sample 0 has (1,)"),
    "other data at every call": (dataset("other_each_time"), "returned other data when"),
    "no labels": (dataset("no_labels"), "train sample 0: found ndarray (accepted: (input, label)"),
    "not a function": (dataset("nothing"), "own.py:nothing"),
    "unknown argument of data": (dataset("good_data", arguments={"year": 1}), "unexpected keyword argument 'year'"),
    "whose samples": (dataset("good_data", {"name": "natural", "by": "own.py:owner_raises"}), "own.py"),
    "no table": (
        {"dataset": {"name": "csv", "train": "no.csv", "label": "y", "test_share": 0.5}, "model": "logistic"},
        "no.csv",
    ),
    # losses
    "loss raises": (loss("loss_raises"), "raised IndexError"),
    "loss takes one argument": (loss("loss_of_one_argument"), "takes 1 positional argument but 2 were given"),
    "loss of a wrong shape": (loss("loss_of_a_shape"), "own.py:loss_of_a_shape returned (8, 10) for 8 samples"),
    "loss without gradient": (loss("loss_without_gradient"), "own.py:loss_without_gradient"),
    "loss of a number": (loss("loss_of_a_number"), "own.py:loss_of_a_number"),
    "no such loss": (loss("lost"), "has no lost"),
    "misspelt loss": ({"loss": "cros_entropy"}, 'did you mean "cross_entropy"?'),
    "loss of several labels": ({"loss": "multi_label"}, "multi_label judges rows of 0 and 1"),
    "loss of classes": (dataset("values") | {"loss": "nll"}, "the kind value, and the loss nll"),
    # metrics
    "metric raises": (metric("metric_raises"), "ZeroDivisionError"),
    "metric of rows": (metric("metric_of_rows"), "own.py:metric_of_rows"),
    "metric of text": (metric("metric_of_text"), "own.py:metric_of_text"),
    "metric takes one argument": (metric("metric_of_one_argument"), "takes 1 positional argument but 2 were given"),
    "no such metric": (metric("lost"), "has no lost"),
    "no direction": (metric("metric_of_rows", higher_is_better=None), "higher_is_better is required"),
    "a name that is taken": (metric("metric_of_rows", name="loss"), "is a column of metrics already"),
    "misspelt metric": ({"metrics": ["f1_makro"]}, 'did you mean "f1_macro"?'),
    "metric of other labels": ({"metrics": ["rmse"]}, '"rmse" is of labels of the kind value'),
}


def told(folder, capsys, task, command="run", **more):
    """Run or check a scenario that cannot be; return what is said, notes left out."""
    (folder / "own.py").write_text(FILE)
    (folder / "wrong.yaml").write_text(yaml.safe_dump(BASE | {"task": BASE["task"] | task} | more))
    where = ["--fleet", "local", "--out", str(folder / "run")] if command == "run" else []
    code = main([command, str(folder / "wrong.yaml"), *where])
    said = capsys.readouterr().err
    lines = [line for line in said.strip().splitlines() if line and not line.startswith("note: ")]
    assert "Traceback" not in said
    assert code == 2, said
    assert len(lines) == 1, said
    assert lines[0].startswith("fedactors: "), said
    return lines[0]


@pytest.mark.parametrize("name", CASES)
def test_what_is_wrong_is_one_message_before_anything_runs(name, tmp_path, capsys):
    task, message = CASES[name]
    assert message in (said := told(tmp_path, capsys, task)), said
    assert not (tmp_path / "run").exists(), "nothing was run"


TRIED = [name for name in CASES if name.startswith(("loss", "metric", "detached", "forward")) and "labels" not in name]


@pytest.mark.parametrize("name", TRIED)
def test_check_says_what_a_run_says_of_code_that_it_tries(name, tmp_path, capsys):
    task, message = CASES[name]
    said = told(tmp_path, capsys, task, "check")
    assert message in said
    assert said == told(tmp_path, capsys, task)


LINES = {
    "loss": (loss("loss_raises"), "own.py:loss_raises, line {}", "return outputs[:, 99].mean()"),
    "metric": (metric("metric_raises"), "own.py, line {}, in metric_raises", "return 1 / 0"),
}


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("command", ["check", "run"])
def test_the_line_of_a_loss_or_a_metric_is_named(name, command, tmp_path, capsys):
    task, place, line = LINES[name]
    number = next(k for k, text in enumerate(FILE.splitlines(), 1) if line in text)
    said = told(tmp_path, capsys, task, command)
    assert place.format(number) in said
    assert f"({line})" in said


PLUGINS = {
    "no plugin": ("gone.py", "", "no file"),
    "no Python file": ("mine.txt", PLUGIN % "Averaging", "plugins.0"),
    "a plugin of no kind": ("mine.py", PLUGIN % "Options", "line 6: Halved has a name and is of no kind"),
    "a plugin that cannot be imported": (
        "mine.py",
        PLUGIN % "Averagging",
        "NameError: name 'Averagging' is not defined",
    ),
    "a name of ours": ("mine.py", (PLUGIN % "Averaging").replace('"halved"', '"fedavg"'), 'there is already "fedavg"'),
    "no annotation": ("mine.py", (PLUGIN % "Averaging").replace(': Literal["halved"]', ""), "PydanticUserError"),
}


@pytest.mark.parametrize("name", PLUGINS)
def test_a_wrong_plugin_is_one_message(name, tmp_path, capsys):
    file, text, message = PLUGINS[name]
    if text:
        (tmp_path / file).write_text(text)
    assert message in (said := told(tmp_path, capsys, {}, plugins=[file])), said
    assert not (tmp_path / "run").exists()

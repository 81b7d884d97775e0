"""What is said of a loss of the user before anything runs."""

from contextlib import nullcontext

import pytest
import torch
from torch.nn import functional

from fedactors.errors import DataError
from fedactors.simulation.checks.check import check
from fedactors.simulation.prepare import prepare
from fedactors.simulation.runner import load
from fedactors.simulation.trials.own_code_trial import try_own_code
from fedactors.simulation.trials.repeated_calls import Tried, refuse_pairs
from tests.data.user.scenes import scene

CODE = """
import random
import torch
from torch import nn
from torch.nn import functional

def data(weighted=True):
    part = [{"x": [i, 1.0], "y": i % 2} | ({"w": 1.0 + i} if weighted else {}) for i in range(8)]
    return part, part

def mean(outputs, labels):
    return functional.cross_entropy(outputs, labels)

def each(outputs, labels):
    return functional.cross_entropy(outputs, labels, reduction="none")

def cut(outputs, labels):
    return each(outputs, labels).detach()

def matched(outputs, labels):
    return (outputs[:, 0] - labels).square().mean()

def table(outputs, labels):
    return (outputs - labels).square().mean()

def bias(outputs, labels):
    return (outputs[:, 0] - labels).mean().abs()

def noisy(outputs, labels):
    return mean(outputs, labels) * torch.rand(())

class Counting:
    count = 0
    def __call__(self, outputs, labels):
        self.count += 1
        return mean(outputs, labels)

class Growing(Counting):
    def __call__(self, outputs, labels):
        return super().__call__(outputs, labels) * self.count

class Drawn:
    def __init__(self):
        self.scale = random.random()
    def __call__(self, outputs, labels):
        return mean(outputs, labels) * self.scale

class Trained(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
    def forward(self, outputs, labels):
        return mean(outputs, labels) * self.scale
"""

NETS = """
import torch
from torch import nn

def data(samples):
    part = torch.randn(samples, 3, generator=torch.Generator().manual_seed(0)), torch.arange(samples) % 2
    return part, part

class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.out = nn.BatchNorm1d(3), nn.Linear(3, 2)
    def forward(self, x):
        return self.out(self.norm(x))

class Squeezed(Normed):
    def forward(self, x):
        return self.out(x).squeeze()
"""


@pytest.fixture
def tried(tmp_path):
    (tmp_path / "own.py").write_text(CODE)

    def prepared_with(loss, metric=None, numbers=2, **options):
        dataset = {"name": "torch", "factory": "own.py:data", "label": "y", **options}
        loss = {"name": "torch", "factory": f"own.py:{loss}", "numbers": numbers}
        task = {"dataset": dataset, "model": "logistic", "partition": "iid", "loss": loss}
        if metric:
            task["metrics"] = [{"name": "own", "factory": f"own.py:{metric}", "higher_is_better": False}]
        prepared = prepare(scene(tmp_path, task))
        loaded = load(prepared)
        try_own_code(prepared, *loaded[:3])
        return loaded[1]

    return prepared_with


def test_a_loss_of_one_number_knows_no_weights_of_samples(tried):
    with pytest.raises(DataError, match=r"own\.py:mean returned one number, and the data give weights of samples"):
        tried("mean", weights="w")
    assert tried("each", weights="w").weights is not None
    assert tried("mean", arguments={"weighted": False}).weights is None


def test_a_loss_without_gradients_is_refused(tried):
    with pytest.raises(DataError, match=r"own\.py:cut returned a tensor without gradients"):
        tried("cut", weights="w")


def test_a_metric_is_tried_at_the_client_with_the_fewest_labels(tmp_path):
    """Scikit-learn's log_loss wants as many labels as there are columns, and a client of two labels has ten columns."""
    (tmp_path / "own.py").write_text(
        "from sklearn.metrics import log_loss\n"
        "def ll(outputs, labels):\n    return log_loss(labels.numpy(), outputs.softmax(1).numpy())\n"
    )
    metrics = [{"name": "ll", "factory": "own.py:ll", "higher_is_better": False}]
    task = {"dataset": "digits", "model": "logistic", "partition": {"name": "classes", "classes": 2}}
    check(scene(tmp_path, task | {"metrics": metrics}, 20))
    judging = {"evaluation": {"every": 2, "clients": "all"}}
    with pytest.raises(DataError, match=r"own\.py:ll.*line 3.*at client \d+, which .* with 2 labels"):
        check(scene(tmp_path, task | {"metrics": metrics}, 20, **judging))
    check(scene(tmp_path, task | {"metrics": metrics, "partition": "iid"}, 4, **judging))


def test_a_metric_is_tried_on_what_the_run_gives_it(tmp_path):
    """Under bce that is two columns, of which the first is 0."""
    code = CODE + "\ndef right(outputs, labels):\n    return (outputs[:, 0] == 0).all() * (outputs[:, 1] != 0).any()\n"
    (tmp_path / "own.py").write_text(code)
    dataset = {"name": "torch", "factory": "own.py:data", "label": "y", "arguments": {"weighted": False}}
    metrics = [{"name": "right", "factory": "own.py:right", "higher_is_better": True}]
    task = {"dataset": dataset, "model": "logistic", "partition": "iid", "loss": "bce", "metrics": metrics}
    assert check(scene(tmp_path, task))


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        ("noisy", "changes torch's random numbers in each call"),
        ("Counting", "changes count in each call"),
        ("Growing", "changes count in each call"),
        ("Drawn", "returns something else when it is made anew"),
        ("Trained", "has the parameter scale, which nothing trains"),
    ],
)
def test_a_loss_is_the_same_whoever_was_trained_before(tried, loss, said):
    with pytest.raises(DataError, match=rf"task\.loss: own\.py:{loss} {said}"):
        tried(loss)


@pytest.mark.parametrize(
    ("metric", "said"), [("noisy", "changes torch's random"), ("Growing", "returns something else")]
)
def test_a_measure_is_the_same_in_each_call(tried, metric, said):
    with pytest.raises(DataError, match=rf"task\.metrics: own \(own\.py:{metric}\) {said}"):
        tried("mean", metric)


def test_outputs_of_one_number_less_labels_are_refused_as_a_table(tried):
    said = r"compares each output with each label: outputs have the shape \(8, 1\), labels \(8,\)"
    with pytest.raises(DataError, match=rf"task\.loss: own\.py:table {said} \(accepted: outputs\[:, 0\]"):
        tried("table", numbers=1)
    with pytest.raises(DataError, match=rf"task\.metrics: own \(own\.py:table\) {said}"):
        tried("matched", "table", numbers=1)
    tried("matched", "bias", numbers=1)


@pytest.mark.parametrize(
    ("net", "samples", "said"),
    [
        ("Normed", 13, "raises ValueError: Expected more than 1 value per channel"),
        ("Squeezed", 13, r"returns the shape \(2,\)"),
        ("Normed", 12, ""),
    ],
)
def test_a_client_whose_last_batch_is_one_sample_is_found_before_the_run(tmp_path, net, samples, said):
    (tmp_path / "own.py").write_text(NETS)
    dataset = {"name": "torch", "factory": "own.py:data", "arguments": {"samples": samples}}
    task = {"dataset": dataset, "model": {"name": "torch", "factory": f"own.py:{net}"}, "partition": "iid"}
    prepared = prepare(scene(tmp_path, task, count=1))
    with pytest.raises(DataError, match=f"client 0 has 13 samples, .* {said}") if said else nullcontext():
        try_own_code(prepared, *load(prepared)[:3])


@pytest.mark.parametrize(
    ("algorithm", "samples", "said"),
    [
        ({"name": "mixed-1w", "central_batch": 1}, 12, "batches of 1 leave one"),
        ({"name": "mixed-et", "central_batch": 1}, 12, "batches of 1 leave one"),
        ({"name": "mixed-et", "central_batch": 4}, 13, ""),
        ({"name": "fsl", "server_batch": 4}, 13, "13 samples, of which batches of 4 leave one"),
        ({"name": "fsl", "server_batch": 4}, 12, ""),
    ],
)
def test_a_server_whose_last_batch_is_one_sample_is_found_before_the_run(tmp_path, algorithm, samples, said):
    (tmp_path / "own.py").write_text(NETS)
    dataset = {"name": "torch", "factory": "own.py:data", "arguments": {"samples": 40}}
    model = {"name": "torch", "factory": "own.py:Normed"}
    own = {"name": "iid", "samples": samples}
    task = {"dataset": dataset, "model": model, "partition": "iid"}
    prepared = prepare(scene(tmp_path, task, count=1, algorithm=algorithm, data=own))
    with pytest.raises(DataError, match=f"the server has .*{said}") if said else nullcontext():
        try_own_code(prepared, *load(prepared)[:3])


MATCHED = {
    "by column": lambda o, y: (o[:, 0] - y).square().mean(),
    "by view": lambda o, y: (o - y.view_as(o)).abs().sum(),
    "by a new axis": lambda o, y: (o - y[:, None]).square().mean().sqrt(),
    "without axes": lambda o, y: (o.squeeze() - y).square(),
    "in order": lambda o, y: (o[:, 0].sort().values - y.sort().values).abs().mean(),
    "by mean": lambda o, y: (o[:, 0] - y).mean().abs(),
    "by means alone": lambda o, y: (o - y).mean().abs(),  # of a table, but that of pairs is the same
    "by correlation": lambda o, y: torch.corrcoef(torch.stack([o[:, 0], y]))[0, 1],
    "without labels": lambda o, y: o.square().mean(),
}
TABLES = {
    "squares": lambda o, y: (o - y).square().mean(),
    "root": lambda o, y: (o - y).square().mean().sqrt(),
    "rows": lambda o, y: (o - y).abs().mean(1),
    "explained": lambda o, y: 1 - (o - y).square().sum() / (y - y.mean()).square().sum(),
    "torch's": functional.l1_loss,
}


@pytest.mark.parametrize("scale", [1.0, 1e5])
def test_a_table_of_pairs_is_told_from_all_that_matches_outputs_and_labels(scale):
    outputs, labels = torch.zeros(8, 1) + 0.1, torch.linspace(0, 3, 8).square() * scale
    for name, function in (MATCHED | TABLES).items():
        try:
            refuse_pairs(Tried(name, function, lambda: None), outputs, labels)
            assert name in MATCHED, name
        except DataError:
            assert name in TABLES, name


def test_check_loads_no_large_data_to_try_a_loss(tmp_path, monkeypatch):
    """What `check` does not try, the run does: `cut` has no gradient."""
    (tmp_path / "own.py").write_text(CODE)
    loss = {"name": "torch", "factory": "own.py:cut"}
    dataset = {"name": "torch", "factory": "own.py:data", "label": "y", "weights": "w"}
    made = scene(tmp_path, {"dataset": dataset, "model": "logistic", "partition": "iid", "loss": loss})
    with pytest.raises(DataError, match=r"own\.py:cut returned a tensor without gradients"):
        check(made)
    monkeypatch.setattr("fedactors.simulation.checks.check._MOST_DATA", 10)
    (costly,) = check(made)["costly"]
    assert costly.endswith("your module, loss and metrics are tried on them when a run starts, not by check")

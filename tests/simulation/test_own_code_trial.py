"""What is said of a loss of the user before anything runs."""

import pytest

from fedactors.errors import DataError
from fedactors.simulation.checks.check import check
from fedactors.simulation.checks.own_code_trial import try_own_code
from fedactors.simulation.prepare import prepare
from fedactors.simulation.runner import load
from tests.data.user.scenes import scene

CODE = """
import numpy as np
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
"""


@pytest.fixture
def tried(tmp_path):
    (tmp_path / "own.py").write_text(CODE)

    def prepared_with(loss, **options):
        dataset = {"name": "torch", "factory": "own.py:data", "label": "y", **options}
        loss = {"name": "torch", "factory": f"own.py:{loss}"}
        task = {"dataset": dataset, "model": "logistic", "partition": "iid", "loss": loss}
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

"""Data of other packages: other types of the same numbers are converted, other numbers refused in one message."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from fedactors.data.accepted import accepted
from fedactors.data.base import Data, Info
from fedactors.errors import DataError, ScenarioError
from fedactors.simulation.checks.prepare_task import model_of
from fedactors.simulation.record.run_folder import RunFolder
from tests.simulation.test_checkpoints import scenario_of

X = [[0.5, 1.0], [2.0, 3.0], [4.0, 5.0]]
Y = [0, 1, 1]


def data(**changed):
    parts = {"x": np.array(X, np.float32), "y": np.array(Y), "test_x": np.array(X, np.float32), "test_y": np.array(Y)}
    return Data(**parts | changed, classes=2)


KINDS = {
    "lists": (X, Y),
    "float64 and int32": (np.array(X), np.array(Y, np.int32)),
    "tensors": (torch.tensor(X), torch.tensor(Y)),
    "tensors with gradients": (torch.tensor(X, requires_grad=True), torch.tensor(Y, dtype=torch.uint8)),
    "float labels": (np.array(X, np.float16), np.array(Y, np.float32)),
    "truth values": (np.array(X), np.array(Y, bool)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_other_types_of_the_same_numbers_are_converted(kind):
    x, y = KINDS[kind]
    found = accepted(data(x=x, y=y, test_x=x, test_y=y), "mine")
    assert (found.x.dtype, found.y.dtype, found.test_x.dtype, found.test_y.dtype) == (np.float32, int) * 2
    assert found.x.tolist() == found.test_x.tolist() == X
    assert found.y.tolist() == found.test_y.tolist() == Y


def test_arrays_of_the_right_types_are_not_copied():
    given = data()
    found = accepted(given, "mine")
    assert found.x is given.x
    assert found.y is given.y


WRONG = {
    "from 1": ({"y": [1, 2, 2]}, "training labels: found 1 to 2 (accepted: 0 to 1)"),
    "halves": ({"test_y": [0.5, 1, 1]}, "test labels: not whole numbers"),
    "no label": ({"y": [0, 1, float("nan")]}, "training labels: NaN or Inf"),
    "words": ({"y": ["cat", "dog", "dog"]}, "training labels: found <U3"),
    "ragged": ({"x": [[1.0], [1.0, 2.0], []]}, "training samples: "),
    "too few": ({"y": [0, 1]}, "3 training samples and 2 labels"),
    "NaN": ({"test_x": np.array([[0, 1], [np.nan, 0], [1, 1]])}, "test samples: NaN or Inf in sample 1"),
}


@pytest.mark.parametrize("what", WRONG)
def test_other_numbers_are_refused_in_one_message(what):
    changed, message = WRONG[what]
    with pytest.raises(DataError) as caught:
        accepted(data(**changed), "mine")
    assert str(caught.value).startswith(f'data set "mine": {message}')
    assert "\n" not in str(caught.value)


def test_what_is_no_data_is_refused():
    with pytest.raises(DataError, match=r'data set "mine": load returns tuple \(accepted: fedactors.data.base.Data\)'):
        accepted((X, Y), "mine")


def test_what_is_no_model_is_refused():
    class Builder:
        name = "net"

        def build(self, input_shape, classes):
            return torch.nn.Linear(2, 2)

    with pytest.raises(ScenarioError, match=r'task.model: "net" builds Linear \(accepted: '):
        model_of(SimpleNamespace(model=Builder(), loss=None), Info("mine", 3, 3, (2,), 2), 0)


def test_a_summary_is_json_whatever_was_learned(tmp_path):
    with RunFolder(tmp_path / "run", scenario_of()) as folder:
        folder.summary({"final": {"accuracy": 0.1, "loss": float("nan")}, "curve": [1.0, float("inf")]})
    found = json.loads((tmp_path / "run/summary.json").read_text(), parse_constant=pytest.fail)
    assert found == {"final": {"accuracy": 0.1, "loss": None}, "curve": [1.0, None]}

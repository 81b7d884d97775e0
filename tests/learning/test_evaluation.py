"""What is measured where some labels do not count: against the places that do."""

import numpy as np
import pytest
import torch

from fedactors.data.evaluation_set import EvaluationSet
from fedactors.learning.evaluation import ModelEvaluator
from fedactors.models.layers import Dense, Model
from fedactors.models.loss_description import LossDescription

ANSWERS = np.eye(3, dtype=np.float32) * 9  # of a dense layer: a sample of label y is answered by y


def measures(y, said, loss, rows=None):
    """Return the measures of answers `said` to samples with labels `y`."""
    x = np.eye(3, dtype=np.float32)[np.array(said)]
    model = Model("answers", x.shape[1:], (Dense(3, 3),), loss=loss)
    evaluator = ModelEvaluator(model, EvaluationSet(x, np.array(y), None))
    flat = np.concatenate([ANSWERS.ravel(), np.zeros(3, np.float32)])
    return evaluator.evaluate(flat, None if rows is None else np.array(rows))


def ignoring(label):
    return LossDescription("cross_entropy", "class", (("ignore_index", label),))


@pytest.mark.parametrize("ignored", [0, -100])
def test_samples_whose_label_does_not_count_are_in_no_accuracy(ignored):
    """Three samples do not count, and one of the other two is answered wrongly."""
    y = [ignored, ignored, ignored, 1, 2]
    assert measures(y, [1, 1, 0, 1, 2], ignoring(ignored))["accuracy"] == 1.0
    assert measures(y, [0, 0, 0, 1, 1], ignoring(ignored))["accuracy"] == 0.5
    assert measures(y, [0, 0, 0, 1, 1], ignoring(ignored), rows=[0, 3])["accuracy"] == 1.0, "those of a client"


def test_all_measures_take_the_mean_over_what_counts():
    y, said = [0, 1, 2, 1], [1, 1, 0, 1]
    found, some = measures(y, said, ignoring(0)), measures(y[1:], said[1:], ignoring(0))
    assert found == pytest.approx(some)
    assert found["accuracy"] == pytest.approx(2 / 3)
    plain = measures(y[1:], said[1:], LossDescription("cross_entropy", "class", (("label_smoothing", 0.0),)))
    assert found == pytest.approx(plain)


def test_places_of_sequences_count_alike():
    """One sample has three places that count, the other one: the accuracy is 3 / 4, not the mean of 2 / 3 and 1."""
    from fedactors.learning.evaluation import _summary, described_columns

    y = torch.tensor([[1, 2, 1], [0, 0, 2]])
    outputs = torch.eye(3)[torch.tensor([[1, 2, 0], [1, 1, 2]])]
    columns = described_columns(ignoring(0), "class", outputs, outputs, y)
    found = _summary("", {name: column.numpy() for name, column in columns.items()})
    assert found["accuracy"] == pytest.approx(3 / 4)


def test_ctc_has_no_accuracy_though_there_may_be_as_many_labels_as_places():
    from fedactors.learning.evaluation import described_columns

    y, outputs = torch.tensor([[1, 2, -1]]), torch.randn(1, 3, 3)
    assert "accuracy" not in described_columns(
        LossDescription("ctc", "sequence", (("blank", 0),)), "class", outputs, outputs, y
    )

"""Measures by name: against scikit-learn and numpy, on real numbers and where they are not defined."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn import metrics as sk

from fedactors.errors import DataError
from fedactors.learning.metrics import measured
from fedactors.metric_names import CLASS, LABELS, METRICS, VALUES, MetricSpec, higher_is_better, info_of
from fedactors.models.loss_description import LossDescription
from fedactors.own_code.user_code import parse

DRAWS = torch.Generator().manual_seed(0)
OUTPUTS = torch.randn(200, 5, generator=DRAWS)
Y = (OUTPUTS + 2 * torch.randn(200, 5, generator=DRAWS)).argmax(1)
CHANCES = OUTPUTS.double().softmax(1).numpy()
BEST = CHANCES.argmax(1)
VALUE = torch.randn(200, 1, generator=DRAWS)
TRUE = VALUE[:, 0] + 0.5 * torch.randn(200, generator=DRAWS) + 3
MANY = (OUTPUTS + torch.randn(200, 5, generator=DRAWS) > 0).float()


def value(name, kind, outputs, y, loss="cross_entropy"):
    return measured([MetricSpec(name)], kind, outputs, y, loss)[name]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("accuracy", sk.accuracy_score(Y, BEST)),
        ("balanced_accuracy", sk.balanced_accuracy_score(Y, BEST)),
        ("precision_macro", sk.precision_score(Y, BEST, average="macro")),
        ("recall_macro", sk.recall_score(Y, BEST, average="macro")),
        ("f1_macro", sk.f1_score(Y, BEST, average="macro")),
        ("f1_micro", sk.f1_score(Y, BEST, average="micro")),
        ("f1_weighted", sk.f1_score(Y, BEST, average="weighted")),
        ("auroc", sk.roc_auc_score(Y, CHANCES, multi_class="ovr")),
        ("matthews", sk.matthews_corrcoef(Y, BEST)),
        ("cohen_kappa", sk.cohen_kappa_score(Y, BEST)),
        ("top2", sk.top_k_accuracy_score(Y, CHANCES, k=2)),
        ("top5", 1.0),
        ("perplexity", math.exp(sk.log_loss(Y, CHANCES))),
    ],
)
def test_measures_of_classes(name, wanted):
    assert value(name, CLASS, OUTPUTS, Y) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("mse", sk.mean_squared_error(TRUE, VALUE)),
        ("rmse", sk.mean_squared_error(TRUE, VALUE) ** 0.5),
        ("mae", sk.mean_absolute_error(TRUE, VALUE)),
        ("mape", sk.mean_absolute_percentage_error(TRUE, VALUE)),
        ("r2", sk.r2_score(TRUE, VALUE)),
        ("explained_variance", sk.explained_variance_score(TRUE, VALUE)),
        ("pearson", stats.pearsonr(TRUE, VALUE[:, 0])[0]),
        ("spearman", stats.spearmanr(TRUE, VALUE[:, 0])[0]),
    ],
)
def test_measures_of_values(name, wanted):
    assert value(name, VALUES, VALUE, TRUE) == pytest.approx(wanted, rel=1e-5)


def test_counts_are_compared_with_the_means_whose_logarithms_a_model_answers(tmp_path):
    """Means 3, 10 and 2 of counts 3, 10 and 1: |error| 0, 0 and 1. A function of the user is given logarithms."""
    poisson, y = LossDescription("poisson_nll", "value"), torch.tensor([3.0, 10.0, 1.0])
    answers = torch.tensor([[3.0], [10.0], [2.0]]).log()
    for name, wanted in (("mae", 1 / 3), ("rmse", 3**-0.5), ("r2", sk.r2_score(y, [3, 10, 2]))):
        assert value(name, VALUES, answers, y, poisson) == pytest.approx(wanted, rel=1e-5)
    (tmp_path / "own.py").write_text("def largest(outputs, labels):\n    return outputs.max()\n")
    own = MetricSpec("largest", parse("own.py:largest", tmp_path))
    assert measured([own], VALUES, answers, y, poisson)["largest"] == pytest.approx(math.log(10))


SHOWN = (OUTPUTS > 0).numpy()


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("accuracy", float((MANY.numpy() == SHOWN).mean())),
        ("f1_macro", sk.f1_score(MANY, SHOWN, average="macro")),
        ("f1_micro", sk.f1_score(MANY, SHOWN, average="micro")),
        ("auroc", sk.roc_auc_score(MANY, OUTPUTS)),
        ("average_precision", sk.average_precision_score(MANY, OUTPUTS)),
        ("exact_match", sk.accuracy_score(MANY, SHOWN)),
        ("hamming", sk.hamming_loss(MANY, SHOWN)),
    ],
)
def test_measures_of_several_labels(name, wanted):
    assert value(name, LABELS, OUTPUTS, MANY) == pytest.approx(wanted, rel=1e-5)


def test_two_classes_have_one_curve():
    y = (OUTPUTS[:, 0] + torch.randn(200, generator=DRAWS) > 0).long()
    pair = torch.stack([-OUTPUTS[:, 0], OUTPUTS[:, 0]], 1)
    assert value("auroc", CLASS, pair, y) == pytest.approx(sk.roc_auc_score(y, OUTPUTS[:, 0]), rel=1e-6)


def _at(answers, classes):
    return 3 * torch.nn.functional.one_hot(torch.as_tensor(answers), classes).float()


def test_classes_that_no_sample_has_do_not_count():
    """Scikit-learn's mean over the classes whose curve is defined; torchmetrics counts the others as 0."""
    y = torch.tensor([2, 7] * 20)
    perfect, wrong = _at(y, 10), _at([5] * 4 + [2, 7] * 18, 10)
    assert value("auroc", CLASS, perfect, y) == value("average_precision", CLASS, perfect, y) == 1
    assert value("balanced_accuracy", CLASS, wrong, y) == pytest.approx(0.9)  # scikit-learn's, 18 of 20 of both
    there = [k for k in range(5) if k != 3]
    some, chances = Y[Y != 3], CHANCES[Y != 3]
    each = [sk.roc_auc_score(some == k, chances[:, k]) for k in there]
    assert value("auroc", CLASS, OUTPUTS[Y != 3], some) == pytest.approx(np.mean(each), rel=1e-5)
    mixed = MANY.clone()
    mixed[:, 1], mixed[:, 4] = 0, 1
    each = [sk.roc_auc_score(mixed[:, k], OUTPUTS[:, k]) for k in (0, 2, 3)]
    assert value("auroc", LABELS, OUTPUTS, mixed) == pytest.approx(np.mean(each), rel=1e-5)
    each = [sk.average_precision_score(mixed[:, k], OUTPUTS[:, k]) for k in (0, 2, 3, 4)]
    assert value("average_precision", LABELS, OUTPUTS, mixed) == pytest.approx(np.mean(each), rel=1e-5)


@pytest.mark.parametrize("classes", [2, 10])
def test_where_all_labels_are_equal_there_is_no_roc_curve(classes):
    y = torch.ones(20, dtype=torch.long)
    assert math.isnan(value("auroc", CLASS, OUTPUTS.repeat(1, 2)[:20, :classes], y))
    assert math.isnan(value("auroc", LABELS, OUTPUTS[:20], torch.ones(20, 5)))
    assert value("average_precision", CLASS, OUTPUTS.repeat(1, 2)[:20, :classes], y) == pytest.approx(1)
    assert math.isnan(value("average_precision", CLASS, OUTPUTS[:20, :2], torch.zeros_like(y)))
    assert value("matthews", CLASS, _at([0] * 8 + [1] * 12, classes), y) == 0  # as scikit-learn's, with any classes


def test_places_of_sequences_count_one_by_one_and_ignored_ones_not_at_all():
    outputs, y = OUTPUTS.view(20, 10, 5), Y.view(20, 10).clone()
    assert value("perplexity", CLASS, outputs, y) == pytest.approx(math.exp(sk.log_loss(Y, CHANCES)), rel=1e-5)
    y[:, 5:] = -100
    first = np.arange(200).reshape(20, 10)[:, :5].ravel()
    wanted = math.exp(sk.log_loss(Y[first], CHANCES[first], labels=range(5)))
    padded = LossDescription("cross_entropy", "class", (("ignore_index", -100),))
    assert value("perplexity", CLASS, outputs, y, padded) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("name", ["r2", "pearson"])
def test_a_measure_that_is_not_defined_is_no_number(name):
    assert not math.isfinite(value(name, VALUES, VALUE[:1], TRUE[:1]))


def test_every_name_is_computed_for_every_kind_of_label_it_is_of():
    given = {CLASS: (OUTPUTS, Y), VALUES: (VALUE, TRUE), LABELS: (OUTPUTS, MANY)}
    for name, info in METRICS.items():
        for kind in info.of:
            assert math.isfinite(value(name, kind, *given[kind])), (name, kind)


def test_a_measure_of_another_kind_of_label_is_of_its_own_kind():
    """Under a loss of the user, whole numbers may be values, and rows of 0 and 1 several labels."""
    assert value("mae", CLASS, VALUE, Y) == pytest.approx(sk.mean_absolute_error(Y, VALUE), rel=1e-5)
    assert value("exact_match", VALUES, OUTPUTS, MANY) == pytest.approx(sk.accuracy_score(MANY, SHOWN))
    assert math.isnan(value("exact_match", VALUES, VALUE, TRUE))


def test_several_values_are_averaged():
    both = torch.cat([VALUE, -VALUE], 1)
    wanted = torch.stack([TRUE, TRUE], 1)
    assert value("r2", VALUES, both, wanted) == pytest.approx(sk.r2_score(wanted, both), rel=1e-4)
    assert value("rmse", VALUES, both, wanted) == pytest.approx(sk.mean_squared_error(wanted, both) ** 0.5, rel=1e-5)


def test_directions():
    for name in ("accuracy", "f1_macro", "top3", "federated_accuracy", "central_auc", "r2"):
        assert higher_is_better(name) is True
    for name in ("loss", "train_loss", "rmse", "perplexity", "central_loss", "hamming"):
        assert higher_is_better(name) is False
    assert higher_is_better("bytes_up") is None
    assert info_of("top0") is None


def test_a_measure_of_the_user(tmp_path):
    (tmp_path / "own.py").write_text(
        "def bias(outputs, labels, scale=1.0):\n    return scale * (outputs[:, 0] - labels).mean()\n"
        "def bad(outputs, labels):\n    return outputs\n"
    )
    bias = MetricSpec("bias", parse("own.py:bias", tmp_path), '{"scale": 2.0}')
    found = measured([bias], VALUES, VALUE, TRUE)
    assert found["bias"] == pytest.approx(float(2 * (VALUE[:, 0] - TRUE).mean()))
    with pytest.raises(DataError, match=r"task\.metrics: bad \(own\.py:bad\)"):
        measured([MetricSpec("bad", parse("own.py:bad", tmp_path))], VALUES, VALUE, TRUE)


@pytest.mark.parametrize("name", ["auroc", "average_precision"])
def test_memory_that_lacks_is_no_value_that_is_not_defined(name):
    """Scores of two million samples in ten million classes are 160 TB: an error, and not a NaN among the metrics."""
    outputs, y = torch.zeros(1, 1).expand(2 * 10**6, 10**7), torch.zeros(1, dtype=torch.long).expand(2 * 10**6)
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        measured([MetricSpec(name)], CLASS, outputs, y)

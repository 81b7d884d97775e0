"""Measures of one number for each answer: the same bits as of all outputs at once, which are not kept."""

import math
import resource

import numpy as np
import pytest
import torch
from torchmetrics import functional

from fedactors.data.evaluation_set import EvaluationSet
from fedactors.learning.evaluation import ModelEvaluator
from fedactors.learning.metric_views import OutputViews, view
from fedactors.learning.metrics import measured, measured_by
from fedactors.metric_names import CLASS, LABELS, METRICS, OUTPUTS, VALUES, MetricSpec, views_of
from fedactors.models.layers import Dense, Model
from fedactors.models.network import initial

DRAWS = torch.Generator().manual_seed(5)
CLASSES, PLACES = 7, 4
OUTPUTS_OF_SEQUENCES = torch.randn(60, PLACES, CLASSES, generator=DRAWS)
Y = torch.randint(CLASSES, (60, PLACES), generator=DRAWS)
NAMES = [name for name, info in METRICS.items() if CLASS in info.of] + ["top1", "top3", "top9"]


def of_all_outputs(name, outputs, y):
    """Return what torchmetrics says of the probabilities of all classes, as it was computed before there were views."""
    rows, labels = outputs.flatten(0, -2).double(), y.flatten()
    chances = rows.softmax(-1)
    if name.startswith("top"):
        best = rows.topk(min(int(name[3:]), CLASSES), dim=-1).indices
        return float((best == labels[:, None]).any(1).double().mean())
    if name == "perplexity":
        return float(functional.text.perplexity(rows[None], labels[None]).double())
    of = functional.classification
    called, options = {
        "accuracy": (of.multiclass_accuracy, {"average": "micro"}),
        "balanced_accuracy": (of.multiclass_accuracy, {"average": "macro"}),
        "precision_macro": (of.multiclass_precision, {"average": "macro"}),
        "recall_macro": (of.multiclass_recall, {"average": "macro"}),
        "f1_macro": (of.multiclass_f1_score, {"average": "macro"}),
        "f1_micro": (of.multiclass_f1_score, {"average": "micro"}),
        "f1_weighted": (of.multiclass_f1_score, {"average": "weighted"}),
        "auroc": (of.multiclass_auroc, {}),
        "average_precision": (of.multiclass_average_precision, {}),
        "matthews": (of.multiclass_matthews_corrcoef, {}),
        "cohen_kappa": (of.multiclass_cohen_kappa, {}),
        "calibration_error": (of.multiclass_calibration_error, {}),
    }[name]
    return float(called(chances, labels, CLASSES, **options).double())


@pytest.mark.parametrize("name", NAMES)
def test_a_measure_of_views_has_the_bits_of_that_of_all_outputs(name):
    spec = MetricSpec(name)
    kept = OutputViews(views_of([spec], CLASS))
    for part in zip(OUTPUTS_OF_SEQUENCES.split(17), Y.split(17), strict=True):
        kept.add(*part)
    found = measured_by([spec], CLASS, kept.joined(), kept.classes, Y)
    wanted = of_all_outputs(name, OUTPUTS_OF_SEQUENCES, Y)
    assert found == measured([spec], CLASS, OUTPUTS_OF_SEQUENCES, Y) == {name: wanted}


def test_places_that_do_not_count_are_left_out_of_views():
    y = Y.clone()
    y[:, 2:] = -100
    for name in ("accuracy", "top3", "perplexity", "f1_macro"):
        found = measured([MetricSpec(name)], CLASS, OUTPUTS_OF_SEQUENCES, y, -100)[name]
        assert found == of_all_outputs(name, OUTPUTS_OF_SEQUENCES[:, :2], Y[:, :2]), name


def test_which_measures_need_all_outputs():
    every = {name: views_of([MetricSpec(name)], info.of[0])[0] for name, info in METRICS.items()}
    assert {name for name in every if every[name] == OUTPUTS and METRICS[name].of[0] == CLASS} == {
        "auroc",
        "average_precision",
        "calibration_error",
    }
    assert {every[name] for name in METRICS if METRICS[name].of[0] in (VALUES, LABELS)} == {OUTPUTS}


def test_outputs_and_labels_that_do_not_go_together_have_no_measure():
    for name in ("accuracy", "top2", "perplexity"):
        assert math.isnan(measured([MetricSpec(name)], CLASS, OUTPUTS_OF_SEQUENCES, Y[:, 0])[name])
        assert math.isnan(measured([MetricSpec(name)], CLASS, OUTPUTS_OF_SEQUENCES[:, 0, 0], Y[:, 0])[name])


def test_views_of_many_rows_are_those_of_each(monkeypatch):
    whole = {name: view(name, OUTPUTS_OF_SEQUENCES, Y) for name in ("best", "chance", "top2")}
    monkeypatch.setattr("fedactors.learning.metric_views._AT_ONCE", 3 * CLASSES)
    for name, wanted in whole.items():
        assert torch.equal(view(name, OUTPUTS_OF_SEQUENCES, Y), wanted)
        assert wanted.shape == (60, PLACES, 1)


def test_the_outputs_of_a_test_set_are_not_kept():
    """12,000 samples of 4,000 classes have 192 MB of outputs; with a copy in float64 and softmax that was over 1 GB."""
    model = Model("wide", (2,), (Dense(2, 4000),))
    x = np.random.default_rng(0).normal(size=(12_000, 2)).astype(np.float32)
    y = np.arange(12_000) % 4000
    specs = [MetricSpec(name) for name in ("perplexity", "top5", "accuracy")]
    measured(specs, CLASS, OUTPUTS_OF_SEQUENCES, Y)  # imports torchmetrics
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = ModelEvaluator(model, EvaluationSet(x, y), metrics=specs).evaluate(initial(model, 0))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert 1 < found["perplexity"] < math.inf
    assert grown < 800e6

"""Variants are ranked by the measure asked for; where clients have models of their own, by accuracy at clients."""

import json
from dataclasses import replace

import numpy as np
import pytest

from fedactors import Scenario
from fedactors.cli.main import main
from fedactors.errors import ScenarioError
from fedactors.report.measures import BEST_ROUND
from fedactors.study import comparison_tables, page
from fedactors.study.comparison import compare
from fedactors.study.ranking import has_own_models, refuse_best_round, refuse_unmeasured, unused_model
from fedactors.study.study_cells import StudyAxis
from fedactors.study.sweep import sweep

SCENARIO = """
name: pers
seed: 1
task: {dataset: digits, model: {name: mlp, hidden: [16]}, partition: {name: classes, classes: 2}}
population: [{name: phones, count: 12}]
server:
  rounds: 6
  cohort: 6
  evaluation: {every: 3, clients: all}
  local: {epochs: 1, batch: 10}
  participation: samples
"""
METHODS = StudyAxis(
    "method",
    {
        "FedAvg": ["server.algorithm=fedavg"],
        "FedPer": ['server.personal=["3.*"]'],
        "Ditto": ["server.algorithm=ditto"],
    },
)
UNUSED = (
    "accuracy and loss are those of the server's model, which no client of FedPer and Ditto uses: server.evaluation"
    " measures the clients' own models, and variants are then compared by accuracy at clients"
)


@pytest.fixture(scope="module")
def methods(tmp_path_factory):
    """Return the file of a scenario in which clients have two classes each, and a folder of its runs."""
    folder = tmp_path_factory.mktemp("ranking")
    path = folder / "pers.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path, folder / "runs"


@pytest.fixture(scope="module")
def personal(methods):
    path, out = methods
    return compare(path, [METHODS], 2, out=out, jobs=1)


def test_models_of_clients_are_ranked_by_accuracy_at_clients(personal):
    """The server's model of FedPer keeps its first head: the accuracy of that model says nothing of FedPer."""
    names = comparison_tables.columns(personal)
    assert names[0] == "client_accuracy"
    assert {"accuracy", "loss", "seconds", "bytes"} <= set(names)
    assert not [name for name in names if name.endswith("_to")], "a target is an accuracy of the server's model"
    assert not [note for note in comparison_tables.notes(personal) if "arget" in note]
    best = max(personal.variants, key=lambda one: sum(found["client_accuracy"] for found in personal.figures(one)))
    assert best != "FedAvg"
    assert comparison_tables.answer(personal).startswith(f"{best} has the highest accuracy at clients, 0.")
    assert comparison_tables.heads(personal)[1:3] == ["accuracy at clients", "difference"]
    assert not [said for said in comparison_tables.cautioned(personal) if "no client" in said]


def test_pictures_are_of_the_measure_that_ranks(personal, tmp_path):
    drawn = page.write(personal, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "accuracy at clients: difference from FedAvg" in drawn
    assert "accuracy on the test set" not in drawn
    axes = personal.plot()
    assert axes.get_ylabel() == "accuracy at clients"
    seeds = [one.records.metrics["client_accuracy"] for one in personal.variants["FedPer"]]
    rounds = np.flatnonzero(np.isfinite(seeds[0]))
    assert axes.get_lines()[1].get_ydata() == pytest.approx(np.mean(seeds, 0)[rounds])
    plain = replace(personal, own_models=()).plot()
    assert plain.get_ylabel() == "accuracy on the test set"


def test_the_measure_that_is_asked_for_ranks(personal, methods):
    path, out = methods
    found = compare(path, [METHODS], 2, out=out, jobs=1, measure="accuracy")
    assert comparison_tables.columns(found)[0] == "accuracy"
    assert comparison_tables.answer(found).startswith("FedAvg has the highest accuracy, ")
    least = compare(path, [METHODS], 2, out=out, jobs=1, measure="bytes")
    assert comparison_tables.columns(least)[0] == "bytes"
    assert comparison_tables.heads(least)[1:3] == ["traffic", "difference"]


def test_variants_without_models_of_clients_are_ranked_by_accuracy(personal):
    found = replace(personal, own_models=())
    assert comparison_tables.columns(found)[:3] == ["accuracy", "loss", "client_accuracy"]


@pytest.mark.slow
def test_accuracy_of_a_model_that_no_client_uses_is_told(methods, personal):
    """Without figures at clients, and where it is the server's model that clients are evaluated with."""
    path, out = methods
    bare = compare(path, [METHODS], 1, out=out, jobs=1, overrides=["server.evaluation=null"])
    assert comparison_tables.columns(bare)[0] == "accuracy"
    assert UNUSED in comparison_tables.cautioned(bare)
    axis = StudyAxis("method", {name: METHODS.values[name] for name in ("FedAvg", "Ditto")})
    shared = compare(path, [axis], 1, out=out, jobs=1, overrides=["server.evaluation.model=global"])
    assert comparison_tables.columns(shared)[0] == "accuracy"
    assert any("no client of Ditto uses" in said for said in comparison_tables.cautioned(shared))


@pytest.mark.parametrize(
    ("change", "own"),
    [
        ("server.algorithm=fedavg", False),
        ("server.algorithm=scaffold", False),
        ("server.algorithm=ditto", True),
        ('server.personal=["3.*"]', True),
    ],
)
def test_who_has_models_of_clients(change, own, methods):
    assert has_own_models(Scenario.load(methods[0], [change])) is own


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--measure", "client_acuracy"], '--measure: no measure "client_acuracy"; did you mean "client_accuracy"'),
        (["--measure", "epsilon"], "--measure: no run has a figure of epsilon: the scenario has no server.privacy"),
        (["--measure", "accuracy", "--clock-only"], "--clock-only trains nothing: no accuracy"),
    ],
)
def test_measures_that_no_run_has_are_refused_before_anything_runs(more, said, methods, tmp_path, capsys):
    words = ["compare", str(methods[0]), "--vary", "server.algorithm=fedavg,ditto", "--out", str(tmp_path / "out")]
    assert main([*words, *more]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


BEST = (
    "samples for validation choose the best round of the server's model (accepted: last-round, or --measure accuracy)"
)
NO_SAMPLES = (
    "no run has a figure of validation_accuracy: there are no samples for validation (accepted: with task.valid"
)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--set", "task.validation=0.3", "--metric", "best-round"], BEST),
        (["--set", "task.validation=0.3", "--metric", "best-round", "--measure", "client_accuracy_worst"], BEST),
        (["--metric", "best-round", "--vary", "task.model=logistic"], "no samples for validation say which round is"),
        (["--measure", "validation_accuracy"], NO_SAMPLES),
        (["--measure", "validation_accuracy", "--vary", "task.partition=iid"], NO_SAMPLES),
    ],
)
def test_what_samples_for_validation_cannot_choose_is_refused(more, said, methods, tmp_path, capsys):
    words = ["compare", str(methods[0]), "--vary", "server.algorithm=fedavg,ditto", "--out", str(tmp_path / "out")]
    assert main([*words, *more]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_axes_that_bring_samples_for_validation_let_these_rank(methods):
    base = Scenario.load(methods[0], [])
    for key in ("task.validation", "task.dataset.test", "task"):
        brings = [StudyAxis(key, {"a": [f"{key}=0.2"]})]
        refuse_best_round(base, brings, BEST_ROUND, "accuracy")
        refuse_unmeasured(base, brings, "--measure", "validation_accuracy", clock_only=False)
    other = [StudyAxis("task.partition", {"a": ["task.partition=iid"]})]
    with pytest.raises(ScenarioError, match="samples for validation"):
        refuse_best_round(base, other, BEST_ROUND, "accuracy")
    with pytest.raises(ScenarioError, match="samples for validation"):
        refuse_unmeasured(base, other, "--measure", "validation_accuracy", clock_only=False)


def test_a_sweep_by_accuracy_at_clients_has_no_best_round(methods, tmp_path):
    grid = [StudyAxis("server.local.batch", {"10": ["server.local.batch=10"]})]
    made = {"further": grid, "overrides": ["task.validation=0.3"], "window": BEST_ROUND}
    with pytest.raises(ScenarioError, match="ranked by client_accuracy, and samples for validation"):
        sweep(methods[0], out=tmp_path, jobs=1, measure="client_accuracy", **made)


def test_the_best_round_may_rank_models_of_clients_by_accuracy_of_the_servers(methods):
    """The measure that is asked for ranks, so clients' own models choose nothing."""
    path, out = methods
    changes = ["task.validation=0.3"]
    found = compare(path, [METHODS], 1, out=out, jobs=1, overrides=changes, measure="accuracy", window=BEST_ROUND)
    assert comparison_tables.columns(found)[0] == "validation_accuracy"


def test_a_choice_by_test_samples_of_clients_is_told(personal):
    [note] = [said for said in comparison_tables.notes(personal) if said.startswith("Ranked by")]
    assert note == (
        "Ranked by the test samples of clients, so the figure of the best one is too good: there are none for"
        " validation at clients."
    )
    alone = replace(personal, variants={"FedPer": personal.variants["FedPer"]}, baseline="FedPer")
    assert not [said for said in comparison_tables.notes(alone) if said.startswith("Ranked by")]


def test_a_sweep_of_the_file_says_the_measure_and_further_columns(methods, tmp_path, capsys):
    sweep = """
sweep:
  grid: {server.local.batch: [10, 20]}
  measure: seconds
  beside: [gini]
"""
    path = tmp_path / "swept.yaml"
    path.write_text(SCENARIO + sweep, encoding="utf-8")
    words = ["compare", str(path), "--seeds", "1", "--jobs", "1", "--out", str(tmp_path / "out"), "--json"]
    assert main(words) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["ranked_by"] == "seconds"
    assert "virtual time" in said["answer"]
    assert "Gini of participation" in (tmp_path / "out" / "comparison.txt").read_text(encoding="utf-8")


def test_python_refuses_what_the_command_does(methods, tmp_path):
    with pytest.raises(ScenarioError, match='measure: no measure "speed"'):
        compare(methods[0], [METHODS], 1, out=tmp_path, jobs=1, measure="speed")


def test_of_values_the_loss_at_clients_stands_in_the_metrics(methods):
    """Values have no accuracy: there is a loss at clients, which is no measure of a study."""
    changes = ["server.algorithm=ditto", "task.loss=mse"]
    assert unused_model({"a": Scenario.load(methods[0], changes[:1])}) == []
    [said] = unused_model({"a": Scenario.load(methods[0], changes)})
    assert said.endswith("client_loss in metrics.jsonl is that of the clients' own models")


def test_the_measure_is_that_of_samples_for_validation_where_there_are_some(methods):
    path, out = methods
    vary = {"server.local.batch": [10, 20]}
    found = compare(path, vary, 1, out=out, jobs=1, overrides=["task.validation=0.3"], measure="loss")
    assert comparison_tables.columns(found)[:3] == ["validation_loss", "loss", "accuracy"]
    assert "has the lowest validation loss, " in comparison_tables.answer(found)
    assert "(test loss " in comparison_tables.answer(found)
    tested = compare(path, vary, 1, out=out, jobs=1, overrides=["task.validation=0.3"], measure="test_loss")
    assert comparison_tables.columns(tested)[0] == "loss"

"""Samples for validation in a run: measured beside the test samples, and what a run ends by and its best model is."""

import json

import numpy as np
import pytest
import torch
import yaml

import fedactors
from fedactors import Scenario
from fedactors.cli.main import main
from fedactors.errors import RunFolderError, ScenarioError
from fedactors.models.network import views
from fedactors.run_files.best_model import BestModel
from fedactors.run_files.records import read
from fedactors.simulation.inspect.audit import audit
from fedactors.simulation.prepare import prepare
from fedactors.simulation.record.eras import Eras
from fedactors.simulation.record.milestones import milestones
from fedactors.simulation.record.stop_rule import StopRule
from fedactors.simulation.resume.branch import branch
from fedactors.simulation.runner import load, resume
from tests.cli.described import assert_described

BASE = {
    "name": "aside",
    "seed": 3,
    "task": {
        "dataset": "digits",
        "model": {"name": "mlp", "hidden": [16]},
        "partition": {"name": "dirichlet", "alpha": 0.3},
        "metrics": ["f1_macro"],
        "validation": 0.25,
    },
    "population": [{"name": "phones", "count": 10}],
    "server": {
        "rounds": 6,
        "cohort": 5,
        "local": {"epochs": 1, "batch": 10},
        "schedule": {"name": "constant", "lr": 0.1},
    },
}


def scenario(folder=None, **changes):
    """Return the scenario with `task__x=…` and `server__x=…` in the place of its own keys."""
    said = json.loads(json.dumps(BASE))
    for key, value in changes.items():
        part, _, name = key.partition("__")
        said[part][name] = value
    if folder is None:
        return Scenario.load(said)
    (folder / "aside.yaml").write_text(yaml.safe_dump(said))
    return Scenario.load(folder / "aside.yaml")


def finished(path, made, **how):
    return fedactors.run(made, path, fleet="local", report=False, **how)


def rows_of(path):
    return [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]


def by_torch(model, x, samples, labels):
    """Return accuracy and loss of a two-layer perceptron, by torch alone."""
    one, add, two, last = views(model, torch.from_numpy(x))
    hidden = torch.relu(torch.from_numpy(samples).flatten(1) @ one.T + add)
    outputs, y = hidden @ two.T + last, torch.from_numpy(labels)
    right = (outputs.argmax(1) == y).double().mean().item()
    return right, torch.nn.functional.cross_entropy(outputs.double(), y).item()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the run, and the same one that puts nothing aside."""
    folder = tmp_path_factory.mktemp("aside")
    return finished(folder / "run", scenario()), finished(folder / "plain", scenario(task__validation=None))


def test_each_part_is_measured_as_torch_does_it(whole):
    """On real digits: 90 samples put aside, 270 left to test on; of the last model."""
    result, _ = whole
    prepared = prepare(scenario())
    _, _, tests, _ = load(prepared)
    assert (len(tests.y), len(tests.validation.y)) == (270, 90)
    final = result.summary["final"]
    for part, prefix in ((tests, ""), (tests.validation, "validation_")):
        accuracy, loss = by_torch(prepared.model, result.state["x"], part.x, part.y)
        assert final[f"{prefix}accuracy"] == pytest.approx(accuracy, abs=1e-12)
        assert final[f"{prefix}loss"] == pytest.approx(loss, rel=1e-5)
    assert set(final) == {f"{p}{m}" for p in ("", "validation_") for m in ("accuracy", "loss", "f1_macro")}


def test_nothing_but_the_evaluation_changes(whole):
    result, plain = whole
    for part in ("plans", "model"):
        assert result.summary["digests"][part] == plain.summary["digests"][part]
    mine, theirs = rows_of(result.folder), rows_of(plain.folder)
    assert [row.keys() - other.keys() for row, other in zip(mine, theirs, strict=True)] == [
        {"validation_accuracy", "validation_loss", "validation_f1_macro"}
    ] * 6
    assert not any("validation" in key for key in json.dumps(theirs))
    weighed = [(270 * row["accuracy"] + 90 * row["validation_accuracy"]) / 360 for row in mine]
    assert weighed == pytest.approx([row["accuracy"] for row in theirs])


def test_a_third_part_leaves_the_bits_of_the_test_measures(tmp_path):
    """The same test data with and without a part for validation: the same measures, to the bit."""
    (tmp_path / "data.py").write_text(
        "from fedactors.data.sets.digits import Digits\n"
        "def load(third):\n"
        "    d = Digits().load(0, 1)\n"
        "    parts = (d.x[300:], d.y[300:]), (d.test_x, d.test_y), (d.x[:300], d.y[:300])\n"
        "    return parts if third else parts[:2]\n"
    )
    rows = []
    for third in (True, False):
        dataset = {"name": "torch", "factory": "data.py:load", "arguments": {"third": third}}
        made = scenario(tmp_path, task__dataset=dataset, task__validation=None)
        rows.append(rows_of(finished(tmp_path / str(third), made).folder))
    for mine, theirs in zip(*rows, strict=True):
        for name in ("accuracy", "loss", "f1_macro", "train_loss"):
            assert mine[name] == theirs[name]
        assert "validation_loss" in mine
        assert "validation_loss" not in theirs


def rule(stop, validation=0.25):
    made = scenario(task__validation=validation, server__stop=stop)
    return StopRule(Eras((), made), BestModel(None))


ROWS = [
    {"round": 1, "accuracy": 0.70, "loss": 1.0, "validation_accuracy": 0.60, "validation_loss": 1.2},
    {"round": 2, "train_loss": 0.5},
    {"round": 3, "accuracy": 0.90, "loss": 0.4, "validation_accuracy": 0.80, "validation_loss": 0.5},
    {"round": 4, "accuracy": 0.85, "loss": 0.6, "validation_accuracy": 0.88, "validation_loss": 0.4},
    {"round": 5, "accuracy": 0.95, "loss": 0.2, "validation_accuracy": 0.86, "validation_loss": 0.45},
    {"round": 6, "accuracy": 0.97, "loss": 0.1, "validation_accuracy": 0.87, "validation_loss": 0.5},
]
PLAIN = [{key: value for key, value in row.items() if not key.startswith("validation")} for row in ROWS]


def ended(found, rows):
    """Return after which of the rows a rule ends a run, and why."""
    for row in rows:
        found.recall(row)
        if found.reason:
            return row["round"], found.reason
    return None


@pytest.mark.parametrize(
    ("stop", "rows", "wanted"),
    [
        ({"accuracy": 0.85}, ROWS, (4, "validation_accuracy 0.88 is at least 0.85, as server.stop asks")),
        ({"accuracy": 0.85}, PLAIN, (3, "accuracy 0.9 is at least 0.85, as server.stop asks")),
        ({"test_accuracy": 0.85}, ROWS, (3, "accuracy 0.9 is at least 0.85, as server.stop asks")),
        ({"validation_accuracy": 0.85}, ROWS, (4, "validation_accuracy 0.88 is at least 0.85, as server.stop asks")),
        ({"loss": {"below": 0.45}}, ROWS, (4, "validation_loss 0.4 is at most 0.45, as server.stop asks")),
        ({"train_loss": 0.6}, ROWS, (2, "train_loss 0.5 is at most 0.6, as server.stop asks")),
        (
            {"patience": 2},
            ROWS,
            (6, "no better validation_accuracy than 0.88 of round 4 in 2 evaluations, as server.stop asks"),
        ),
        ({"patience": 2}, PLAIN, None),
    ],
    ids=str,
)
def test_a_run_ends_by_the_samples_for_validation(stop, rows, wanted):
    """By hand: the test accuracy is 0.85 or more from round 3 on, that of validation from round 4 on."""
    assert ended(rule(stop), rows) == wanted


def test_the_best_round_is_the_best_by_validation_and_tells_the_test_value():
    found = rule({"patience": 10})
    ended(found, ROWS)
    assert found.best == {"metric": "validation_accuracy", "round": 4, "value": 0.88, "test_value": 0.85}
    plain = rule({"patience": 10}, None)
    ended(plain, PLAIN)
    assert plain.best == {"metric": "accuracy", "round": 6, "value": 0.97}
    by_test = rule({"patience": 10, "metric": "test_accuracy"})
    ended(by_test, ROWS)
    assert by_test.best == {"metric": "accuracy", "round": 6, "value": 0.97}


def test_an_accuracy_is_reached_when_validation_shows_it():
    found = milestones(ROWS, [0.6, 0.85])
    assert [(line["accuracy"], line["round"], line["validation_accuracy"]) for line in found] == [
        (0.6, 1, 0.60),
        (0.85, 4, 0.88),
    ]
    plain = milestones(PLAIN, [0.6, 0.85])
    assert [line["round"] for line in plain] == [1, 3]
    assert not any("validation_accuracy" in line for line in plain)


def test_the_best_model_is_that_of_the_best_round_by_validation(tmp_path):
    result = finished(tmp_path / "run", scenario(server__stop={"patience": 50}))
    rows = rows_of(result.folder)
    values = [row["validation_accuracy"] for row in rows]
    best = result.summary["best"]
    assert best["round"] == 1 + values.index(max(values))
    assert best["test_value"] == rows[best["round"] - 1]["accuracy"]
    assert BestModel(result.folder).is_of(best["round"])


class Stopping(fedactors.simulation.progress.Silent):
    def round(self, row):
        if row["round"] == 3:
            raise KeyboardInterrupt


def test_a_run_goes_on_from_its_checkpoint_and_its_records_are_sound(whole, tmp_path):
    result, _ = whole
    with pytest.raises(KeyboardInterrupt):
        finished(tmp_path / "cut", scenario(), progress=Stopping())
    parts = resume(tmp_path / "cut", fleet="local", report=False)
    assert parts.summary["digests"] == result.summary["digests"]
    found = audit(tmp_path / "cut")
    assert found["sound"], found
    replayed = fedactors.replay(scenario(), tmp_path / "replay")
    assert replayed.summary["digests"]["plans"] == result.summary["digests"]["plans"]


def test_a_branch_keeps_the_part(whole, tmp_path):
    result, _ = whole
    found = branch(result.folder, 3, ["server.rounds=4"], tmp_path / "branch", fleet="local", report=False)
    assert rows_of(found.folder)[3]["validation_loss"] == rows_of(result.folder)[3]["validation_loss"]
    with pytest.raises(ScenarioError, match=r"a branch cannot change task.validation: 0.25, now 0.5"):
        branch(result.folder, 3, ["task.validation=0.5"], tmp_path / "other", fleet="local")


def test_a_resume_with_another_part_is_refused(tmp_path):
    """The file of the data stays, and what it reads is other data: only samples for validation differ."""
    (tmp_path / "data.py").write_text(
        "import numpy as np\n"
        "from pathlib import Path\n"
        "from fedactors.data.sets.digits import Digits\n"
        "def load():\n"
        "    d, first = Digits().load(0, 1), int(Path(__file__).with_name('first').read_text())\n"
        "    return (d.x[300:], d.y[300:]), (d.test_x, d.test_y), (d.x[first:first + 90], d.y[first:first + 90])\n"
    )
    (tmp_path / "first").write_text("0")
    dataset = {"name": "torch", "factory": f"{tmp_path}/data.py:load"}
    made = scenario(tmp_path, task__dataset=dataset, task__validation=None)
    with pytest.raises(KeyboardInterrupt):
        finished(tmp_path / "run", made, progress=Stopping())
    fedactors.data.user.user_data._cache.clear()
    (tmp_path / "first").write_text("90")
    with pytest.raises(RunFolderError, match="the data set is not the one of the checkpoint"):
        resume(tmp_path / "run", fleet="local", report=False)
    with pytest.raises(RunFolderError, match=r"task.validation: null, now 0.3"):
        resume(tmp_path / "run", ["task.validation=0.3"], fleet="local", report=False)


@pytest.mark.usefixtures("pages")
def test_pages_and_json_show_both_parts(tmp_path, capsys):
    path = tmp_path / "aside.yaml"
    path.write_text(yaml.safe_dump(BASE))
    words = ["run", str(path), "--fleet", "local", "--set", "server.stop={patience: 9}", "--out", str(tmp_path / "run")]
    assert main([*words, "--json"]) == 0
    said = capsys.readouterr().out
    assert_described("run", said)
    found = json.loads(said)
    assert found["best"]["metric"] == "validation_accuracy"
    assert all(line["validation_accuracy"] >= line["accuracy"] for line in found["to_accuracy"])
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Validation accuracy" in page
    assert "The first evaluation of the samples for validation that showed as much." in page
    records = read(tmp_path / "run")
    assert records.validated
    assert np.isfinite(records.metrics["validation_f1_macro"]).all()
    assert records.chooser("accuracy") == "validation_accuracy"


def test_data_of_two_sources_have_both_parts_of_validation(tmp_path):
    changes = {
        "task__split": {"name": "labels", "central": [0, 1]},
        "task__partition": "iid",
        "task__metrics": [],
        "server__algorithm": "fsl",
        "server__data": "central",
        "server__rounds": 2,
    }
    final = finished(tmp_path / "run", scenario(**changes)).summary["final"]
    measures = {f"{part}{name}" for part in ("", "federated_", "central_") for name in ("accuracy", "loss")}
    assert set(final) == measures | {f"validation_{name}" for name in measures}

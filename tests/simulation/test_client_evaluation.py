"""Models at single clients: what is drawn, what is measured on which samples, and what is written down."""

import json
import math
import re
import shutil
from dataclasses import replace
from math import nan

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import yaml

from fedactors import Scenario, load_run, run
from fedactors.cli.main import main
from fedactors.errors import RunFolderError, ScenarioError
from fedactors.fleet.evaluator import Evaluator
from fedactors.learning.client_evaluation import client_model
from fedactors.learning.evaluation import ModelEvaluator
from fedactors.learning.training_task import ClientMeasures
from fedactors.models.network import forward, initial, views
from fedactors.run_files import client_metrics
from fedactors.run_files.files import lines_of
from fedactors.run_files.records import read
from fedactors.simulation.inspect.audit import audit
from fedactors.simulation.prepare import prepare
from fedactors.simulation.record.client_measures import client_figures
from fedactors.simulation.resume.branch import branch
from fedactors.simulation.runner import load, resume
from fedactors.simulation.tasks import clients_to_evaluate
from fedactors.simulation.verify import verify

BASE = {
    "name": "judged",
    "seed": 3,
    "task": {
        "dataset": "digits",
        "model": {"name": "mlp", "hidden": [8]},
        "partition": {"name": "classes", "classes": 2},
    },
    "population": [{"name": "phones", "count": 15}, {"name": "tablets", "count": 5}],
    "server": {
        "rounds": 6,
        "cohort": 8,
        "local": {"epochs": 2, "batch": 20},
        "evaluation": {"every": 2, "clients": "all"},
    },
}
HEAD = "server.personal=['3.*']"


@pytest.fixture
def scenario(tmp_path):
    def made(*overrides):
        file = tmp_path / "judged.yaml"
        file.write_text(yaml.safe_dump(BASE))
        return Scenario.load(file, overrides)

    return made


def test_clients_hold_out_nothing_that_is_like_the_central_data(scenario):
    """The whole test set is held out but for labels 0 to 4; these count with the members that the server looks at."""
    split = ["task.split={name: labels, central: [0, 1, 2, 3, 4]}", "task.partition=iid"]
    task, _, test, _ = load(prepare(scenario(*split)))
    assert np.array_equal(np.sort(task.holdout.indices), np.flatnonzero(test.y > 4))
    audience, evaluator = np.arange(20) < 3, Evaluator(task, test)
    measures = evaluator.evaluate({"x": initial(task.model, 3)}, audience)
    own = np.concatenate([task.holdout.of(client) for client in range(3)])
    rows = np.concatenate([own, np.flatnonzero(test.y < 5)])
    assert measures == ModelEvaluator(task.model, test).evaluate(initial(task.model, 3), rows)
    assert "central_loss" in measures
    assert evaluator.evaluate({"x": initial(task.model, 3)}, np.zeros(20, bool)) == {}


def test_more_test_samples_than_there_are_are_refused_before_a_run(scenario):
    partition = "task.partition={name: iid, test_samples: 19}"
    with pytest.raises(
        ScenarioError, match=r"test_samples: 380 wanted by 20 clients, \"digits\" has 360 \(accepted: f"
    ):
        prepare(scenario(partition))
    assert prepare(scenario(partition, "server.evaluation=null"))
    assert prepare(scenario(partition, "task.partition.replace=true"))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    return played(Scenario.model_validate(BASE), tmp_path_factory.mktemp("recorded") / "run").folder


def played(scenario, folder, **options):
    return run(scenario, folder, fleet="local", report=False, **options)


def test_figures_by_hand():
    """Accuracies 0 to 1 in tenths: mean 0.5, the worst tenth of 11 are 2 clients (0 and 0.1), variance 0.1."""
    measured = [ClientMeasures(k, 5, k / 10, 2.0, {}) for k in range(11)]
    groups = prepare_groups(("a", 4), ("none", 0), ("b", 7))
    row = client_figures(measured, groups)
    assert row == {
        "clients_evaluated": 11,
        "client_accuracy": pytest.approx(0.5),
        "client_accuracy_worst": pytest.approx(0.05),
        "client_accuracy_variance": pytest.approx(0.1),
        "client_loss": 2.0,
        "client_accuracy_of": {"a": pytest.approx(0.15), "b": pytest.approx(0.7)},
    }
    assert client_figures([], groups) == {"clients_evaluated": 0}


def test_values_have_a_loss_at_clients_and_no_accuracy(scenario, tmp_path):
    chosen = scenario("task.loss=mse", "server.schedule={name: constant, lr: 0.01}", "server.rounds=2")
    row = played(chosen, tmp_path / "run").metrics[-1]
    assert row["clients_evaluated"] == 20
    assert 0 < row["client_loss"] < 100
    assert not any(name.startswith("client_accuracy") for name in row)


def test_fine_tuning_is_a_few_steps_of_torch_from_the_model_of_a_client(scenario, tmp_path):
    """Whole batches, so that their order does not count; every client is measured with its own fine-tuned model."""
    fine = "server.evaluation.fine_tune={steps: 3, lr: 0.2, batch: 5000}"
    chosen = scenario(fine, "server.rounds=2", "server.cohort=all")
    found = played(chosen, tmp_path / "run")
    prepared = prepare(chosen)
    task, samples, test, _ = load(prepared)
    evaluator = ModelEvaluator(task.model, test)
    accuracies = []
    for client in range(20):
        flat = torch.from_numpy(found.state["x"].copy()).requires_grad_()
        optimizer = torch.optim.SGD([flat], lr=0.2)
        held = samples.split.of(client)
        x, y = torch.from_numpy(samples.x[held]), torch.from_numpy(samples.y[held])
        for _ in range(3):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(forward(task.model, views(task.model, flat), x), y).backward()
            optimizer.step()
        accuracies.append(evaluator.evaluate(flat.detach().numpy(), task.holdout.of(client))["accuracy"])
    assert found.metrics[-1]["client_accuracy"] == pytest.approx(np.mean(accuracies), abs=1e-6)
    plain = played(scenario("server.rounds=2", "server.cohort=all"), tmp_path / "plain")
    assert np.array_equal(plain.state["x"], found.state["x"]), "nothing of it is kept"
    assert found.metrics[-1]["client_accuracy"] > plain.metrics[-1]["client_accuracy"]


def test_fine_tuning_needs_a_measure(scenario, tmp_path, capsys):
    scenario()
    words = ["check", str(tmp_path / "judged.yaml"), "--set", "server.evaluation.fine_tune={lr: 0.1}"]
    assert main(words) == 2
    assert "give either epochs or steps" in capsys.readouterr().err


@pytest.mark.slow
def test_fine_tuned_models_are_the_same_on_ray(scenario):
    fine = "server.evaluation.fine_tune={epochs: 1, lr: 0.2}"
    assert verify(scenario(fine, HEAD, "server.rounds=2"), [("local", 1), ("ray", 2)])["equal"]


def prepare_groups(*named):
    from types import SimpleNamespace

    return [SimpleNamespace(name=name, count=count, attack=None) for name, count in named]


def test_each_client_is_judged_on_its_held_out_samples(scenario, tmp_path):
    """The row of the last round, against the model that the run left, client by client."""
    chosen = scenario()
    found = played(chosen, tmp_path / "run")
    task, _, test, _ = load(prepare(chosen))
    evaluator = ModelEvaluator(task.model, test)
    each = [evaluator.evaluate(found.state["x"], task.holdout.of(client)) for client in range(20)]
    accuracies = [one["accuracy"] for one in each]
    assert found.metrics[-1]["clients_evaluated"] == 20
    assert found.metrics[-1]["client_accuracy"] == pytest.approx(np.mean(accuracies))
    assert found.metrics[-1]["client_accuracy_variance"] == pytest.approx(np.var(accuracies))
    assert found.metrics[-1]["client_accuracy_worst"] == pytest.approx(np.mean(sorted(accuracies)[:2]))
    assert found.metrics[-1]["client_accuracy_of"]["tablets"] == pytest.approx(np.mean(accuracies[15:]))
    assert [("client_accuracy" in row) for row in found.metrics] == [False, True] * 3


def test_each_measured_client_has_a_row(scenario, tmp_path):
    """The rows of a round give the figures of that round; measures that the scenario names are columns."""
    chosen = scenario("server.evaluation.clients=7", "task.metrics=[f1_macro]")
    found = played(chosen, tmp_path / "run")
    task, _, test, _ = load(prepare(chosen))
    table = found.frames.client_metrics
    assert list(table.columns) == ["round", "client", "samples", "accuracy", "loss", "f1_macro"]
    assert table.groupby("round").client.apply(len).to_dict() == {2: 7, 4: 7, 6: 7}
    for at, row in table.groupby("round").accuracy.mean().items():
        assert row == pytest.approx(found.metrics[at - 1]["client_accuracy"])
    evaluator = ModelEvaluator(task.model, test, metrics=task.metrics)
    for _, row in table[table["round"] == 6].iterrows():
        held = task.holdout.of(int(row.client))
        expected = evaluator.evaluate(found.state["x"], held)
        assert row.samples == len(held)
        assert {name: row[name] for name in ("accuracy", "loss", "f1_macro")} == expected
    assert load_run(tmp_path / "run").frames.client_metrics.equals(table)


def test_no_rows_where_no_client_is_measured(scenario, tmp_path):
    found = played(scenario("server.evaluation=null", "server.rounds=1"), tmp_path / "run")
    assert not list(found.folder.glob("client_metrics*"))


def test_measures_that_some_clients_lack_are_not_numbers(tmp_path):
    """A loss that has overflowed, and an AUC that only clients with both labels have, from the second round on."""
    client_metrics.append(tmp_path, 1, {"client": [4, 7], "samples": [1, 2], "loss": [0.5, math.inf]})
    client_metrics.append(tmp_path, 2, {"client": [5], "samples": [3], "loss": [1.0], "auc": [0.75]})
    client_metrics.append(tmp_path, 3, {"client": [], "samples": [], "loss": []})
    client_metrics.tabulate(tmp_path)
    table = pq.read_table(tmp_path / client_metrics.TABLE)
    assert table.column_names == ["round", "client", "samples", "loss", "auc"]
    rows = [tuple(row.values()) for row in table.to_pylist()]
    assert repr(rows) == repr([(1, 4, 1, 0.5, nan), (1, 7, 2, nan, nan), (2, 5, 3, 1.0, 0.75)])


def test_on_the_whole_test_set_the_global_model_is_the_same_for_all(scenario, tmp_path):
    row = played(scenario("server.evaluation.on=test"), tmp_path / "run").metrics[-1]
    assert row["client_accuracy"] == pytest.approx(row["accuracy"])
    assert row["client_accuracy_variance"] == pytest.approx(0.0, abs=1e-20)


def test_evaluation_changes_nothing_else(scenario, tmp_path):
    one, other = played(scenario(), tmp_path / "one"), played(scenario("server.evaluation=null"), tmp_path / "other")
    assert np.array_equal(one.state["x"], other.state["x"])
    assert one.summary["digests"]["plans"] == other.summary["digests"]["plans"]


def test_drawn_clients_have_a_stream_of_their_own(scenario, tmp_path):
    prepared = prepare(scenario("server.evaluation.clients=5"))
    plans = list(prepared.clock())
    drawn = [clients_to_evaluate(plan, prepared) for plan in plans]
    assert all(len(set(one)) == 5 and list(one) == sorted(one) for one in drawn)
    assert len(set(drawn)) > 1
    other = prepare(scenario("server.evaluation.clients=5", "server.algorithm=scaffold"))
    assert drawn == [clients_to_evaluate(plan, other) for plan in plans]


def test_only_members_are_drawn(scenario):
    population = "population=[{name: early, count: 10, depart: 1s}, {name: late, count: 10, arrive: 2s}]"
    prepared = prepare(scenario(population))
    plan = next(prepare(scenario()).clock())
    for closed, expected in ((0, range(10)), (10**9, ()), (2 * 10**9, range(10, 20))):
        assert clients_to_evaluate(replace(plan, closed=closed), prepared) == tuple(expected)


def test_what_a_client_uses():
    x, positions = np.arange(4, dtype=np.float32), np.array([2, 3])
    assert client_model(x, None, positions) is x
    personal = {"personal": np.array([7, 8], np.float32)}
    assert client_model(x, personal, positions).tolist() == [0, 1, 7, 8]
    assert x.tolist() == [0, 1, 2, 3]
    own = np.array([9, 9, 9, 9], np.float32)
    assert client_model(x, {"own": own, **personal}, positions) is own
    assert client_model(x, {"c": own}, None) is x


@pytest.mark.parametrize("change", [HEAD, "server.algorithm={name: ditto, pull: 0.1}"])
def test_own_models_are_better_where_labels_differ(scenario, tmp_path, change):
    longer = ("server.rounds=20", "server.evaluation.every=20", change)
    own = played(scenario(*longer), tmp_path / "own").metrics[-1]
    shared = played(scenario(*longer, "server.evaluation.model=global"), tmp_path / "shared").metrics[-1]
    assert own["train_loss"] == shared["train_loss"]
    assert own["client_accuracy"] > shared["client_accuracy"] + 0.05


def test_it_survives_resume(scenario, tmp_path):
    whole = played(scenario(HEAD), tmp_path / "whole")
    played(scenario(HEAD), tmp_path / "run", stop_after=3)
    again = resume(tmp_path / "run", fleet="local", report=False)
    assert again.summary["digests"] == whole.summary["digests"]
    assert table_of(again) == table_of(whole)


def test_rows_of_clients_survive_any_end(scenario, tmp_path):
    """Killed while a line was written, of a round that is after the checkpoint, and before any table was there."""
    whole = played(scenario(), tmp_path / "whole")
    played(scenario(), tmp_path / "run", stop_after=3)
    (tmp_path / "run" / client_metrics.TABLE).unlink()
    lines = (tmp_path / "whole" / client_metrics.LINES).read_text().splitlines(keepends=True)
    (tmp_path / "run" / client_metrics.LINES).write_text("".join(lines[:2]) + lines[2][:40])
    assert table_of(resume(tmp_path / "run", fleet="local", report=False)) == table_of(whole)


def test_a_branch_has_the_rows_of_the_rounds_that_it_shares(scenario, tmp_path):
    whole = played(scenario(), tmp_path / "run")
    found = branch(tmp_path / "run", 4, ["server.rounds=10"], tmp_path / "on", fleet="local", report=False)
    longer, shorter = found.frames.client_metrics, whole.frames.client_metrics
    assert sorted(set(longer["round"])) == [2, 4, 6, 8, 10]
    assert longer[longer["round"] <= 6].equals(shorter)


def test_lines_that_no_run_writes_are_damage(scenario, tmp_path):
    played(scenario(), tmp_path / "run", stop_after=3)
    (tmp_path / "run" / client_metrics.LINES).write_text('{"round": 2, "client": [1], "samples": []}\n')
    with pytest.raises(RunFolderError, match=r"client_metrics\.jsonl, line 1: damaged: columns of unlike lengths"):
        resume(tmp_path / "run", fleet="local", report=False)


@pytest.mark.parametrize("kept", [None, [], [2, 6], [2, 2, 4, 6]])
def test_lines_that_are_lost_are_told_before_anything_is_cut(recorded, tmp_path, kept):
    """Rounds 2, 4 and 6 evaluate clients; a line after the rounds that are shared is no matter."""
    folder = shutil.copytree(recorded, tmp_path / "run")
    lines = {row["round"]: json.dumps(row) + "\n" for row in lines_of(folder / client_metrics.LINES)}
    (folder / client_metrics.LINES).unlink()
    if kept is not None:
        (folder / client_metrics.LINES).write_text("".join(lines[number] for number in kept))
    lost = r"client_metrics\.jsonl: damaged: not the 3 lines of the rounds after which clients were evaluated"
    with pytest.raises(RunFolderError, match=lost):
        resume(folder, fleet="local", report=False)
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == 6
    assert (folder / "summary.json").exists()
    with pytest.raises(RunFolderError, match=lost.replace("3", "2")):
        branch(folder, 4, ["server.rounds=7"], tmp_path / "on", fleet="local", report=False)
    (final,) = [one for one in audit(folder)["checks"] if one["name"] == "final"]
    assert re.search(lost, " ".join(final["wrong"]))


def test_records_of_evaluated_clients_are_sound(recorded):
    assert audit(recorded)["sound"]


def table_of(result):
    return (result.folder / client_metrics.TABLE).read_bytes()


@pytest.mark.slow
def test_the_same_bits_on_any_number_of_hosts(scenario):
    assert verify(scenario(HEAD), [("local", 1), ("ray", 1), ("ray", 3)])["equal"]


@pytest.mark.usefixtures("pages")
def test_the_report_shows_it(scenario, tmp_path):
    run(scenario(), tmp_path / "run", fleet="local")
    records = read(tmp_path / "run")
    rows = lines_of(tmp_path / "run/metrics.jsonl")
    assert records.metrics["client_accuracy"][1] == rows[1]["client_accuracy"]
    assert records.metrics["client_accuracy_of/tablets"][1] == rows[1]["client_accuracy_of"]["tablets"]
    page = (tmp_path / "run/report.html").read_text()
    assert "Accuracy at clients" in page
    assert "worst tenth" in page
    assert "mean of tablets" in page


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("server.evaluation.clients=0", "server.evaluation.clients"),
        ("server.evaluation.on=train", "server.evaluation.on"),
        ("server.evaluation.evry=3", 'did you mean "every"'),
    ],
)
def test_wrong_options_are_told(scenario, tmp_path, capsys, change, said):
    scenario()
    assert main(["check", str(tmp_path / "judged.yaml"), "--set", change]) == 2
    assert said in capsys.readouterr().err

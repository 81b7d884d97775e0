"""Everyday options of a scenario: each is five lines over a base scenario that runs; and what is refused."""

import copy
import json

import numpy as np
import pytest
import torch
import yaml
from safetensors.numpy import load_file

import fedactors
from fedactors import Scenario
from fedactors.cli.main import main
from fedactors.data.sets.digits import Digits
from fedactors.models.network import initial, views
from fedactors.models.paper_models import Logistic
from fedactors.run_files.best_model import BestModel
from fedactors.run_files.records import read
from fedactors.scenario.yaml_text import parse
from fedactors.simulation.progress import Silent
from fedactors.study import comparison_tables
from fedactors.study.comparison import Comparison
from fedactors.study.run_figures import StudyRow, figures

BASE = """
name: knobs
seed: 3
task: {dataset: digits, model: {name: mlp, hidden: [16]}, partition: iid}
population:
  - {name: phones, count: 4}
  - {name: tablets, count: 4}
server:
  rounds: 3
  cohort: 6
  local: {epochs: 1, batch: 20}
  schedule: {name: constant, lr: 0.1}
"""


def scenario(text="", folder=None):
    """Return the base scenario with the keys of `text` in the place of its own."""
    return Scenario.from_data(merged(text), "knobs.yaml", folder=folder)


def merged(text):
    data, _ = parse(BASE, "knobs.yaml")
    return over(data, parse(text, "further.yaml")[0] if text.strip() else {})


def over(data, further):
    found = copy.deepcopy(data)
    for key, value in further.items():
        both = isinstance(value, dict) and isinstance(found.get(key), dict) and "name" not in value
        found[key] = over(found[key], value) if both else value
    return found


def finished(text, path, **how):
    return fedactors.run(scenario(text), path, fleet="local", report=False, **how)


KNOBS = {
    "momentum": "server: {local: {optimizer: {name: sgd, momentum: 0.9, weight_decay: 1.0e-4, nesterov: true}}}",
    "adam": "server: {local: {optimizer: {name: adam, weight_decay: 0.01}}, schedule: {name: constant, lr: 0.01}}",
    "adamw": "server: {local: {optimizer: adamw}, schedule: {name: constant, lr: 0.01}}",
    "norm": "server: {local: {clip: {norm: 1.0}}}",
    "value": "server: {local: {clip: {value: 0.5}}}",
    "cosine": "server: {schedule: {name: cosine, lr: 0.1, warm_up: 1}}",
    "exponential": "server: {schedule: {name: exponential, lr: 0.1, gamma: 0.9}}",
    "step": "server: {schedule: {name: step, lr: 0.1, step_size: 2}}",
    "multistep": "server: {schedule: {name: multistep, lr: 0.1, milestones: [1, 2], gamma: 0.5}}",
    "polynomial": "server: {schedule: {name: polynomial, lr: 0.1, power: 2}}",
    "server rate": "server: {server_schedule: {name: exponential, lr: 1.0, gamma: 0.8}}",
    "server adam": "server: {algorithm: fedadam, server_schedule: {name: cosine, lr: 0.1}}",
    "stop": "server: {stop: {accuracy: 0.3}}",
    "patience": "server: {stop: {loss: {below: 0.3}, patience: 2}}",
    "group": "population: [{name: phones, count: 4}, {name: tablets, count: 4, local: {steps: 3, batch: 5}}]",
    "median": "server: {aggregation: median}",
    "krum": "server: {aggregation: {name: krum, malicious: 1}}",
    "smoothing": "task: {loss: {name: cross_entropy, label_smoothing: 0.1}}",
    "margin": "task: {loss: multi_margin}",
    "regression": "task: {loss: huber, metrics: [rmse, r2, mae]}",
    "metrics": "task: {metrics: [f1_macro, auroc, top5, perplexity, balanced_accuracy]}",
}


@pytest.mark.parametrize("name", KNOBS)
def test_each_is_a_line_over_a_scenario_that_runs(name, tmp_path):
    result = finished(KNOBS[name], tmp_path / "run")
    assert np.isfinite(list(result.summary["final"].values())).all()
    assert np.isfinite(result.state["x"]).all()


@pytest.mark.parametrize(
    ("options", "theirs"),
    [
        ({}, {}),
        ({"momentum": 0.9, "weight_decay": 1e-4, "nesterov": True},) * 2,
        ({"momentum": 0.9, "dampening": 0.5},) * 2,
        ({"weight_decay": 0.1},) * 2,
    ],
    ids=str,
)
@pytest.mark.parametrize("clip", [None, {"norm": 0.2}, {"value": 0.01}], ids=str)
def test_a_trip_of_twenty_steps_is_that_of_torch(options, theirs, clip, tmp_path):
    """One client, whole batches, one round of twenty steps on real digits: parameters to 1e-6."""
    written = json.dumps({"name": "sgd", **options})
    text = f"""
task: {{model: {{name: logistic, init: uniform}}}}
population: [{{name: one, count: 1}}]
server:
  rounds: 1
  cohort: all
  local: {{epochs: null, steps: 20, batch: 5000, optimizer: {written}, clip: {json.dumps(clip)}}}
"""
    found = finished(text, tmp_path / "run").state["x"]
    data = Digits().load(3, 1)
    x, y = torch.from_numpy(data.x).flatten(1), torch.from_numpy(data.y)
    model = Logistic(init="uniform").build(data.x.shape[1:], 10)
    parts = [torch.nn.Parameter(part.clone()) for part in views(model, torch.from_numpy(initial(model, 3)))]
    optimizer = torch.optim.SGD(parts, lr=0.1, **theirs)
    for _ in range(20):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(x @ parts[0].T + parts[1], y).backward()
        if clip and "norm" in clip:
            torch.nn.utils.clip_grad_norm_(parts, clip["norm"])
        elif clip:
            torch.nn.utils.clip_grad_value_(parts, clip["value"])
        optimizer.step()
    wanted = torch.cat([part.detach().flatten() for part in parts]).numpy()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)


def test_options_that_change_nothing_keep_the_bits_of_plain_sgd(tmp_path):
    plain = finished("", tmp_path / "plain").summary["digests"]
    written = "server: {local: {optimizer: {name: sgd, momentum: 0.0, weight_decay: 0.0}}, aggregation: mean}"
    assert finished(written, tmp_path / "written").summary["digests"] == plain
    assert finished("task: {loss: cross_entropy}", tmp_path / "loss").summary["digests"] == plain
    once = finished("server: {schedule: {name: step, lr: 0.1, step_size: 50}}", tmp_path / "step")
    assert once.summary["digests"] == plain


def test_rates_of_rounds_are_in_the_rows(tmp_path):
    result = finished("server: {rounds: 4, schedule: {name: cosine, lr: 0.2, warm_up: 1}}", tmp_path / "run")
    assert [row["lr"] for row in result.metrics] == pytest.approx([0.1, 0.2, 0.15, 0.05])


def test_a_constant_server_schedule_is_the_algorithms_own_rate(tmp_path):
    own = finished("server: {algorithm: {name: fedavg, global_lr: 0.5}}", tmp_path / "own").summary["digests"]
    by_round = finished("server: {server_schedule: {name: constant, lr: 0.5}}", tmp_path / "by_round")
    assert by_round.summary["digests"] == own
    falling = finished("server: {server_schedule: {name: exponential, lr: 0.5, gamma: 0.5}}", tmp_path / "falling")
    assert falling.summary["digests"]["model"] != own["model"]


def test_groups_do_their_own_work(tmp_path):
    """Of 8 devices with 179 or 180 samples, 4 do nine batches of 20 and 4 do 3 steps of 5."""
    result = finished(f"{KNOBS['group']}\nserver: {{cohort: all}}", tmp_path / "run")
    assert [row["steps"] for row in result.metrics] == [4 * 9 + 4 * 3] * 3


STOP = "server: {rounds: 30, evaluate_every: 2, stop: {accuracy: 0.8, patience: 5}}"


def test_a_run_ends_with_its_reason_at_the_first_round_that_is_good_enough(tmp_path):
    result = finished(STOP, tmp_path / "run")
    seen = [(row["round"], row["accuracy"]) for row in result.metrics if "accuracy" in row]
    assert all(round % 2 == 0 for round, _ in seen)
    assert all(accuracy < 0.8 for _, accuracy in seen[:-1])
    assert seen[-1][1] >= 0.8
    assert result.summary["plans"] == seen[-1][0] < 30
    assert result.summary["ended_because"] == f"accuracy {seen[-1][1]:.6g} is at least 0.8, as server.stop asks"


def test_patience_counts_evaluations_without_a_better_value(tmp_path):
    """The rate is so small that the loss never gets better by 0.5: the first value, and two further ones."""
    stop = "{patience: 2, min_delta: 0.5, metric: loss}"
    text = f"server: {{rounds: 30, schedule: {{name: constant, lr: 1.0e-5}}, stop: {stop}}}"
    result = finished(text, tmp_path / "run")
    assert result.summary["plans"] == 3
    assert result.summary["best"]["round"] == 1
    assert "no better loss than" in result.summary["ended_because"]
    assert result.summary["ended"] == "goal"


WORSE = "server: {rounds: 11, schedule: {name: constant, lr: 3.0}, stop: {metric: loss, patience: 9}}"


def test_the_best_model_is_kept_beside_the_last(tmp_path):
    """With a rate that is too large the loss goes up and down."""
    result = finished(WORSE, tmp_path / "run")
    losses = [row["loss"] for row in result.metrics]
    best = int(np.argmin(losses))
    assert result.summary["best"] == {"metric": "loss", "round": best + 1, "value": losses[best]}
    assert best + 1 < result.summary["plans"]
    kept = load_file(tmp_path / "run" / "checkpoint" / "best.safetensors")["x"]
    again = finished(WORSE.replace("rounds: 11", f"rounds: {best + 1}"), tmp_path / "again")
    assert np.array_equal(kept, again.state["x"])


@pytest.mark.parametrize("text", [STOP, WORSE], ids=["level", "best"])
@pytest.mark.parametrize("after", [1, 3])
def test_a_run_that_goes_on_stops_where_an_unbroken_one_does_with_the_same_bits(text, after, tmp_path):
    whole = finished(text, tmp_path / "whole")
    finished(text, tmp_path / "parts", stop_after=after)
    parts = fedactors.simulation.runner.resume(tmp_path / "parts", fleet="local", report=False)
    for key in ("digests", "ended_because", "best", "plans"):
        assert parts.summary[key] == whole.summary[key]
    one, other = (load_file(tmp_path / name / "checkpoint" / "best.safetensors") for name in ("whole", "parts"))
    assert np.array_equal(one["x"], other["x"])


def test_a_best_model_of_a_round_that_is_to_be_done_again_is_dropped(tmp_path):
    """The best one so far is that of the checkpoint, which takes its place; so it does where there is none."""
    finished(WORSE, tmp_path / "run", stop_after=1)
    path = tmp_path / "run" / "checkpoint" / "best.safetensors"
    whole = path.read_bytes()
    BestModel(tmp_path / "run").write({"x": np.zeros(3, np.float32)}, 7)
    fedactors.simulation.runner.resume(tmp_path / "run", fleet="local", report=False, stop_after=1)
    assert path.read_bytes() == whole
    path.unlink()
    fedactors.simulation.runner.resume(tmp_path / "run", fleet="local", report=False, stop_after=1)
    assert path.read_bytes() == whole


def test_a_best_model_that_is_not_there_is_not_named(tmp_path):
    """It was of a round before the checkpoint, and a model of a later round has taken its place."""
    whole = finished(WORSE, tmp_path / "run")
    best = whole.summary["best"]["round"]
    finished(WORSE, tmp_path / "cut", stop_after=best + 1)
    BestModel(tmp_path / "cut").write({"x": np.zeros(3, np.float32)}, best + 5)
    cut = fedactors.simulation.runner.resume(tmp_path / "cut", fleet="local", report=False, stop_after=best + 1)
    assert "best" not in cut.summary
    assert not (tmp_path / "cut" / "checkpoint" / "best.safetensors").exists()


class Impatient(Silent):
    """Interrupts a run when a round is shown."""

    def __init__(self, at):
        self.at = at

    def round(self, row):
        if row["round"] == self.at:
            raise KeyboardInterrupt


def test_an_interrupt_at_the_best_round_does_not_lose_its_model(tmp_path):
    whole = finished(WORSE, tmp_path / "whole")
    best = whole.summary["best"]["round"]
    with pytest.raises(KeyboardInterrupt):
        finished(WORSE, tmp_path / "cut", progress=Impatient(best))
    parts = fedactors.simulation.runner.resume(tmp_path / "cut", fleet="local", report=False)
    assert [parts.summary[key] for key in ("digests", "best")] == [whole.summary[key] for key in ("digests", "best")]
    one, other = (load_file(tmp_path / name / "checkpoint" / "best.safetensors") for name in ("whole", "cut"))
    assert np.array_equal(one["x"], other["x"])


def test_a_regression_on_labels_learns_and_has_no_accuracy(tmp_path):
    text = "task: {loss: mse, metrics: [rmse, r2]}\nserver: {rounds: 20, schedule: {name: constant, lr: 0.01}}"
    result = finished(text, tmp_path / "run")
    final = result.summary["final"]
    assert set(final) == {"loss", "rmse", "r2"}
    assert final["rmse"] == pytest.approx(final["loss"] ** 0.5, rel=1e-5)
    assert final["r2"] > 0.3


@pytest.mark.slow
@pytest.mark.usefixtures("pages")
def test_reports_and_comparisons_can_do_without_an_accuracy(tmp_path, capsys):
    fedactors.run(scenario(KNOBS["regression"]), tmp_path / "run", fleet="local")
    assert (tmp_path / "run" / "report.html").exists()
    assert main(["report", str(tmp_path / "run")]) == 0
    (tmp_path / "scenario.yaml").write_text(yaml.safe_dump(merged(KNOBS["regression"])))
    path = tmp_path / "again"
    assert main(["run", str(tmp_path / "scenario.yaml"), "--fleet", "local", "--out", str(path)]) == 0
    said = capsys.readouterr().out
    assert "rmse" in said
    page = (path / "report.html").read_text()
    assert "Final rmse" in page
    assert "Lower is better." in page
    rows = [StudyRow({}, 0, path, read(path, tables=False))]
    assert figures(rows[0])["rmse"] == rows[0].records.summary["final"]["rmse"]
    table = comparison_tables.text(Comparison("knobs", {"a": rows, "b": rows}, "a", None, 0.95, 1))
    assert "rmse" in table
    assert "Lower is better: loss, rmse, mae." in table


WRONG = {
    "task: {loss: cros_entropy}": 'did you mean "cross_entropy"?',
    "task: {loss: {name: cross_entropy, label_smoothing: 1.5}}": "less than 1",
    "task: {loss: {name: cross_entropy, class_weights: [1.0, 2.0]}}": "found 2 weights for 10 classes",
    "task: {loss: {name: huber, delta: 0}}": "greater than 0",
    "task: {loss: {name: mse, delta: 1.0}}": "unknown key",
    "task: {loss: bce}": "bce judges labels 0 and 1, the data have 10 labels",
    "task: {loss: ctc}": "ctc judges sequences",
    "task: {loss: mse, model: least_squares}": "is made for the loss squared",
    'task: {loss: {name: torch, factory: "losses.py:my_loss"}}': "no file",
    "task: {loss: {name: torch}}": "factory: is required",
    "task: {engine: dense_batched, loss: multi_margin}": 'task.engine: "dense_batched" does not support',
    "task: {metrics: [f1_makro]}": 'did you mean "f1_macro"?',
    "task: {metrics: [rmse]}": '"rmse" is of labels of the kind value',
    "task: {loss: mse, metrics: [f1_macro]}": '"f1_macro" is of labels of the kind class or multi-label',
    "task: {metrics: [f1_macro, f1_macro]}": 'found "f1_macro" twice',
    'task: {metrics: [{name: loss, factory: "math:sqrt", higher_is_better: true}]}': "is a column of metrics already",
    'task: {metrics: [{name: own, factory: "math:sqrt"}]}': "higher_is_better is required",
    "server: {stop: {acuracy: 0.9}}": 'no measure "acuracy"; did you mean "accuracy"?',
    "server: {stop: {}}": "nothing ends the run",
    "server: {stop: {patience: 0, accuracy: 0.5}}": "greater than or equal to 1",
    "server: {stop: {loss: {above: 1.0, below: 0.5}}}": "give either above or below",
    "server: {stop: {f1_macro: 0.5}}": '"f1_macro" is not measured (accepted: it in task.metrics',
    "task: {loss: mse}\nserver: {stop: {accuracy: 0.5}}": '"accuracy" is not measured',
    "server: {schedule: {name: cosinus, lr: 0.1}}": 'did you mean "cosine"?',
    "server: {schedule: {name: cosine}}": "lr: is required",
    "server: {schedule: {name: cosine, lr: 0.1, t_max: 1}}": "the rate of round 2 would be 0",
    "server: {schedule: {name: step, lr: 0.1}}": "step_size: is required",
    "server: {schedule: {name: multistep, lr: 0.1, milestones: [3, 2]}}": "must ascend",
    "server: {schedule: {name: exponential, lr: 0.1, gamma: 1.5}}": "less than or equal to 1",
    "server: {algorithm: fed-sgd, server_schedule: {name: constant, lr: 1.0}}": "has no rate of the server",
    "server: {algorithm: {name: fedavg, global_lr: 2.0}, server_schedule: {name: constant, lr: 1.0}}": "not both",
    "server: {local: {optimizer: {name: sgd, nesterov: true}}}": "nesterov needs momentum",
    "server: {local: {optimizer: {name: sgd, dampening: 0.5}}}": "dampening needs momentum",
    "server: {local: {clip: {norm: 1.0, value: 1.0}}}": "give either norm or value",
    "server: {algorithm: scaffold, local: {optimizer: {name: sgd, momentum: 0.9}}}": 'found "sgd with momentum"',
    "server: {algorithm: fed-lamb, local: {optimizer: {name: sgd, weight_decay: 0.1}}}": "brings its own",
    "population: [{name: phones, count: 8, local: {steps: 2, epochs: 2}}]": "give either epochs or steps",
    "population: [{name: phones, count: 8, local: {}}]": "says nothing",
    "population: [{name: a, count: 8, local: {steps: 2}}]\nserver: {local: {update_unit: epoch}}": "whole passes",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_one_message_and_exit_code_two(text, tmp_path, capsys):
    path = tmp_path / "wrong.yaml"
    path.write_text(yaml.safe_dump(merged(text)))
    assert main(["check", str(path)]) == 2
    said = capsys.readouterr().err
    assert WRONG[text] in said, said
    assert "Traceback" not in said
    assert len(said.strip().splitlines()) == 1, said

"""TensorBoard and MLflow get the metrics that the run folder has; a library that is missing is named."""

import json
import sys

import pytest

from fedactors.cli.main import main
from fedactors.simulation.trackers import flat, numbers
from tests.fleet.conftest import QUICKSTART

WORDS = ["run", str(QUICKSTART), "--set", "server.rounds=3", "--set", "server.evaluate_every=2", "--fleet", "local"]


def rows(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.filterwarnings("ignore")  # tensorboard's own
def test_tensorboard_reads_the_metrics(tmp_path, capsys):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    assert main([*WORDS, "--out", str(tmp_path / "run"), "--tensorboard"]) == 0
    logged = accumulator.EventAccumulator(str(tmp_path / "run/tensorboard"))
    logged.Reload()
    for name in ("accuracy", "virtual_seconds", "outcomes/complete", "bytes_up"):
        expected = [(row["round"], numbers(row)[name]) for row in rows(tmp_path / "run") if name in numbers(row)]
        assert [(e.step, pytest.approx(e.value, rel=1e-6)) for e in logged.Scalars(name)] == expected
    assert len(logged.Scalars("accuracy")) == 2


@pytest.mark.filterwarnings("ignore")  # mlflow's own
def test_mlflow_has_metrics_and_parameters(tmp_path, capsys, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    store = (tmp_path / "store").as_uri()
    assert main([*WORDS, "--out", str(tmp_path / "run"), "--mlflow", store]) == 0
    client = mlflow.MlflowClient(tracking_uri=store)
    [run] = client.search_runs([client.get_experiment_by_name("fedactors").experiment_id])
    assert run.data.params["server.rounds"] == "3"
    assert run.data.params["population.0.name"] == "phones"
    assert run.info.status == "FINISHED"
    history = client.get_metric_history(run.info.run_id, "accuracy")
    assert [(m.step, m.value) for m in history] == [
        (row["round"], row["accuracy"]) for row in rows(tmp_path / "run") if "accuracy" in row
    ]


@pytest.mark.parametrize("library", ["tensorboard", "mlflow"])
def test_a_missing_library_is_named_before_anything_runs(library, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, library, None)
    option = ["--tensorboard"] if library == "tensorboard" else ["--mlflow", "file:x"]
    assert main([*WORDS, "--out", str(tmp_path / "run"), *option]) == 2
    assert f"{library} is not installed (accepted: pip install 'fedactors[{library}]')" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_names_are_flat():
    row = {
        "round": 3,
        "accuracy": 0.5,
        "train_loss": None,
        "outcomes": {"late": 2},
        "moves": [{"client": 1}],
        "x": True,
    }
    assert numbers(row) == {"accuracy": 0.5, "outcomes/late": 2.0}
    assert dict(flat({"a": {"b": [1, {"c": None}]}})) == {"a.b.0": 1, "a.b.1.c": None}

"""A run that goes on is logged as the run it was, each of its rounds once."""

import json
import re

import pytest

from fedactors.cli.main import main
from fedactors.simulation.tracking.run_ids import TRACKERS, RunIds
from tests.fleet.conftest import QUICKSTART
from tests.simulation.tracking.test_trackers import unlogged  # noqa: F401 - a fixture

SET = ["--set", "server.rounds=4", "--set", "cluster.checkpoint_every=2"]


def run_and_go_on(folder, *options):
    """Run four rounds, and do the last two again from the checkpoint before."""
    assert main(["run", str(QUICKSTART), *SET, "--fleet", "local", "--out", str(folder), *options]) == 0
    assert main(["resume", str(folder), "--previous", "--fleet", "local", *options]) == 0


@pytest.mark.filterwarnings("ignore")  # tensorboard's own
def test_tensorboard_shows_each_round_once(tmp_path, capsys):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run_and_go_on(tmp_path / "run", "--tensorboard")
    assert len(list((tmp_path / "run/tensorboard").iterdir())) == 2
    logged = accumulator.EventAccumulator(str(tmp_path / "run/tensorboard"))
    logged.Reload()
    assert [event.step for event in logged.Scalars("heard")] == [1, 2, 3, 4]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # mlflow's own
@pytest.mark.parametrize("forgotten", [False, True], ids=["known", "deleted there"])
def test_mlflow_goes_on_with_the_run(forgotten, tmp_path, capsys, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.delenv("MLFLOW_ALLOW_FILE_STORE", raising=False)
    store = (tmp_path / "store").as_uri()
    run_and_go_on(tmp_path / "run", "--mlflow", store)
    client = mlflow.MlflowClient(tracking_uri=store)
    experiment = client.get_experiment_by_name("fedactors").experiment_id
    [found] = client.search_runs([experiment])
    if forgotten:
        client.delete_run(found.info.run_id)
        assert main(["resume", str(tmp_path / "run"), "--previous", "--fleet", "local", "--mlflow", store]) == 0
        [other] = client.search_runs([experiment])
        assert other.info.run_id != found.info.run_id
        found = other
    steps = [one.step for one in client.get_metric_history(found.info.run_id, "heard")]
    assert steps == ([3, 4] if forgotten else [1, 2, 3, 4])
    assert found.info.status == "FINISHED"
    assert RunIds(tmp_path / "run").of("MLflow") == found.info.run_id
    assert "MLflow: " not in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # wandb's own
def test_weights_and_biases_knows_the_run_by_one_id(tmp_path, unlogged, capsys):  # noqa: F811
    run_and_go_on(tmp_path / "run", "--wandb", "phones")
    known = RunIds(tmp_path / "run").of("Weights & Biases")
    files = list(tmp_path.glob("run/wandb/offline-run-*/*.wandb"))
    assert len(files) == 2
    assert {re.sub(r"run-|\.wandb", "", path.name) for path in files} == {known}


def test_an_id_that_cannot_be_read_is_none(tmp_path):
    ids = RunIds(tmp_path)
    assert ids.of("MLflow") == ""
    for text in ("{", "[]", '{"MLflow": 3}'):
        (tmp_path / TRACKERS).write_text(text)
        assert ids.of("MLflow") == ""
    ids.keep("MLflow", "7")
    ids.keep("other", "8")
    assert json.loads((tmp_path / TRACKERS).read_text()) == {"MLflow": "7", "other": "8"}

"""Trackers get the metrics that the run folder has; one that cannot be used is told before the run, one that fails
later is a warning.
"""

import json
import socket
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from fedactors.cli.main import main
from fedactors.errors import UsageError
from fedactors.extras import needed
from fedactors.scenario import Scenario
from fedactors.simulation.progress import Silent
from fedactors.simulation.runner import run
from fedactors.simulation.tracking.tracked_progress import flat, numbers
from tests.fleet.conftest import QUICKSTART
from tests.test_own_plugins import written

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
    monkeypatch.delenv("MLFLOW_ALLOW_FILE_STORE", raising=False)
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


def parameters_in(store, monkeypatch):
    """Return the name and the parameters of the one run in a store of MLflow."""
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.delenv("MLFLOW_ALLOW_FILE_STORE", raising=False)
    client = mlflow.MlflowClient(tracking_uri=store)
    [found] = client.search_runs([client.get_experiment_by_name("fedactors").experiment_id])
    return found.info.run_name, found.data.params


@pytest.mark.filterwarnings("ignore")  # mlflow's and tensorboard's own
@pytest.mark.parametrize("out", [["--out", "branched"], []], ids=["folder given", "new folder"])
def test_a_branch_is_logged_under_its_own_name_with_what_is_changed(out, tmp_path, monkeypatch, capsys):
    pytest.importorskip("tensorboard")
    monkeypatch.chdir(tmp_path)
    assert main([*WORDS, "--out", "whole"]) == 0
    store = (tmp_path / "store").as_uri()
    words = ["branch", "whole", "--at", "round=2", "--set", "server.rounds=4", "--fleet", "local"]
    assert main([*words, *out, "--tensorboard", "--mlflow", store]) == 0
    assert not (tmp_path / "whole/tensorboard").exists()
    [folder] = [path.parent for path in tmp_path.rglob("tensorboard")]
    assert folder == tmp_path / "branched" if out else folder.name.startswith("quickstart-branch-")
    assert rows(folder)[-1]["round"] == 4
    name, parameters = parameters_in(store, monkeypatch)
    assert (name, parameters["server.rounds"]) == (folder.name, "4")


@pytest.mark.filterwarnings("ignore")  # mlflow's own
def test_a_run_that_goes_on_is_logged_with_its_new_cluster(tmp_path, monkeypatch, capsys):
    """Also where the scenario names a file of the user."""
    run(Scenario.load(written(tmp_path)), tmp_path / "run", fleet="local", report=False, stop_after=1)
    store = (tmp_path / "store").as_uri()
    words = ["resume", str(tmp_path / "run"), "--set", "cluster.checkpoint_every=7", "--fleet", "local"]
    assert main([*words, "--mlflow", store]) == 0, capsys.readouterr().err
    assert parameters_in(store, monkeypatch)[1]["cluster.checkpoint_every"] == "7"


@pytest.mark.filterwarnings("ignore")  # mlflow's own
def test_a_store_of_no_known_kind_is_told_before_the_run(tmp_path, capsys):
    pytest.importorskip("mlflow")
    assert main([*WORDS, "--out", str(tmp_path / "run"), "--mlflow", "nonsense://x"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("fedactors: --mlflow nonsense://x: ")
    assert said.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.filterwarnings("ignore")  # mlflow's own
def test_a_server_that_is_not_there_is_told_before_the_run(tmp_path, capsys):
    pytest.importorskip("mlflow")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        assert main([*WORDS, "--out", str(tmp_path / "run"), "--mlflow", address]) == 2
    said = capsys.readouterr().err
    assert f"--mlflow {address}: " in said
    assert said.count("\n") == 1
    assert not (tmp_path / "run").exists()


class Ending(BaseHTTPRequestHandler):
    """An MLflow server for as long as it takes to create a run, which then refuses what it is sent."""

    def do_GET(self):
        self.answer(200, {"experiment": {"experiment_id": "7", "name": "fedactors"}})

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.endswith("runs/create"):
            self.answer(200, {"run": {"info": {"run_id": "1", "run_uuid": "1", "experiment_id": "7"}, "data": {}}})
        else:
            self.answer(400, {"error_code": "BAD_REQUEST", "message": "the disk is full"})

    def answer(self, code, content):
        body = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        """Print nothing."""


@pytest.mark.filterwarnings("ignore")  # mlflow's own
def test_a_server_that_fails_later_is_one_warning_and_no_end(tmp_path, capsys):
    pytest.importorskip("mlflow")
    with HTTPServer(("127.0.0.1", 0), Ending) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}"
        code = main([*WORDS, "--out", str(tmp_path / "run"), "--mlflow", address])
        server.shutdown()
        thread.join()
    assert code == 0
    assert len(rows(tmp_path / "run")) == 3
    said = capsys.readouterr().err
    assert said.count("MLflow: ") == 1
    assert "the disk is full" in said


@pytest.fixture
def unlogged(monkeypatch):
    """Nobody has logged in to Weights & Biases, and nothing is uploaded."""
    wandb = pytest.importorskip("wandb", reason="wandb is not installed (pip install fedactors[wandb])")
    if wandb.__file__ is None:
        pytest.skip("wandb is not installed (pip install fedactors[wandb]), and there is a folder of that name")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("NETRC", "/nowhere")
    wandb.teardown()  # it remembers the variables of its first use
    yield
    wandb.teardown()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # wandb's own
def test_weights_and_biases_keeps_the_metrics_for_later(tmp_path, unlogged, capsys):
    assert main([*WORDS, "--out", str(tmp_path / "run"), "--wandb", "phones"]) == 0
    (file,) = tmp_path.glob("run/wandb/offline-run-*/*.wandb")
    content = file.read_bytes()  # wandb has no reader for it; values stand there as JSON
    for row in rows(tmp_path / "run"):
        for name, value in numbers(row).items():
            assert name.encode() in content
            assert json.dumps(value).removesuffix(".0").encode() in content, name


@pytest.mark.filterwarnings("ignore")  # wandb's own
def test_who_has_not_logged_in_is_told_before_the_run(tmp_path, unlogged, monkeypatch, capsys):
    monkeypatch.setenv("WANDB_MODE", "online")
    assert main([*WORDS, "--out", str(tmp_path / "run"), "--wandb", "phones"]) == 2
    said = capsys.readouterr().err
    assert "fedactors: --wandb phones: " in said
    assert "(accepted: `wandb login` first, or the variable WANDB_MODE=offline)" in said
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("value", ["", "  "])
@pytest.mark.parametrize(
    ("option", "accepted"),
    [("--wandb", "the name of a project"), ("--mlflow", "the address of a server, or a folder")],
)
def test_an_empty_value_is_told_before_the_run(option, accepted, value, tmp_path, capsys):
    """As of "$PROJECT" where that is not set: to log nowhere, and to say nothing, is not what was asked for."""
    with pytest.raises(SystemExit) as left:
        main([*WORDS, "--out", str(tmp_path / "run"), option, value])
    assert left.value.code == 2
    assert capsys.readouterr().err == f'fedactors: argument {option}: found "{value}" (accepted: {accepted})\n'
    assert not (tmp_path / "run").exists()


def test_tensorboard_takes_no_value_not_even_an_empty_one(tmp_path, capsys):
    with pytest.raises(SystemExit) as left:
        main([*WORDS, "--out", str(tmp_path / "run"), "--tensorboard", ""])
    assert left.value.code == 2
    assert 'found an empty argument, ""' in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("library", ["tensorboard", "mlflow", "wandb"])
def test_a_missing_library_is_named_before_anything_runs(library, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, library, None)
    option = {"tensorboard": ["--tensorboard"], "mlflow": ["--mlflow", "file:x"], "wandb": ["--wandb", "x"]}[library]
    assert main([*WORDS, "--out", str(tmp_path / "run"), *option]) == 2
    assert f"{library} is not installed (accepted: pip install 'fedactors[{library}]')" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_folder_of_that_name_is_no_library(tmp_path, monkeypatch, capsys):
    (tmp_path / "wandb").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "wandb", raising=False)
    with pytest.raises(UsageError, match=r"wandb is not installed .*fedactors\[wandb\]"):
        needed("wandb", "wandb")


class Late(Silent):
    """Progress that looks at the end for the summary."""

    def __init__(self, folder):
        self.folder = folder
        self.there = False

    @contextmanager
    def over(self, name, rounds):
        yield
        self.there = (self.folder / "summary.json").exists()


def test_the_summary_is_written_before_a_run_waits_for_trackers(tmp_path):
    """So that its wall time is that of the run."""
    shown = Late(tmp_path / "run")
    scenario = Scenario.load(QUICKSTART, ["server.rounds=2"])
    run(scenario, shown.folder, fleet="local", progress=shown, report=False)
    assert shown.there


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

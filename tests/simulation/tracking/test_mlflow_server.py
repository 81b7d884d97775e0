"""What a server answers is told before a run logs to it, in one message and without MLflow's patience."""

import json
import os
import socket
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from fedactors.cli.main import main
from fedactors.errors import UsageError
from tests.fleet.conftest import QUICKSTART

pytestmark = pytest.mark.filterwarnings("ignore")  # mlflow's own
FULL = {"error_code": "INTERNAL_ERROR", "message": "the disk\nis full"}
OURS = {"experiment": {"experiment_id": "7", "name": "fedactors"}}
NONE_YET = {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no experiment fedactors"}
VARIABLES = ("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "MLFLOW_HTTP_REQUEST_TIMEOUT")


@pytest.fixture(autouse=True)
def mlflow(monkeypatch):
    for name in (*VARIABLES, "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    return pytest.importorskip("mlflow")


@contextmanager
def server(code, body, seconds=0.0):
    """Serve one answer to all requests; yield the address, and the headers of the requests that have come."""
    seen = []
    over = threading.Event()

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(self.headers)
            over.wait(seconds)
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words):
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}", seen
        over.set()
        serving.shutdown()
        thread.join()


def tracker(uri):
    from fedactors.simulation.tracking.mlflow_tracker import MLflow

    return MLflow(uri, Path("run"), {})


def refused(uri):
    with pytest.raises(UsageError) as caught:
        tracker(uri)
    said = str(caught.value)
    assert said.startswith(f"--mlflow {uri}: ")
    assert " (accepted: a folder, or the address of a server that runs; " in said
    return said.removeprefix(f"--mlflow {uri}: ").partition(" (accepted: ")[0]


@pytest.mark.parametrize(
    ("code", "body", "said"),
    [
        (500, json.dumps(FULL).encode(), "500 Internal Server Error: INTERNAL_ERROR: the disk is full"),
        (503, b"<html><style>p {}</style><p>back at <b>noon</b></html>", "503 Service Unavailable: back at noon"),
        (502, b"", "502 Bad Gateway"),
        (429, b"slow down", "429 Too Many Requests: slow down"),
        (
            401,
            b"You are not authenticated. See the docs.",
            "401 Unauthorized: You are not authenticated. See the docs.",
        ),
        (404, b"<h1>Nothing here</h1>", "404 Not Found: Nothing here, which is no answer of MLflow's"),
        (200, b"<title>Jupyter</title>", "200 OK: Jupyter, which is no answer of MLflow's"),
        (200, b'{"hello": 1}', '200 OK: {"hello": 1}, which is no answer of MLflow\'s'),
        (200, b"\xff\xfe", "200 OK"),
        (500, b"x" * 100_000, f"500 Internal Server Error: {'x' * 200}…"),
    ],
)
def test_what_a_server_answers_is_told_at_once(code, body, said):
    with server(code, body) as (uri, seen):
        assert refused(uri).startswith(f"the server answered {said}")
        assert len(seen) == 1
    assert not any(name in os.environ for name in VARIABLES)


@pytest.mark.parametrize(("code", "content"), [(200, OURS), (404, NONE_YET)])
def test_a_server_of_mlflow_is_taken_with_the_experiment_or_without(code, content):
    with server(code, json.dumps(content).encode()) as (uri, seen):
        assert tracker(uri)._experiment == content.get("experiment", {}).get("experiment_id")
        assert seen, "the server was asked"


def test_a_server_that_does_not_answer_is_told_within_the_time_of_the_user(monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    began = time.monotonic()
    with server(200, b"", seconds=20) as (uri, _):
        assert refused(uri) == "no answer: timed out"
        assert time.monotonic() - began < 8
    assert os.environ["MLFLOW_HTTP_REQUEST_TIMEOUT"] == "1"


def test_the_retries_of_the_user_are_kept(monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR", "0")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_BACKOFF_JITTER", "0")
    with server(500, json.dumps(FULL).encode()) as (uri, seen):
        assert "the disk is full" in refused(uri)
        assert len(seen) == 3


def test_the_server_is_asked_as_the_user_that_mlflow_knows(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "ann")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "secret")
    with server(403, json.dumps({"error_code": "PERMISSION_DENIED", "message": "not yours"}).encode()) as (uri, seen):
        assert refused(uri) == "the server answered 403 Forbidden: PERMISSION_DENIED: not yours"
        assert seen[0]["Authorization"].startswith("Basic ")


def test_what_is_not_there_is_told_in_the_words_of_the_system():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        assert refused(f"http://127.0.0.1:{taken.getsockname()[1]}") == "no answer: Connection refused"


def test_the_command_says_so_before_anything_runs(tmp_path, capsys):
    with server(500, json.dumps(FULL).encode()) as (uri, _):
        assert main(["run", str(QUICKSTART), "--fleet", "local", "--out", str(tmp_path / "run"), "--mlflow", uri]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"fedactors: --mlflow {uri}: the server answered 500 Internal Server Error: INTERNAL_ERROR")
    assert said.count("\n") == 1
    assert not (tmp_path / "run").exists()

"""The end of a run whose disk is full, or whose process is killed, at any file: the summary comes after all others."""

import errno
import os
import signal

import pytest

from fedactors.run_files.files import SUMMARY
from fedactors.run_files.writing import PendingFile
from fedactors.simulation.record.run_folder import RunFolder
from fedactors.simulation.replay import replay
from fedactors.simulation.runner import resume
from fedactors.study.run_folders import complete
from tests.simulation.test_checkpoints import assert_same, run, scenario_of

REPLAYED = ("plans.parquet", "orders.parquet", "weights.parquet", "stages.parquet", "windows.parquet")
OF_A_RUN = ("wall.parquet", "clients.parquet", "client_metrics.parquet", "checkpoint/model.safetensors")
TABLES = (*(name for name in REPLAYED if name != "windows.parquet"), *OF_A_RUN)
MEASURED = "population.phones.energy={compute: 3 W, up: 1 W}"


def scenario():
    """Return a scenario whose runs write every table."""
    return scenario_of("server.rounds=2", MEASURED, "server.evaluation={every: 1, clients: 3}")


def full(path):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def killed(path):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def at_file(monkeypatch):
    """Have `happens` called in place of the end of each file of some name, once there is a round."""

    def wait_for(name, happens):
        finish = PendingFile.finish

        def finish_or(self, *, sync=False):
            folder = self._path.parents[name.count("/")]
            metrics = folder / "metrics.jsonl"
            if self._path == folder / name and metrics.exists() and metrics.stat().st_size:
                happens(self._path)
            finish(self, sync=sync)

        monkeypatch.setattr(PendingFile, "finish", finish_or)

    return wait_for


def dies(life):
    """Have a child that plays `life` be killed."""
    if not (child := os.fork()):
        try:
            life()
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def parts(folder):
    return [path.name for path in folder.rglob("*.part")]


@pytest.mark.parametrize("name", [*REPLAYED, SUMMARY])
def test_a_full_disk_at_a_file_of_a_replay(name, at_file, tmp_path):
    at_file(name, full)
    with pytest.raises(OSError, match="No space left"):
        replay(scenario(), tmp_path / "run")
    written = {path.name for path in (tmp_path / "run").iterdir()}
    assert written >= {*REPLAYED} - {name, "windows.parquet"}
    assert not written & {name, SUMMARY}
    assert not complete(tmp_path / "run")
    assert not parts(tmp_path / "run")


@pytest.mark.parametrize("name", [*REPLAYED, SUMMARY])
def test_a_replay_that_is_killed_at_a_file(name, at_file, tmp_path):
    at_file(name, killed)
    dies(lambda: replay(scenario(), tmp_path / "run"))
    assert not (tmp_path / "run" / SUMMARY).exists()
    assert not complete(tmp_path / "run")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "run"
    run(scenario(), folder)
    assert_complete(folder)
    return folder


def assert_complete(folder):
    assert complete(folder)
    assert {*TABLES, SUMMARY, "windows.parquet"} <= {str(path.relative_to(folder)) for path in folder.rglob("*")}
    assert not parts(folder)


def some_of(quick):
    """Return the names of all files of a run; those that are not among the `quick` ones are tried with slow tests."""
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in (*TABLES, SUMMARY)]


@pytest.mark.parametrize("name", some_of({"plans.parquet", "client_metrics.parquet", SUMMARY}))
def test_a_run_whose_disk_is_full_at_a_file_is_resumed(name, whole, at_file, tmp_path, monkeypatch):
    at_file(name, full)
    with pytest.raises(OSError, match="No space left"):
        run(scenario(), tmp_path / "run")
    assert not complete(tmp_path / "run")
    assert not parts(tmp_path / "run")
    monkeypatch.undo()
    resume(tmp_path / "run", fleet="local", report=False)
    assert_same(whole, tmp_path / "run")
    assert_complete(tmp_path / "run")


@pytest.mark.parametrize("name", some_of({"plans.parquet", SUMMARY}))
def test_a_run_that_is_killed_at_a_file_is_resumed(name, whole, at_file, tmp_path, monkeypatch):
    at_file(name, killed)
    dies(lambda: run(scenario(), tmp_path / "run"))
    assert not complete(tmp_path / "run")
    monkeypatch.undo()
    resume(tmp_path / "run", fleet="local", report=False)
    assert_same(whole, tmp_path / "run")
    assert_complete(tmp_path / "run")


def test_a_folder_whose_tables_cannot_be_begun_is_free_at_once(tmp_path, monkeypatch):
    """The same process can take it: the lock of a folder ends with its writer, and not when memory is collected."""

    def full_at_orders(self, path):
        real(self, path)
        if path.name == "orders.parquet":
            self.discard()
            full(path)

    real = PendingFile.__init__
    with monkeypatch.context() as patched:
        patched.setattr(PendingFile, "__init__", full_at_orders)
        with pytest.raises(OSError, match="No space left") as kept:
            RunFolder(tmp_path / "run", scenario())
    assert not parts(tmp_path / "run")
    with RunFolder(tmp_path / "run", scenario(), past=0):
        pass
    assert kept.value.errno == errno.ENOSPC

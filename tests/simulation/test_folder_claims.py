"""Folders on file systems that have no locks, or those of NFS, and paths at which no folder can be."""

import errno
import fcntl
import json
import os
import subprocess
import sys

import pytest

from fedactors.cli.main import main
from fedactors.errors import RunFolderError
from fedactors.report import watch
from fedactors.run_files.writing import write
from fedactors.simulation.record.folder_claims import check_free, new_path, refuse_claimed
from fedactors.simulation.record.run_folder import RunFolder, check_resumable
from fedactors.simulation.replay import replay
from fedactors.simulation.runner import resume
from tests.noting import Noting
from tests.simulation.test_checkpoints import run, scenario_of

WITHOUT = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)
flock = fcntl.flock


@pytest.fixture(params=WITHOUT, ids=errno.errorcode.get)
def _no_locks(request, monkeypatch):
    """Answer as Lustre does without `-o flock`, NFS without its lock service, and some file systems of users."""

    def without(file, how):
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(fcntl, "flock", without)


@pytest.fixture
def _locks_of_nfs(monkeypatch):
    """Answer as NFS does: an exclusive lock wants a file that is open for writing, a shared one for reading."""

    def emulated(file, how):
        number = file if isinstance(file, int) else file.fileno()
        mode = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE
        if mode == (os.O_RDONLY if how & fcntl.LOCK_EX else os.O_WRONLY):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        flock(number, how)

    monkeypatch.setattr(fcntl, "flock", emulated)


@pytest.mark.usefixtures("_no_locks")
def test_a_run_without_locks_is_played_stopped_and_resumed_and_says_so_once(tmp_path, capsys):
    told = Noting()
    run(scenario_of(), tmp_path / "run", stop_after=3, progress=told)
    note = f"{tmp_path / 'run'}: this file system has no locks: a second run into this folder would not be noticed"
    assert told.notes.count(note) == 1
    with pytest.raises(RunFolderError, match="it holds a run that was stopped"):
        check_free(tmp_path / "run")
    assert main(["watch", str(tmp_path / "run")]) == 0
    assert "stopped after 3 rounds" in capsys.readouterr().out
    resume(tmp_path / "run", fleet="local", report=False)
    assert not list((tmp_path / "run").glob(".*.part"))


@pytest.mark.usefixtures("_no_locks")
def test_a_run_that_goes_on_where_there_are_no_locks_is_followed(tmp_path):
    """Whether a process writes to it is known from the note of the writer alone."""
    looks = []

    def pause(seconds):
        looks.append(seconds)
        if len(looks) == 50:
            folder.metrics({"round": 1})
            folder.close()
            (folder.path / "writer.json").unlink()

    folder = RunFolder(tmp_path / "run", scenario_of())
    assert [seen.rounds for seen in watch.follow(folder.path, pause)] == [0, 1]
    assert 50 < len(looks) < 70


@pytest.mark.usefixtures("_no_locks")
def test_a_killed_run_is_not_waited_for_where_there_are_no_locks(tmp_path, capsys):
    """Its process is looked for on this machine; one on another is given twenty minutes."""
    folder = RunFolder(tmp_path / "run", scenario_of()).path
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for machine, waits in ((os.uname().nodename, range(5, 9)), ("node7", range(2400, 2405))):
        (folder / "writer.json").write_text(json.dumps({"process": gone.pid, "machine": machine}))
        looks = []
        assert [seen.rounds for seen in watch.follow(folder, looks.append)] == [0]
        assert len(looks) in waits
    assert sum(looks) == 20 * 60
    watch.watch(folder, looks.append)
    said = "nothing new for 20 minutes, or killed: see whether process"
    assert f"no end     {said} {gone.pid} on node7 is still there" in capsys.readouterr().out


@pytest.mark.usefixtures("_locks_of_nfs")
def test_locks_of_nfs(tmp_path):
    """Who has a folder is known, who looks at it needs no right to write, and what a writer has left is removed."""
    folder = tmp_path / "run"
    with RunFolder(folder, scenario_of()):
        for look in (check_free, refuse_claimed, check_resumable):
            with pytest.raises(RunFolderError, match=f"process {os.getpid()} on .* is writing to this folder"):
                look(folder)
        assert watch._awaited(folder / "metrics.jsonl", 9)
    refuse_claimed(folder)
    left = folder / ".note.json.0123456789abcdef.part"
    left.touch()
    write(folder / "note.json", "{}")
    assert not left.exists()


@pytest.mark.usefixtures("_locks_of_nfs")
def test_a_run_on_nfs_is_played_and_resumed(tmp_path):
    run(scenario_of(), tmp_path / "run", stop_after=3)
    with pytest.raises(RunFolderError, match="it holds a run that was stopped"):
        run(scenario_of(), tmp_path / "run")
    resume(tmp_path / "run", fleet="local", report=False)


@pytest.fixture
def places(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to("nowhere/at/all")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").touch()
    (tmp_path / "to file").symlink_to("file")
    return tmp_path


@pytest.mark.parametrize("below", ["", "/a", "/a/b"])
@pytest.mark.parametrize(
    ("name", "found"),
    [("link", "a link to nothing"), ("loop", "a link to nothing"), ("file", "a file"), ("to file", "a file")],
)
def test_a_path_that_can_be_no_folder_is_one_message(name, found, below, places):
    for look in (check_free, lambda path: replay(scenario_of(), path)):
        with pytest.raises(RunFolderError) as caught:
            look(places / f"{name}{below}")
        assert str(caught.value) == f"{places / name}: found {found} (accepted: a folder, or nothing)"


@pytest.mark.slow
def test_runs_that_can_be_no_folder_end_a_command(places):
    """It went on for ever, with new names. In a process of its own, so that the test can end it."""
    (places / "runs").symlink_to("nowhere")
    with pytest.raises(RunFolderError, match=r"^runs: found a link to nothing \(accepted: a folder, or nothing\)$"):
        new_path("name")
    command = [sys.executable, "-m", "fedactors", "replay", "quickstart", "--set", "server.rounds=1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr == "fedactors: runs: found a link to nothing (accepted: a folder, or nothing)\n"


def test_runs_may_be_a_link_to_a_folder(places):
    (places / "elsewhere").mkdir()
    (places / "runs").symlink_to("elsewhere")
    first, second = new_path("name"), new_path("name")
    assert first != second
    assert {path.name for path in (places / "elsewhere").iterdir()} == {first.name, second.name}


def test_a_writer_on_another_machine_that_has_not_noted_its_end_is_told_of(tmp_path):
    """The file system may have locks, and pass none of them on to other machines."""
    run(scenario_of(), tmp_path / "run", stop_after=1)
    for machine, told in ((os.uname().nodename, []), ("node7", ["process 12 on node7 wrote to this folder"])):
        (tmp_path / "run/writer.json").write_text(json.dumps({"process": 12, "machine": machine}))
        noted = Noting()
        resume(tmp_path / "run", fleet="local", report=False, progress=noted, stop_after=2)
        assert [note.partition(" and has not")[0] for note in noted.notes if "has not noted" in note] == [
            f"{tmp_path / 'run'}: {said}" for said in told
        ]
        assert not (tmp_path / "run/writer.json").exists()

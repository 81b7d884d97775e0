"""What a run leaves that is killed, or fails, in the middle of something: nothing that passes for what it is not."""

import errno
import os
from contextlib import suppress

import pytest

from fedactors import Scenario
from fedactors.errors import FolderAccessError, RunFolderError
from fedactors.report import html
from fedactors.run_files.records import read
from fedactors.run_files.writer_note import scenario_folder
from fedactors.run_files.writing import PendingFile
from fedactors.simulation.record import run_folder
from fedactors.simulation.record.folder_claims import check_free
from fedactors.simulation.record.run_folder import RunFolder
from fedactors.simulation.replay import replay
from fedactors.simulation.resume import checkpoint
from fedactors.simulation.runner import resume
from tests.fleet.conftest import QUICKSTART
from tests.simulation.test_checkpoints import assert_same, run, scenario_of

TABLES = ("plans", "orders", "weights", "stages", "wall", "windows")


@pytest.fixture
def replayed(tmp_path):
    replay(Scenario.load(QUICKSTART, ["server.rounds=6", "server.cohort=5"]), tmp_path / "run")
    return tmp_path / "run"


def dies_in(life):
    """Have a child do something and die without an end."""
    if not (child := os.fork()):
        try:
            life()
        finally:
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@pytest.mark.parametrize("rounds", [0, 3])
def test_tables_of_a_former_end_do_not_stand_beside_fewer_rounds(replayed, rounds):
    for name in TABLES:
        (replayed / f"{name}.parquet").touch()
    lines = (replayed / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    scenario = Scenario.load(replayed / "scenario.yaml")
    dies_in(lambda: RunFolder(replayed, scenario, past=sum(map(len, lines[:rounds]))).begin())
    assert not [name for name in TABLES if (replayed / f"{name}.parquet").exists()]
    found = read(replayed)
    assert found.rounds == rounds
    assert not len(found.orders["version"])


def test_a_report_of_tables_without_rounds_is_drawn(replayed):
    (replayed / "metrics.jsonl").write_bytes(b"")
    (replayed / "summary.json").unlink()
    html.write(replayed)
    assert "<html" in (replayed / "report.html").read_text()


def fails_in(folder, scenario, before):
    """Have the writer of a folder fail as on a full disk, after `before` was called with it."""
    with suppress(OSError), RunFolder(folder, scenario) as writer:
        before(writer)
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_run_that_fails_before_its_first_checkpoint_still_knows_where_its_paths_start(tmp_path):
    """A checkpoint, or a summary, knows it too: from then on the note is that of a writer alone."""
    scenario = Scenario.load(QUICKSTART)
    fails_in(tmp_path / "at once", scenario, lambda writer: None)
    assert scenario_folder(tmp_path / "at once") == QUICKSTART.parent
    fails_in(tmp_path / "saved", scenario, lambda one: (one.path / "checkpoint/round-00000000").mkdir(parents=True))
    fails_in(tmp_path / "ended", scenario, lambda writer: writer.summary({}))
    assert [note.parent.name for note in tmp_path.glob("*/writer.json")] == ["at once"]


def test_a_resume_from_the_checkpoint_before_that_is_killed_at_once_says_how_to_go_on(tmp_path):
    """Lines have been cut off, and the last checkpoint, which has more of them, is still there."""
    run(scenario_of(), tmp_path / "whole")
    run(scenario_of(), tmp_path / "cut", stop_after=4)
    kept = checkpoint.load(tmp_path / "cut", previous=True).metrics_bytes
    dies_in(lambda: RunFolder(tmp_path / "cut", scenario_of(), past=kept).begin())
    hint = r"not the 4 lines that the checkpoint was written with; the checkpoint before it may fit: --previous"
    with pytest.raises(RunFolderError, match=hint):
        resume(tmp_path / "cut", fleet="local")
    resume(tmp_path / "cut", fleet="local", report=False, previous=True)
    assert_same(tmp_path / "whole", tmp_path / "cut")


@pytest.mark.parametrize("name", ["writer.json", "scenario.yaml"])
def test_a_folder_whose_run_ended_before_its_scenario_was_written_is_free(tmp_path, monkeypatch, name):
    """Killed, it leaves what may be there at that moment; where it fails, as at a quota, nothing."""
    folder = tmp_path / "run"
    works = PendingFile.finish

    def stops(how):
        def finish(self, **options):
            if self._path.name == name:
                how(errno.EDQUOT)
            works(self, **options)

        return finish

    def fails(code):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(PendingFile, "finish", stops(fails))
    with pytest.raises(FolderAccessError, match=os.strerror(errno.EDQUOT)):
        RunFolder(folder, scenario_of())
    assert not list(folder.iterdir())
    monkeypatch.setattr(PendingFile, "finish", stops(lambda code: os._exit(9)))
    dies_in(lambda: RunFolder(folder, scenario_of()))
    assert (folder / "metrics.jsonl").exists()
    assert list(folder.glob(f".{name}.*.part"))
    monkeypatch.undo()
    with RunFolder(folder, scenario_of()) as claimed:
        with pytest.raises(RunFolderError, match="is writing to this folder"):
            check_free(folder)
        claimed.metrics({"round": 1})
    with pytest.raises(RunFolderError, match="not empty: it holds a run"):
        check_free(folder)


def test_a_folder_of_another_file_is_not_free(tmp_path):
    for name in ("metrics.jsonl", "writer.json", "notes.txt"):
        (tmp_path / name).touch()
    with pytest.raises(RunFolderError, match="not empty"):
        RunFolder(tmp_path, scenario_of())


@pytest.mark.parametrize("step", ["sync_folder", "_mend", "bytes_of"])
def test_a_summary_never_stands_beside_rounds_that_were_cut_off(replayed, monkeypatch, step):
    """Killed at each step of going on with three of six rounds; `bytes_of` stands for what is done at the last."""
    lines = (replayed / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    monkeypatch.setattr(run_folder, step, lambda *given: os._exit(9))
    dies_in(lambda: RunFolder(replayed, scenario_of(), past=len(b"".join(lines[:3]))).begin())
    assert not (replayed / "summary.json").exists()
    assert read(replayed).rounds == (6 if step == "sync_folder" else 3)


def test_a_replay_that_was_killed_is_not_trained(tmp_path):
    dies_in(lambda: RunFolder(tmp_path / "run", scenario_of(), replays=True))
    with pytest.raises(RunFolderError, match=r"a replay that has not ended \(accepted: replay again, into another"):
        resume(tmp_path / "run", fleet="local")

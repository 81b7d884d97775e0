"""Files of a run folder are written whole, and never through a link that others have laid there."""

import fcntl
import os
import re
import stat

import pytest

from fedactors.errors import RunFolderError
from fedactors.run_files.files import bytes_of, lines_of
from fedactors.run_files.tables import ParquetTable
from fedactors.run_files.writing import (
    PendingFile,
    appending,
    inner_folder,
    remove,
    remove_pending_folders,
    replacing,
    replacing_folder,
    write,
)

OWN = ".summary.json.0123456789abcdef.part"


@pytest.fixture
def outside(tmp_path):
    path = tmp_path / "outside"
    path.mkdir()
    (path / "kept").write_text("kept")
    return path


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "run"
    path.mkdir()
    return path


def test_a_file_appears_whole_with_the_usual_rights(run):
    with replacing(run / "summary.json") as file:
        file.write(b"half")
        file.flush()
        assert not (run / "summary.json").exists()
        (pending,) = run.iterdir()
        assert re.fullmatch(r"\.summary\.json\.[0-9a-f]{16}\.part", pending.name)
    (run / "plain").touch()
    assert [path.name for path in sorted(run.iterdir())] == ["plain", "summary.json"]
    assert (run / "summary.json").stat().st_mode == (run / "plain").stat().st_mode


def test_after_an_exception_the_target_is_as_it_was(run):
    write(run / "summary.json", "before")

    def interrupted():
        with replacing(run / "summary.json") as file:
            file.write(b"after")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [path.name for path in run.iterdir()] == ["summary.json"]
    assert (run / "summary.json").read_text() == "before"


@pytest.mark.parametrize("name", ["summary.json", ".summary.json.part", OWN])
def test_a_link_is_not_followed(name, run, outside):
    (run / name).symlink_to(outside / "kept")
    write(run / "summary.json", "new")
    assert (run / "summary.json").read_text() == "new"
    assert not (run / "summary.json").is_symlink()
    assert (outside / "kept").read_text() == "kept"


def test_a_folder_in_place_of_a_file_is_refused(run):
    (run / "summary.json").mkdir()
    with pytest.raises(RunFolderError, match=r"summary\.json: found a folder \(accepted: a file, or nothing\)"):
        write(run / "summary.json", "new")
    assert len(list(run.iterdir())) == 1


def test_only_own_leftovers_of_the_same_target_are_removed(run, outside):
    (run / OWN).write_text("left by a writer that was killed")
    kept = [".summary.json.0123.part", ".report.html.0123456789abcdef.part", ".summary.json.part", "orders.parquet"]
    for name in kept:
        (run / name).touch()
    link, folder = (f".summary.json.{letter * 16}.part" for letter in "ab")
    (run / link).symlink_to(outside / "kept")
    (run / folder).mkdir()
    write(run / "summary.json", "new")
    assert sorted(path.name for path in run.iterdir()) == sorted([*kept, link, folder, "summary.json"])


def test_a_file_that_another_writer_has_in_use_is_no_leftover(run):
    first = PendingFile(run / "summary.json")
    first.file.write(b"first")
    write(run / "summary.json", "second")
    first.finish()
    assert (run / "summary.json").read_text() == "first"
    (run / OWN).touch()
    with (run / OWN).open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        write(run / "summary.json", "third")
        assert (run / OWN).exists()
    write(run / "summary.json", "fourth")
    assert not (run / OWN).exists()


def test_lines_are_appended_to_a_regular_file_alone(run, outside):
    path = run / "metrics.jsonl"
    for number in range(2):
        with appending(path, new=not number) as file:
            file.write(b'{"round": 1}\n')
    assert lines_of(path) == [{"round": 1}] * 2
    with pytest.raises(FileExistsError):
        appending(path, new=True)
    path.unlink()
    for plant, found in (
        (lambda: path.symlink_to(outside / "kept"), "a link"),
        (lambda: path.symlink_to(outside / "absent"), "a link"),
        (lambda: os.link(outside / "kept", path), "a file with 2 names"),
        (lambda: os.mkfifo(path), "a pipe"),
        (path.mkdir, "a folder"),
    ):
        plant()
        with pytest.raises(RunFolderError, match=rf"metrics\.jsonl: found {found}"):
            appending(path)
        remove(path)
    assert [(one.name, one.read_text()) for one in outside.iterdir()] == [("kept", "kept")]


def test_reading_waits_for_no_pipe_and_names_what_is_there(run):
    os.mkfifo(run / "pipe")
    with pytest.raises(RunFolderError, match=r"pipe: found a pipe \(accepted: a file\)"):
        bytes_of(run / "pipe")
    with pytest.raises(RunFolderError, match=r"run: found a folder \(accepted: a file\)"):
        bytes_of(run)
    with pytest.raises(RunFolderError, match="absent: not there"):
        bytes_of(run / "absent")


@pytest.mark.parametrize("target", ["outside", "absent"])
def test_an_inner_folder_is_no_link(target, run, outside):
    assert inner_folder(run / "checkpoint").is_dir()
    (run / "linked").symlink_to(outside.with_name(target))
    with pytest.raises(RunFolderError, match=r"linked: found a link \(accepted: a folder\)"):
        inner_folder(run / "linked")
    assert not (run.parent / "absent").exists()


def test_a_folder_appears_whole_and_replaces_a_link(run, outside):
    for plant in (lambda: (run / "round-1").symlink_to(outside), lambda: None):  # the second replaces the first
        plant()
        with replacing_folder(run / "round-1") as pending:
            assert stat.S_IMODE(pending.stat().st_mode) == 0o700
            (pending / "state").touch()
        assert [path.name for path in run.iterdir()] == ["round-1"]
        assert (run / "round-1").stat().st_mode == run.stat().st_mode
        assert (run / "round-1/state").exists()
    assert (outside / "kept").read_text() == "kept"


def test_folders_left_by_a_writer_that_was_killed_are_removed_and_links_stay(run, outside):
    left, link = (f".round-1.{letter * 16}.part" for letter in "ab")
    (run / left).mkdir()
    (run / left / "link").symlink_to(outside)
    (run / link).symlink_to(outside)
    (run / "round-2").mkdir()
    remove_pending_folders(run, r"round-\d")
    assert sorted(path.name for path in run.iterdir()) == [link, "round-2"]
    assert (outside / "kept").read_text() == "kept"


def test_no_half_of_a_folder_keeps_its_name_when_its_removal_is_killed(run, monkeypatch):
    def killed(*args, **more):
        raise KeyboardInterrupt

    (run / "round-1").mkdir()
    (run / "round-1/state").touch()
    with monkeypatch.context() as patched:
        patched.setattr("shutil.rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            remove(run / "round-1")
    assert not (run / "round-1").exists()
    remove_pending_folders(run, r"round-\d")
    assert not [*run.iterdir()]


def test_tables_and_their_names_are_on_the_disk_before_what_is_written_after_them(tmp_path, monkeypatch):
    """A file, then the folder that has its name, then the next file: in this order they survive a power cut."""
    synced = []

    def record(descriptor):
        synced.append(os.fstat(descriptor).st_ino)

    monkeypatch.setattr(os, "fsync", record)
    with ParquetTable(tmp_path / "plans.parquet", ("version",)) as table:
        table.add((1,))
    write(tmp_path / "summary.json", "{}")
    files = [(tmp_path / name).stat().st_ino for name in ("plans.parquet", ".", "summary.json", ".")]
    assert synced == files

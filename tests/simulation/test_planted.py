"""Run folders with links in them, laid by others: no command writes outside the folder; it works or says why not."""

import os
import shutil

import pytest

from fedactors.cli.main import main
from tests.simulation.test_checkpoints import assert_same, run, scenario_of

LOCAL = ("--fleet", "local")
COMMANDS = {
    "resume": ("resume", *LOCAL),
    "report": ("report",),
    "timeline": ("timeline",),
    "branch": ("branch", *LOCAL, "--at", "round=2", "--out", "{out}"),
}
PENDING = [
    ".report.html.part", ".summary.json.part", ".orders.parquet.part", ".scenario.yaml.part", ".timeline.json.part",
    ".clients.parquet.part", ".wall.parquet.part", ".windows.parquet.part", "checkpoint/.model.safetensors.part",
]  # fmt: skip
TARGETS = ["report.html", "timeline.json", "orders.parquet", "checkpoint/model.safetensors", "windows.parquet"]
GROWING = ["metrics.jsonl", "faults.jsonl"]


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    path = tmp_path_factory.mktemp("stopped") / "run"
    run(scenario_of("server.rounds=5"), path, stop_after=4)
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "run"
    run(scenario_of("server.rounds=5"), path)
    return path


@pytest.fixture
def folder(stopped, tmp_path):
    return shutil.copytree(stopped, tmp_path / "run")


@pytest.fixture
def outside(tmp_path):
    path = tmp_path / "outside"
    path.mkdir()
    (path / "file").write_text("kept")
    (path / "round-00000099").mkdir()
    (path / "round-00000099/kept").write_text("kept")
    yield path
    found = {str(one.relative_to(path)): one.read_text() for one in path.rglob("*") if one.is_file()}
    assert found == {"file": "kept", "round-00000099/kept": "kept"}


def play(command, folder, tmp_path):
    return main([COMMANDS[command][0], str(folder), *(w.format(out=tmp_path / "out") for w in COMMANDS[command][1:])])


@pytest.mark.parametrize("command", COMMANDS)
def test_links_under_names_of_files_that_are_being_written_do_no_harm(command, folder, outside, whole, tmp_path):
    for name in PENDING:
        (folder / name).symlink_to(outside / "file")
    assert play(command, folder, tmp_path) == 0
    if command == "resume":
        assert_same(whole, folder)


@pytest.mark.parametrize("command", ["resume", "report", "timeline"])
def test_links_to_nowhere_and_folders_under_such_names_do_no_harm(command, folder, outside, tmp_path):
    for number, name in enumerate(PENDING):
        (folder / name).mkdir() if number % 2 else (folder / name).symlink_to(outside / "new")
    (folder / "checkpoint/.round-00000005.part").symlink_to(outside)
    (folder / "checkpoint/.round-00000005.0123456789abcdef.part").symlink_to(outside)
    assert play(command, folder, tmp_path) == 0


@pytest.mark.parametrize("command", ["resume", "report", "timeline"])
def test_links_in_place_of_files_are_replaced(command, folder, outside, tmp_path):
    written = {"resume": TARGETS[2:], "report": ["report.html"], "timeline": ["timeline.json"]}[command]
    for name in written:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(outside / "file")
    if command == "resume":
        (folder / "summary.json").unlink()
        (folder / "summary.json").symlink_to(outside / "file")
    assert play(command, folder, tmp_path) == 0
    assert not any((folder / name).is_symlink() for name in written)


@pytest.mark.parametrize("name", GROWING)
@pytest.mark.parametrize("plant", ["link", "hard link"])
def test_lines_are_not_appended_through_links(name, plant, folder, outside, tmp_path, capsys):
    kept = (folder / name).read_bytes() if (folder / name).exists() else b""
    other = tmp_path / "elsewhere"
    other.write_bytes(kept)
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(other) if plant == "link" else os.link(other, folder / name)
    assert play("resume", folder, tmp_path) == 2
    assert f"fedactors: {folder / name}: found a " in capsys.readouterr().err
    assert other.read_bytes() == kept


@pytest.mark.parametrize("command", ["resume", "branch", "audit"])
def test_a_checkpoint_folder_elsewhere_is_refused(command, folder, tmp_path, capsys):
    elsewhere = shutil.move(folder / "checkpoint", tmp_path / "elsewhere")
    (folder / "checkpoint").symlink_to(elsewhere)
    before = sorted(elsewhere.rglob("*"))
    code = main(["audit", str(folder)]) if command == "audit" else play(command, folder, tmp_path)
    assert code == 2
    assert f"fedactors: {folder / 'checkpoint'}: found a link (accepted: a folder)" in capsys.readouterr().err
    assert sorted(elsewhere.rglob("*")) == before


def test_a_link_in_place_of_a_checkpoint_is_none(folder, outside, whole, tmp_path):
    for number in (5, 99):
        (folder / f"checkpoint/round-{number:08}").symlink_to(outside / "round-00000099")
    assert play("resume", folder, tmp_path) == 0
    assert_same(whole, folder)


@pytest.mark.parametrize("name", ["orders.parquet", "summary.json", "checkpoint/model.safetensors", "wall.parquet"])
def test_a_folder_in_place_of_a_file_is_refused_before_anything_is_computed(name, folder, tmp_path, capsys):
    (folder / name).unlink()
    (folder / name).mkdir()
    before = (folder / "metrics.jsonl").read_bytes()
    assert play("resume", folder, tmp_path) == 2
    assert capsys.readouterr().err == f"fedactors: {folder / name}: found a folder (accepted: a file, or nothing)\n"
    assert (folder / "metrics.jsonl").read_bytes() == before


def test_what_a_killed_run_left_is_removed(folder, tmp_path):
    left = [".orders.parquet.0123456789abcdef.part", ".summary.json.0123456789abcdef.part"]
    for name in left:
        (folder / name).write_text("left")
    pending = folder / "checkpoint/.round-00000005.0123456789abcdef.part"
    pending.mkdir()
    (pending / "server.safetensors").touch()
    assert play("resume", folder, tmp_path) == 0
    assert not list(folder.rglob("*.part"))


def test_a_run_folder_may_itself_be_reached_through_a_link(folder, whole, tmp_path):
    (tmp_path / "latest").symlink_to(folder)
    assert play("resume", tmp_path / "latest", tmp_path) == 0
    assert_same(whole, folder)

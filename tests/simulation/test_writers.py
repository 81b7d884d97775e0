"""One process writes to a run folder; a run that ended before its first checkpoint starts again, with the same bits."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from fedactors.cli.main import main
from fedactors.errors import RunFolderError
from fedactors.simulation.record.run_folder import RunFolder
from fedactors.simulation.runner import resume
from tests.fleet.conftest import QUICKSTART
from tests.simulation.test_checkpoints import assert_same, run, scenario_of

HOLDING = """
import sys
from pathlib import Path
from fedactors.simulation.record.run_folder import RunFolder
from tests.simulation.test_checkpoints import scenario_of
with RunFolder(Path(sys.argv[1]), scenario_of()) as folder:
    folder.summary({})
    print("held", flush=True)
    sys.stdin.read()
"""


def test_who_writes_to_the_folder_is_named_by_process_and_machine(tmp_path, capsys):
    folder = tmp_path / "run"
    command = [sys.executable, "-c", HOLDING, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        who = f"process {holder.pid} on {os.uname().nodename} is writing to this folder"
        assert main(["resume", str(folder), "--fleet", "local"]) == 2
        assert f"fedactors: {folder}: {who}" in capsys.readouterr().err
        for command in ("run", "replay"):
            fleet = ["--fleet", "local"] if command == "run" else []
            assert main([command, str(QUICKSTART), *fleet, "--out", str(folder)]) == 2
            assert f"fedactors: {folder}: {who}" in capsys.readouterr().err
        holder.stdin.close()
    with pytest.raises(RunFolderError, match="not empty"):
        RunFolder(folder, scenario_of())
    assert not (folder / "writer.json").exists()


def test_what_is_no_folder_is_not_resumed(tmp_path, capsys):
    (tmp_path / "file").touch()
    for name, found in (("absent", "nothing there"), ("file", "a file")):
        assert main(["resume", str(tmp_path / name), "--fleet", "local"]) == 2
        assert f"fedactors: {tmp_path / name}: {found} (accepted: " in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a file system")
def test_a_read_only_file_system_is_told(tmp_path, capsys):
    folder, disk = tmp_path / "run", tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "none", str(disk)], check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        run(scenario_of("server.rounds=1"), folder)
        shutil.copytree(folder, disk / "run")
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        inside, new = str(disk / "run"), str(disk / "new")
        for words in (
            ["resume", inside, "--fleet", "local"],
            ["report", inside],
            ["timeline", inside],
            ["run", str(QUICKSTART), "--fleet", "local", "--out", new],
            ["replay", str(QUICKSTART), "--out", new],
        ):
            assert main(words) == 2, words
            said = capsys.readouterr().err
            assert said.startswith(f"fedactors: {disk}/"), said
            assert said.endswith("cannot be written: Read-only file system\n"), said
        for command in ("audit", "watch"):
            assert main([command, inside]) == 0
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_run_that_died_before_its_first_checkpoint_starts_again(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    scenario = scenario_of("server.rounds=2")
    run(scenario, whole)
    with RunFolder(cut, scenario) as folder:
        note = (folder.path / "writer.json").read_bytes()
        folder.metrics({"round": 1})
    for name in ("plans.parquet", "orders.parquet", "weights.parquet"):
        (cut / name).unlink()
    (cut / "writer.json").write_bytes(note)  # as after kill -9
    assert not (cut / "checkpoint").exists()
    resume(cut, fleet="local", report=False)
    assert_same(whole, cut)


def test_the_folder_of_a_replay_is_not_run(tmp_path, capsys):
    whole, replayed = tmp_path / "whole", tmp_path / "replayed"
    run(scenario_of("server.rounds=1"), whole)
    shutil.copytree(whole, replayed)
    shutil.rmtree(replayed / "checkpoint")
    assert main(["resume", str(replayed), "--fleet", "local"]) == 2
    assert "holds no checkpoint" in capsys.readouterr().err
    assert json.loads((replayed / "summary.json").read_text())["plans"] == 1

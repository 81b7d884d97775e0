"""Run folders that others have damaged, or laid a trap in: every command that reads one refuses it in one message."""

import os
import shutil

import pytest

from fedactors.cli.main import main
from tests.simulation.test_checkpoints import run, scenario_of

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{key}: &{key} [{', '.join([f'*{before}'] * 9)}]\n" for before, key in zip("abcdefgh", "bcdefghi", strict=True)
)


def fifo(path):
    """Reading it would never end: nobody writes."""
    path.unlink()
    os.mkfifo(path)


def folder(path):
    path.unlink()
    path.mkdir()


DAMAGE = {
    "fifo": fifo,
    "folder": folder,
    "deep": lambda path: path.write_bytes(b"[" * 100_000),
    "bomb": lambda path: path.write_text(BOMB),
    "number": lambda path: path.write_text("1" + "0" * 5000 + "\n"),
    "list": lambda path: path.write_text("[1]\n"),
    "bytes": lambda path: path.write_bytes(bytes(range(128, 256)) + b"\n"),
}
COMMANDS = {
    "resume": ("--fleet", "local"),
    "audit": (),
    "diff": ("{whole}",),
    "timeline": (),
    "report": (),
    "branch": ("--at", "round=1", "--fleet", "local", "--out", "{out}"),
}
LAST = "checkpoint/round-00000004"
READ = {
    "resume": ["scenario.yaml", "metrics.jsonl", f"{LAST}/checkpoint.json", f"{LAST}/server.safetensors"],
    "audit": ["scenario.yaml", "metrics.jsonl", "summary.json", "plans.parquet", "checkpoint/model.safetensors"],
    "diff": ["scenario.yaml", "metrics.jsonl", "summary.json", "orders.parquet"],
    "timeline": ["metrics.jsonl", "orders.parquet"],
    "report": ["metrics.jsonl", "plans.parquet"],
    "branch": ["metrics.jsonl"],
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "run"
    run(scenario_of(), path, stop_after=4)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize(("command", "name"), [(command, name) for command, names in READ.items() for name in names])
def test_what_a_run_has_not_written_is_refused_in_one_message(command, name, damage, whole, tmp_path, capsys):
    broken = shutil.copytree(whole, tmp_path / "broken")
    DAMAGE[damage](broken / name)
    more = [word.format(whole=whole, out=tmp_path / "out") for word in COMMANDS[command]]
    code = main([command, str(broken), *more])
    told = capsys.readouterr()
    assert code == (1 if told.out else 2)  # an audit may find what does not fit, and list it
    if code == 2:
        assert told.err.startswith(f"fedactors: {broken}")
        assert "Traceback" not in told.err


@pytest.mark.parametrize("name", ["scenario.yaml", "summary.json", "metrics.jsonl"])
def test_watch_waits_for_no_pipe(name, whole, tmp_path, capsys):
    broken = shutil.copytree(whole, tmp_path / "broken")
    fifo(broken / name)
    assert main(["watch", str(broken)]) == 2
    assert f"{name}: neither a file nor a folder" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["audit", "diff"])
def test_a_run_that_goes_on_has_no_summary_yet(command, whole, tmp_path, capsys):
    going_on = shutil.copytree(whole, tmp_path / "run")
    (going_on / "summary.json").unlink()
    assert main([command, str(going_on), *(word.format(whole=whole) for word in COMMANDS[command])]) == 2
    assert "run/summary.json: not there (accepted: the folder of a run that has ended)" in capsys.readouterr().err


def test_diff_names_the_summary_that_is_damaged(whole, tmp_path, capsys):
    broken = shutil.copytree(whole, tmp_path / "broken")
    (broken / "summary.json").write_text("{}")
    assert main(["diff", str(whole), str(broken)]) == 2
    assert f"{broken}/summary.json: damaged: no final figures" in capsys.readouterr().err

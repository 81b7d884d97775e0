"""Paths that no file can have: too long, or with a NUL. One message each, exit code 2, from scenarios and commands."""

from pathlib import Path

import pytest
import yaml

from fedactors.cli.main import main

QUICKSTART = Path(__file__).parents[2] / "scenarios/quickstart.yaml"
PATHS = {
    "long name": ("x" * 300, "a name of 300 bytes in a path (accepted: at most 255)"),
    "umlauts": ("ä" * 200, "a name of 400 bytes in a path (accepted: at most 255)"),
    "long path": ("/".join(["x" * 200] * 30), "a path of 6,029 bytes (accepted: at most 4,000)"),
    "NUL": ("a\0b", "a path cannot hold the character NUL"),
}
KEYS = {
    "availability": lambda path: {"population.0.availability.path": path},
    "link": lambda path: {"population.0.network": {"trace": {"down": {"path": path}}}},
    "compute": lambda path: {"population.0.compute": {"table": {"path": path}}},
    "places": lambda path: {"population.0.network": {"places": {"path": path, "server": "x"}}},
    "images": lambda path: {"task.dataset": {"name": "mnist", "root": path}},
    "table": lambda path: {"task.dataset": {"name": "csv", "train": path, "label": "y"}},
    "folder": lambda path: {"task.dataset": {"name": "image_folder", "path": path}},
    "data": lambda path: {"task.dataset": {"name": "torch", "factory": f"{path}.py:load"}},
    "model": lambda path: {"task.model": {"name": "torch", "factory": f"{path}.py:Net"}},
    "plugin": lambda path: {"plugins": [f"{path}.py"]},
}


def changed(changes):
    """Return the text of the quickstart scenario with values at key paths replaced."""
    data = yaml.safe_load(QUICKSTART.read_text())
    for key, value in changes.items():
        *path, last = [int(part) if part.isdigit() else part for part in key.split(".")]
        inner = data
        for part in path:
            inner = inner[part]
        inner[last] = value
    return yaml.safe_dump(data)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("kind", PATHS)
def test_a_path_in_a_scenario_that_no_file_can_have(key, kind, tmp_path, capsys):
    path, said = PATHS[kind]
    file = tmp_path / "s.yaml"
    file.write_text(changed(KEYS[key](path)))
    assert main(["check", str(file)]) == 2
    (message,) = capsys.readouterr().err.splitlines()
    more = key in ("data", "model", "plugin") and kind != "NUL"  # ".py" is a part of the name
    assert (said.partition(" bytes")[2] if more else said) in message
    assert message.startswith(f"fedactors: {file}")
    assert len(message) < 1000


COMMANDS = {
    "check": ["{path}"],
    "run": [str(QUICKSTART), "--fleet", "local", "--out", "{path}"],
    "replay": [str(QUICKSTART), "--out", "{path}"],
    "resume": ["{path}", "--fleet", "local"],
    "branch": ["{path}", "--at", "round=1", "--fleet", "local"],
    "report": ["{path}"],
    "audit": ["{path}"],
    "diff": ["{path}", "{path}"],
    "timeline": ["{path}"],
    "watch": ["{path}"],
    "traces describe": ["{path}"],
    "traces convert": [str(QUICKSTART.parents[1] / "traces/campus.csv"), "{path}"],
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", ["long name", "long path"])
def test_a_path_of_a_command_that_no_file_can_have(command, kind, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path, _ = PATHS[kind]
    words = [word.format(path=path) for word in COMMANDS[command]]
    assert main([*command.split(), *words]) == 2
    (message,) = capsys.readouterr().err.splitlines()
    assert message.startswith("fedactors: ")
    assert path in message


def test_a_home_folder_that_nobody_has(tmp_path, capsys):
    file = tmp_path / "s.yaml"
    file.write_text(changed(KEYS["folder"]("~nobody-has-this-name/data")))
    assert main(["check", str(file)]) == 2
    assert "task.dataset.path: no home folder ~nobody-has-this-name" in capsys.readouterr().err

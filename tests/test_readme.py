"""What the README shows is what happens: its scenario is the shipped one, its figures come out."""

import json
import os
import re
from pathlib import Path

import pytest
import yaml

from fedactors import Scenario
from fedactors.cli.main import main
from fedactors.simulation.replay import replay

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
LINE_BY_LINE = (ROOT / "docs/tutorial/quickstart.md").read_text()
REAL_PHONES = (ROOT / "docs/how-to/real-phones.md").read_text()


def blocks(kind, page=README):
    return re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL)


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)


def test_the_scenario_explained_is_the_one_that_runs():
    assert yaml.safe_load(blocks("yaml", LINE_BY_LINE)[0]) == yaml.safe_load(
        (ROOT / "scenarios/quickstart.yaml").read_text()
    )


@pytest.mark.parametrize(("changes", "place"), [([], 0), (["server.deadline=10s"], 1)])
def test_the_lines_explained_ask_the_clients_shown(changes, place, capsys, tmp_path):
    words = [word for change in changes for word in ("--set", change)]
    assert main(["replay", "quickstart", *words, "--out", str(tmp_path / "replay")]) == 0
    assert blocks("text", LINE_BY_LINE)[place].rstrip("\n") == capsys.readouterr().out.splitlines()[2]


def test_the_quickstart_gives_the_figures_shown(tmp_path, capsys):
    arguments = ["run", "scenarios/quickstart.yaml", "--fleet", "local", "--out", str(tmp_path / "run")]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    shown = next(block for block in blocks("text") if block.startswith("quickstart:"))
    assert said.splitlines()[1:6] == shown.splitlines()[1:6]  # participation is exact on every machine
    assert main([*arguments[:-1], str(tmp_path / "again"), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["final"]["accuracy"] >= 0.85
    assert summary["outcomes"]["partial"] >= summary["asked"] / 5
    assert summary["outcomes"]["offline"] > 0
    assert json.loads((tmp_path / "again/summary.json").read_text())["digests"] == summary["digests"]


def test_the_phones_give_the_participation_shown(shared, monkeypatch):
    monkeypatch.setenv("FEDACTORS_TRACES", str(shared / "traces"))
    summary = replay(Scenario.load("scenarios/phones-mnist.yaml")).summary
    shown = next(block for block in blocks("text", REAL_PHONES) if block.startswith("phones-mnist:"))
    asked, *counts = (int(n.replace(",", "")) for n in re.findall(r"([\d,]+)(?: \(|:)", shown.splitlines()[2]))
    assert summary["asked"] == asked
    assert [n for n in summary["outcomes"].values() if n] == counts


def test_the_phones_learn_from_real_images(shared, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FEDACTORS_TRACES", str(shared / "traces"))
    monkeypatch.setenv("FEDACTORS_DATA", str(shared / "data"))
    arguments = ["run", "scenarios/phones-mnist.yaml", "--fleet", "local", "--out", str(tmp_path / "run")]
    assert main([*arguments, "--set", "server.rounds=20", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["final"]["accuracy"] > 0.5


def test_every_command_shown_exists():
    for command in re.findall(r"^\| `fedactors (\w+)", README, re.MULTILINE):
        with pytest.raises(SystemExit) as left:
            main([command, "--help"])
        assert left.value.code == 0


def test_the_make_targets_shown_exist():
    targets = re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert target in targets
    assert os.access(ROOT / ".ci/run", os.X_OK)

"""Scenarios that come with fedactors are found by name from any folder, and can be written to edit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fedactors import packaged
from fedactors.cli.main import main
from fedactors.errors import ScenarioError
from fedactors.scenario import Scenario

ROOT = Path(__file__).parents[1]


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """Stand in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def figures(capsys, *words):
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_scenario_of_the_checkout_has_a_name_and_one_short_line():
    files = sorted([*(ROOT / "scenarios").rglob("*.yaml"), *(ROOT / "examples/own").glob("*/scenario.yaml")])
    assert sorted(packaged.file_of(name) for name in packaged.names()) == files
    for name in packaged.names():
        assert 20 < len(packaged.summary(name)) <= 110, name
    assert packaged.summary("ruan-sampled").startswith("Ruan et al. (AISTATS 2021), Table 2: participation")


def test_a_name_stands_for_the_file_from_any_folder(empty, capsys):
    by_name = figures(capsys, "replay", "ruan-emerging", "--set", "server.rounds=3", "--out", "a")
    path = str(ROOT / "scenarios/ruan-emerging.yaml")
    by_path = figures(capsys, "replay", path, "--set", "server.rounds=3", "--out", "b")
    assert by_name["digests"]["plans"] == by_path["digests"]["plans"]


@pytest.mark.parametrize(
    "words",
    [
        ["check", "quickstart"],
        ["check", "papers/flexible/table3-synthetic-reduced"],
        ["data", "describe", "quickstart"],
        [
            "compare",
            "quickstart",
            "--seeds",
            "1",
            "--jobs",
            "1",
            "--vary",
            "server.cohort=5,10",
            "--set",
            "server.rounds=1",
        ],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_commands_take_names(words, empty, capsys):
    assert main(words) == 0, capsys.readouterr().err


def test_an_example_with_code_runs_by_name_and_is_copied_with_its_code(empty, capsys):
    assert main(["check", "examples/two-inputs"]) == 0
    assert main(["scenarios", "copy", "examples/two-inputs", "--out", "mine"]) == 0
    assert {path.name for path in (empty / "mine").iterdir()} == {"two-inputs.yaml", "asked.py"}
    capsys.readouterr()
    assert main(["check", "mine/two-inputs.yaml"]) == 0
    assert "the scenario is sound" in capsys.readouterr().out


def test_a_file_of_the_user_comes_before_a_packaged_name(empty):
    (empty / "quickstart").write_text((ROOT / "scenarios/regression.yaml").read_text())
    assert Scenario.load("quickstart").name == "regression"
    (empty / "semi-synchronous").mkdir()
    assert Scenario.load("semi-synchronous").name == "semi-synchronous"


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("quikstart", 'did you mean "quickstart"?'),
        ("scenarios/quickstart.yaml", 'did you mean "quickstart"?'),
        ("fsl/table1", 'did you mean "papers/fsl/table1"'),
        ("zzz", "zzz: no such scenario file (accepted: a file, or a name that `fedactors scenarios` lists)"),
    ],
)
def test_a_wrong_name_is_one_message_with_the_nearest_names(wrong, near, empty, capsys):
    assert main(["check", wrong]) == 2
    said = capsys.readouterr().err
    assert near in said
    assert f"{wrong}: no such scenario file" in said
    assert len(said.splitlines()) == 1


def test_scenarios_are_listed_a_line_each(capsys):
    assert main(["scenarios"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "quickstart" in [line.split()[0] for line in lines if line]
    assert not [line for line in lines if line.startswith("papers/")]
    assert main(["scenarios", "--all"]) == 0
    assert sum(line.startswith("papers/") for line in capsys.readouterr().out.splitlines()) > 50
    assert figures(capsys, "scenarios")["scenarios"]["quickstart"].startswith("A hundred unreliable devices")


@pytest.mark.parametrize("name", ["quickstart", "ruan-emerging", "papers/mixed/fig2"])
def test_a_copy_runs_as_the_original(name, empty, capsys):
    assert main(["scenarios", "copy", name, "--out", "mine"]) == 0
    said = capsys.readouterr().out.splitlines()
    copied = empty / "mine" / f"{name.rpartition('/')[2]}.yaml"
    assert str(copied.relative_to(empty)) == said[0]
    assert all((empty / line).is_file() for line in said[:-1])
    if "papers" not in name:
        plans = [
            figures(capsys, "replay", source, "--set", "server.rounds=2", "--out", str(empty / out))["digests"]["plans"]
            for source, out in ((name, "a"), (str(copied), "b"))
        ]
        assert plans[0] == plans[1]
    assert main(["scenarios", "copy", name, "--out", "mine"]) == 0, "the same bytes are no conflict"


def test_a_copy_overwrites_nothing(empty, capsys):
    (empty / "quickstart.yaml").write_text("mine")
    assert main(["scenarios", "copy", "quickstart"]) == 2
    assert "quickstart.yaml: is there already, and differs" in capsys.readouterr().err
    assert [path.name for path in empty.iterdir()] == ["quickstart.yaml"]
    with pytest.raises(ScenarioError, match='no scenario "quikstart" comes with fedactors; did you mean "quickstart"'):
        packaged.file_of("quikstart")


def test_bash_completes_commands_and_packaged_names(tmp_path):
    pytest.importorskip("shtab")
    said = subprocess.run(
        [sys.executable, "-m", "fedactors", "completion", "bash"], capture_output=True, text=True, check=True
    ).stdout
    (tmp_path / "done").write_text(said)
    probe = """
source "$1"
complete() { :; }
_try() { COMP_WORDS=(fedactors "$@"); COMP_CWORD=$#; COMPREPLY=(); _shtab_fedactors; echo "${COMPREPLY[@]}"; }
_try rep
_try run quick
_try run --fl
"""
    done = subprocess.run(
        ["bash", "-c", probe, "bash", str(tmp_path / "done")],
        capture_output=True, text=True, check=False, cwd=tmp_path, env=os.environ,
    )  # fmt: skip
    commands, names, options = done.stdout.splitlines()
    assert commands.split() == ["replay", "report", "reproduce"], done.stderr
    assert names.split() == ["quickstart"]
    assert options.split() == ["--fleet"]

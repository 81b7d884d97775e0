"""What the command line does before a command runs: help, versions, exit codes, and what it imports."""

import subprocess
import sys
from importlib.metadata import version

import pytest

from fedactors.cli.main import main
from fedactors.version import VERSION


def test_without_a_command_there_is_help(capsys):
    assert main([]) == 0
    shown = capsys.readouterr()
    assert "usage: fedactors" in shown.out
    assert "run a scenario" in shown.out
    assert not shown.err


def test_without_an_action_traces_shows_help(capsys):
    assert main(["traces"]) == 0
    assert "list the formats that can be read" in capsys.readouterr().out


def test_versions(capsys):
    assert main(["--version"]) == 0
    lines = dict(line.split(" ", 1) for line in capsys.readouterr().out.splitlines())
    python = ".".join(map(str, sys.version_info[:3]))
    assert lines == {"fedactors": VERSION, "python": python, "torch": version("torch"), "ray": version("ray")}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rum"], 'no command "rum"; did you mean "run"?'),
        (["run"], "the following arguments are required: SCENARIO"),
        (["run", "nowhere.yaml"], "nowhere.yaml: no such scenario file"),
        (["new", "data", "x"], 'argument kind: found "data"; did you mean "dataset"? accepted: algorithm, dataset, '),
        (["run", "quickstart", "--fleet", "x'y"], """argument --fleet: found "x'y"; accepted: local, ray"""),
        (["run", "quickstart", ""], 'found an empty argument, ""'),
        (["compare", "quickstart", "--seed", "3"], "unrecognized arguments: --seed 3"),
        (["traces", "record", "x.csv", "--round", "3"], "unrecognized arguments: --round 3"),
        (["--versions"], "unrecognized arguments: --versions"),
    ],
)
def test_wrong_words_are_refused_with_exit_code_2(words, said, capsys):
    try:
        code = main(words)
    except SystemExit as left:
        code = left.code
    assert code == 2
    assert said in capsys.readouterr().err


def test_help_imports_no_library_of_a_command():
    probe = """
import sys
from fedactors.cli.main import main
main([])
print("HEAVY", sorted({"torch", "ray", "numpy", "pandas", "pyarrow", "pydantic", "simpy"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY []"

"""Scripts of the user that end the program (`sys.exit`, argparse on import): one message with the line, not silence."""

import pytest
import yaml

from fedactors.cli.main import main
from tests.cli.test_wrong_user_code import BASE, dataset, loss, metric, model

FILE = """
import numpy as np
from torch import nn

def ends(*arguments):
    raise SystemExit(3)

class Ends(nn.Linear):
    def __init__(self):
        super().__init__(64, 10)
    def forward(self, x):
        ends()

def good_data():
    rows = np.zeros((20, 5), np.float32), np.arange(20) % 2
    return rows, rows
"""
SCRIPT = """
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True)
options = parser.parse_args([])

def load():
    return options.data
"""
TASKS = {
    "made": model("ends"),
    "forward": model("Ends"),
    "data": dataset("ends"),
    "loss": {"model": "logistic"} | loss("ends"),
    "metric": {"model": "logistic"} | metric("ends"),
    "owner": dataset("good_data", {"name": "natural", "by": "own.py:ends"}),
}


def told(folder, capture, task, **more):
    """Run a scenario whose code ends the program; return the one message."""
    (folder / "wrong.yaml").write_text(yaml.safe_dump(BASE | {"task": BASE["task"] | task} | more))
    assert main(["run", str(folder / "wrong.yaml"), "--fleet", "local", "--out", str(folder / "run")]) == 2
    said = capture.readouterr().err
    assert said.count("fedactors: ") == 1
    assert "Traceback" not in said
    assert not (folder / "run").exists()
    return said


@pytest.mark.parametrize("task", TASKS)
def test_code_that_ends_the_program_is_named(task, tmp_path, capsys):
    (tmp_path / "own.py").write_text(FILE)
    said = told(tmp_path, capsys, TASKS[task])
    assert "SystemExit: 3" in said
    assert "own.py" in said


def test_a_plugin_that_ends_the_program_is_named(tmp_path, capsys):
    (tmp_path / "mine.py").write_text("raise SystemExit(3)\n")
    assert "mine.py, line 1, on import: SystemExit: 3" in told(
        tmp_path, capsys, {"model": "logistic"}, plugins=["mine.py"]
    )


def test_a_script_that_reads_a_command_line_when_it_is_imported_is_named(tmp_path, capfd):
    """Argparse prints its usage and ends the program."""
    (tmp_path / "script.py").write_text(SCRIPT)
    said = told(tmp_path, capfd, dataset("load") | {"dataset": {"name": "torch", "factory": "script.py:load"}})
    assert "script.py:load, line 6" in said
    assert "SystemExit: 2" in said

"""A run goes on with the data it had: each value counts, and who holds which sample."""

import csv
from dataclasses import replace

import pytest

import fedactors
from fedactors.cli.main import main
from fedactors.scenario import Scenario
from fedactors.simulation.prepare import prepare
from fedactors.simulation.resume import checkpoint
from fedactors.simulation.resume.resume import _sampled_digest
from fedactors.simulation.runner import load, resume

TEXT = """
name: own
task: {dataset: {name: csv, train: own.csv, test: test.csv, label: label}, model: logistic, partition: PARTITION}
population: [{name: phones, count: 4}]
server: {rounds: 4, local: {steps: 3, batch: 4}, cohort: 2}
"""


def table():
    """Return 80 rows of four users, all of the same two classes in turn."""
    return [[f"{row % 7}.5", f"{row % 11}.25", f"{row // 2 % 4}", "ab"[row % 2]] for row in range(80)]


def write(folder, rows, name="own.csv"):
    with (folder / name).open("w", newline="") as file:
        csv.writer(file).writerows([["x", "z", "user", "label"], *rows])


@pytest.fixture(params=["iid", "{name: natural, by: user}"], ids=["iid", "by user"])
def stopped(request, tmp_path):
    write(tmp_path, table())
    write(tmp_path, table(), "test.csv")
    (tmp_path / "own.yaml").write_text(TEXT.replace("PARTITION", request.param))
    path = tmp_path / "run"
    fedactors.run(Scenario.load(tmp_path / "own.yaml"), path, fleet="local", report=False, stop_after=2)
    return path


def cell(rows):
    rows[5][0] = "9.5"


def label(rows):
    rows[5][3] = "a"


def users(rows):
    """Two samples of one class change places: labels stay where they were."""
    rows[5][2], rows[7][2] = rows[7][2], rows[5][2]


def swapped(rows):
    rows[5], rows[9] = rows[9], rows[5]


@pytest.mark.parametrize("change", [cell, label, users, swapped])
def test_other_data_are_refused(change, stopped, capsys):
    rows = table()
    change(rows)
    write(stopped.parent, rows)
    assert main(["resume", str(stopped), "--fleet", "local"]) == 2
    assert "the data set is not the one of the checkpoint, or clients hold other samples" in capsys.readouterr().err
    write(stopped.parent, table())
    assert main(["resume", str(stopped), "--fleet", "local"]) == 0


def test_a_checkpoint_with_a_digest_of_some_samples_is_gone_on_with(stopped):
    """Its digest has no prefix; the checkpoints that follow have a digest of all samples."""
    start = checkpoint.load(stopped)
    loaded = load(prepare(Scenario.load(stopped.parent / "own.yaml")))
    checkpoint.save(stopped, replace(start, data=_sampled_digest(loaded)), start.saved())
    found = resume(stopped, fleet="local", report=False)
    assert found.summary["plans"] == 4
    assert checkpoint.load(stopped).data == start.data

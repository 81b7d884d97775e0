"""A project folder that was moved: a run in it goes on, and branches, once it is told where its paths start now."""

import json
import shutil

import pytest
import yaml

import fedactors
from fedactors import Scenario
from fedactors.cli.main import main
from fedactors.errors import RunFolderError, UsageError
from fedactors.simulation.resume import checkpoint
from fedactors.simulation.runner import resume
from tests.simulation.test_refused_resume import CAMPUS, scenario


def digests(folder):
    return json.loads((folder / "summary.json").read_text())["digests"]


@pytest.fixture
def moved(tmp_path):
    """The folder that a project was moved to, with half of a run in it, and the folder of all of it."""
    project = tmp_path / "project"
    project.mkdir()
    shutil.copy(CAMPUS, project / "campus.csv")
    (project / "phones.yaml").write_text(yaml.safe_dump(scenario("campus.csv").model_dump(mode="json")))
    loaded = Scenario.load(project / "phones.yaml")
    whole = fedactors.run(loaded, tmp_path / "whole", fleet="local", report=False).folder
    fedactors.run(loaded, project / "run", fleet="local", report=False, stop_after=4)
    return project.rename(tmp_path / "moved"), whole


def test_a_run_goes_on_and_branches_from_where_its_project_was_moved(moved, tmp_path, capsys):
    """Both are alike in bits to the run that was never moved; the checkpoint after that knows the new place."""
    project, whole = moved
    with pytest.raises(UsageError, match=r"campus\.csv"):
        resume(project / "run", fleet="local")
    place = ["--scenario-folder", str(project), "--fleet", "local"]
    assert main(["branch", str(project / "run"), "--at", "round=2", "--out", str(tmp_path / "branch"), *place]) == 0
    assert main(["resume", str(project / "run"), *place]) == 0
    assert digests(project / "run") == digests(tmp_path / "branch") == digests(whole)
    assert checkpoint.load(project / "run").folder == checkpoint.load(tmp_path / "branch").folder == str(project)
    capsys.readouterr()


def test_other_files_there_are_refused_as_ever(moved, tmp_path):
    project, _ = moved
    lines = (project / "campus.csv").read_text().splitlines(keepends=True)
    (project / "campus.csv").write_text("".join([*lines[:2], *lines[len(lines) // 2 :]]))
    with pytest.raises(RunFolderError, match="the clock gives other plans"):
        resume(project / "run", fleet="local", scenario_folder=project)
    with pytest.raises(RunFolderError, match=r"nowhere: no folder \(accepted: that in which relative paths"):
        resume(project / "run", fleet="local", scenario_folder=tmp_path / "nowhere")

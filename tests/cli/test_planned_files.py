"""Files that a command writes at its end: what keeps it from writing them is told before it begins."""

import sys

import pytest

from fedactors.cli import planned_files
from fedactors.cli.main import main
from fedactors.errors import UsageError
from tests.data.user.scenes import scene
from tests.fleet.conftest import QUICKSTART

STUDIES = [
    ["compare", str(QUICKSTART), "--vary", "server.algorithm=fedavg,fsl", "--seeds", "1", "--jobs", "1"],
    ["sweep", str(QUICKSTART), "--jobs", "1"],
]
DIGITS = {"dataset": "digits", "model": "logistic", "partition": "iid"}


def refused(capsys, words):
    """Return the one message of a command that is refused."""
    with pytest.raises(SystemExit) as left:  # argparse leaves by itself
        sys.exit(main(words))
    assert left.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    return said.err


@pytest.mark.parametrize("words", STUDIES, ids=["compare", "sweep"])
@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("x.foo", "x.foo (accepted: a file that ends in .png, .pdf or .svg)"),
        ("x", "x (accepted: a file that ends in .png, .pdf or .svg)"),
        ("absent/x.png", "absent/x.png: cannot be written: no folder"),
        ("file/x.png", "file/x.png: cannot be written: no folder"),
        ("folder.svg", "folder.svg: cannot be written: it is a folder"),
    ],
)
def test_a_plot_that_cannot_be_drawn_is_told_before_a_study_runs(words, name, named, tmp_path, capsys):
    (tmp_path / "file").touch()
    (tmp_path / "folder.svg").mkdir()
    said = refused(capsys, [*words, "--out", str(tmp_path / "runs"), "--plot", str(tmp_path / name)])
    assert "--plot" in said
    assert named in said
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("words", STUDIES, ids=["compare", "sweep"])
def test_a_missing_library_is_told_before_a_study_runs(words, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = refused(capsys, [*words, "--out", str(tmp_path / "runs"), "--plot", str(tmp_path / "x.PDF")])
    assert "pip install 'fedactors[notebook]'" in said
    assert not (tmp_path / "runs").exists()


def test_a_chart_of_data_is_refused_before_they_are_read(tmp_path, capsys, monkeypatch):
    scene(tmp_path, DIGITS, 10)
    monkeypatch.setattr("fedactors.simulation.inspect.client_holdings.holdings", None)
    words = ["data", "describe", str(tmp_path / "small.yaml"), "--out"]
    assert "--out" in refused(capsys, [*words, str(tmp_path / "absent/who.html")])


def test_a_recording_is_refused_before_it_is_measured(tmp_path, capsys, monkeypatch):
    for measured in ("participation", "usage"):
        monkeypatch.setattr(f"fedactors.traces.recorder.{measured}", None)
        words = ["traces", "record", str(tmp_path / "absent/x.csv"), "--mode", measured]
        assert "absent/x.csv: cannot be written: no folder" in refused(capsys, words)


@pytest.mark.parametrize(
    ("more", "named"),
    [(["--rounds", "0"], 'argument --rounds: found "0"'), (["--out", "file"], "file: cannot be made: File exists")],
)
def test_a_grid_is_refused_before_its_first_point(more, named, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fedactors.simulation.scale.scale", None)
    (tmp_path / "file").touch()
    words = ["scale", str(QUICKSTART), "--clients", "4", "--actors", "1"]
    assert named in refused(capsys, [*words, *more])


@pytest.mark.parametrize("made", [False, True])
def test_a_picture_may_go_into_the_folder_that_a_study_makes(made, tmp_path):
    folder = tmp_path / "runs" / "study"
    if made:
        folder.mkdir(parents=True)
    planned_files.refuse_undrawable("--plot", str(folder / "x.png"), folder)
    planned_files.refuse_undrawable("--plot", str(folder / ".." / "study" / "x.png"), folder)
    with pytest.raises(UsageError, match="no folder"):
        planned_files.refuse_undrawable("--plot", str(folder / "deeper" / "x.png"), folder)


def test_a_run_or_branch_that_is_refused_leaves_no_folder(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scene(tmp_path, DIGITS, 10)
    words = ["small.yaml", "--fleet", "local", "--set", "server.rounds=2"]
    assert main(["run", *words, "--out", "first"]) == 0
    capsys.readouterr()
    refused(capsys, ["branch", "first", "--at", "round=9", "--tensorboard"])
    monkeypatch.setattr("fedactors.simulation.runner.load", fail)
    refused(capsys, ["run", *words, "--tensorboard"])
    assert list((tmp_path / "runs").iterdir()) == []


def fail(*_):
    raise UsageError("nothing there")

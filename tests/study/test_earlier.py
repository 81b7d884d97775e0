"""Tables of a study stay until their own study goes on: another one in the same folder is refused before it runs."""

import shutil

import pytest

from fedactors.cli.main import main

TABLES = ("comparison.txt", "comparison.csv", "comparison.tex", "comparison.html", "runs.csv")
SHORT = ["--set", "server.rounds=1", "--jobs", "1"]
RATES = ["--vary", "server.schedule.lr=0.1,0.2"]
ACCEPTED = "(accepted: the same runs, with more seeds or variants; or another folder: --out DIR)"

NET = """
from torch import nn

class Net(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Flatten(), nn.Linear(64, 10))
"""


@pytest.fixture(scope="module")
def first(scenario, tmp_path_factory):
    """Return the folder of a comparison of two rates with two seeds."""
    folder = tmp_path_factory.mktemp("first") / "rates"
    assert main(["compare", str(scenario), *RATES, *SHORT, "--seeds", "2", "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def out(first, tmp_path):
    return shutil.copytree(first, tmp_path / "rates")


def age(folder):
    """Give each table another content; that of runs, a line twice, since a study identifies its folder by it."""
    for name in TABLES[:-1]:
        (folder / name).write_text("of before")
    runs = folder / "runs.csv"
    runs.write_text(runs.read_text() + runs.read_text().splitlines()[-1] + "\n")


def assert_complete(folder, runs):
    """Assert that no table is of before, and that so many runs are in theirs."""
    assert len((folder / "runs.csv").read_text().splitlines()) == 1 + runs
    assert "of before" not in [(folder / name).read_text() for name in TABLES]


def contents(folder):
    return {path.relative_to(folder): path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["compare", "--vary", "server.local.epochs=1,2", *SHORT], "server.schedule.lr = 0.1, 0.2"),
        (["compare", "--vary", "server.schedule.lr=0.2,0.3", *SHORT], "server.schedule.lr = 0.1, 0.2"),
        (["compare", "--vary", "server.schedule.lr=0.1", *SHORT], "server.schedule.lr = 0.1, 0.2"),
        (["sweep", *SHORT], "server.schedule.lr = 0.1, 0.2"),
        (
            ["compare", *RATES, "--set", "server.rounds=2", "--jobs", "1"],
            "server.schedule.lr = 0.1, 0.2, with server.rounds = 1 (here 2)",
        ),
        (
            ["compare", *RATES, *SHORT, "--set", "server.cohort=5", "--set", "server.local={epochs: 1, batch: 4}"],
            "server.schedule.lr = 0.1, 0.2, with server.cohort = 6 (here 5), server.local.epochs = 2 (here 1),"
            " server.local.batch = 5 (here 4)",
        ),
        (
            ["compare", *RATES, *SHORT, "--clock-only"],
            "server.schedule.lr = 0.1, 0.2, with training (here by the clock alone)",
        ),
    ],
    ids=["other key", "other values", "fewer values", "sweep", "other setting", "other settings", "clock"],
)
def test_another_study_is_refused_before_it_runs(words, found, scenario, out, capsys):
    before = contents(out)
    assert main([words[0], str(scenario), *words[1:], "--out", str(out)]) == 2
    said = capsys.readouterr()
    assert said.err == f"fedactors: {out}/runs.csv: found another study, which varies {found} {ACCEPTED}\n"
    assert said.out == ""
    assert contents(out) == before


@pytest.mark.parametrize(
    ("words", "runs"),
    [
        ([*RATES, "--seeds", "2", "--baseline", "0.2", "--confidence", "0.9"], 4),
        ([*RATES, "--seeds", "3"], 6),
        (["--vary", "server.schedule.lr=0.3,0.2,0.1", "--seeds", "2"], 6),
        ([*RATES, "--set", "name=other", "--set", "cluster.actors=3", "--seeds", "2"], 4),
    ],
    ids=["shown otherwise", "more seeds", "more variants", "other name"],
)
def test_a_study_goes_on_in_its_folder(words, runs, scenario, out):
    age(out)
    assert main(["compare", str(scenario), *words, *SHORT, "--out", str(out)]) == 0
    assert_complete(out, runs)


def test_a_sweep_of_the_runs_of_a_comparison_goes_on_with_them(scenario, out):
    same = ["--set", "sweep={grid: {server.schedule.lr: [0.1, 0.2]}, seeds: 2}"]
    assert main(["sweep", str(scenario), *same, *SHORT, "--out", str(out)]) == 0
    assert (out / "sweep.html").exists()
    assert len((out / "runs.csv").read_text().splitlines()) == 1 + 4


def test_a_comparison_goes_on_where_it_was_stopped_before_its_tables(scenario, out):
    for name in TABLES:
        (out / name).unlink()
    shutil.rmtree(next(out.glob("run-*")))
    assert main(["compare", str(scenario), *RATES, *SHORT, "--seeds", "2", "--out", str(out)]) == 0
    assert_complete(out, 4)
    assert len(list(out.glob("run-*"))) == 4


def test_a_file_of_the_user_is_not_taken_for_a_table(scenario, tmp_path, capsys):
    for text in ("day,km\nMonday,5\n", "a,seed,folder\nx,many,run-1\n", "seed,folder\n7\n"):
        (tmp_path / "runs.csv").write_text(text)
        assert main(["compare", str(scenario), *RATES, *SHORT, "--out", str(tmp_path)]) == 2
        said = capsys.readouterr().err
        assert said == f"fedactors: {tmp_path}/runs.csv: not the table of a study's runs {ACCEPTED}\n"
        assert (tmp_path / "runs.csv").read_text() == text


def test_runs_whose_folders_are_gone_are_told_apart_by_their_names(scenario, out, capsys):
    for folder in out.glob("run-*"):
        shutil.rmtree(folder)
    words = ["compare", str(scenario), *RATES, "--set", "server.rounds=2", "--jobs", "1", "--out", str(out)]
    assert main(words) == 2
    assert "server.schedule.lr = 0.1, 0.2, with other settings, code or data (acc" in capsys.readouterr().err


def test_tables_of_more_seeds_are_not_replaced_by_those_of_fewer(scenario, out, capsys):
    before = contents(out)
    assert main(["compare", str(scenario), *RATES, *SHORT, "--seeds", "1", "--out", str(out)]) == 2
    said = "found a study of other seeds, which varies server.schedule.lr = 0.1, 0.2, with the seeds 5, 6 (here 5)"
    assert capsys.readouterr().err == f"fedactors: {out}/runs.csv: {said} {ACCEPTED}\n"
    assert contents(out) == before


def test_other_code_of_the_user_is_another_study(scenario, tmp_path, capsys):
    shutil.copy(scenario, tmp_path / "own.yaml")
    (tmp_path / "net.py").write_text(NET)
    words = ["compare", str(tmp_path / "own.yaml"), "--set", "task.model={name: torch, factory: 'net.py:Net'}"]
    words += [*RATES, *SHORT, "--seeds", "1", "--out", str(tmp_path / "out")]
    assert main(words) == 0
    (tmp_path / "net.py").write_text(NET + "# changed\n")
    assert main(words) == 2
    assert "server.schedule.lr = 0.1, 0.2, with other code of yours (acc" in capsys.readouterr().err

"""`--runs-only`: a call plays its share of a study and writes no tables, so that others may share its folder."""

import pytest

from fedactors.cli.main import main

TABLES = ("comparison.txt", "comparison.csv", "comparison.tex", "comparison.html", "runs.csv")
VARY = ["--vary", "server.schedule.lr=0.1,0.2", "--set", "server.rounds=1", "--jobs", "1"]


def contents(folder, of):
    return {path.name: path.stat().st_mtime_ns for path in folder.glob(of)}


@pytest.mark.slow
def test_each_call_plays_its_seed_and_a_last_one_writes_the_tables(scenario, tmp_path, capsys):
    for seed in ("1", "2"):
        words = ["compare", str(scenario), *VARY, "--set", f"seed={seed}", "--seeds", "1", "--runs-only"]
        assert main([*words, "--out", str(tmp_path)]) == 0
        assert capsys.readouterr().out == f"2 runs are complete in {tmp_path}\n"
    assert not [name for name in TABLES if (tmp_path / name).exists()]
    runs = contents(tmp_path, "run-*/summary.json")
    assert main(["compare", str(scenario), *VARY, "--set", "seed=1", "--seeds", "2", "--out", str(tmp_path)]) == 0
    assert "2 variants, 2 seeds each" in capsys.readouterr().out
    assert len((tmp_path / "runs.csv").read_text().splitlines()) == 1 + 4
    assert contents(tmp_path, "run-*/summary.json") == runs  # none was run again
    assert len(list(tmp_path.glob("run-*"))) == 4


def test_tables_that_are_there_stay(scenario, tmp_path):
    assert main(["compare", str(scenario), *VARY, "--seeds", "1", "--out", str(tmp_path)]) == 0
    before = contents(tmp_path, "*.*")
    words = ["compare", str(scenario), *VARY, "--set", "seed=9", "--seeds", "1", "--out", str(tmp_path)]
    assert main(words) == 2
    assert main([*words, "--runs-only"]) == 0
    assert contents(tmp_path, "*.*") == before
    assert len(list(tmp_path.glob("run-*"))) == 4


def test_a_sweep_may_play_its_runs_only(scenario, tmp_path, capsys):
    words = ["sweep", str(scenario), "--set", "server.rounds=1", "--set", "sweep.seeds=1", "--jobs", "1"]
    assert main([*words, "--clock-only", "--runs-only", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"8 runs are complete in {tmp_path}\n"
    assert {path.name[:7] for path in tmp_path.iterdir()} == {"replay-"}


@pytest.mark.parametrize("more", [["--plot", "x.pdf"], ["--json"]])
def test_what_needs_figures_is_refused(more, scenario, tmp_path, capsys):
    assert main(["compare", str(scenario), *VARY, "--runs-only", *more, "--out", str(tmp_path / "out")]) == 2
    said = f"fedactors: --runs-only makes no tables and no pictures (accepted: without {more[0]})\n"
    assert capsys.readouterr().err == said
    assert not (tmp_path / "out").exists()

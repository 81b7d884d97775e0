"""A sweep covers its grid and its list, maps hold the means, and mistakes in the file are told with their line."""

import asyncio
import csv
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedactors import Scenario
from fedactors.cli.main import main
from fedactors.errors import ScenarioError, UsageError
from fedactors.study import sweep_page
from fedactors.study.ranking import refuse_unmeasured
from fedactors.study.run_figures import StudyRow, figures
from fedactors.study.study_cells import axis
from fedactors.study.sweep import Swept, sweep
from tests.cli.described import assert_described
from tests.report.chromium import BINARY, opened
from tests.study.conftest import SCENARIO


@pytest.fixture(scope="module")
def swept(scenario, out):
    return sweep(scenario, out=out, overrides=["server.rounds=2"], jobs=1)


def test_every_place_is_run_with_every_seed(swept):
    assert [axis.name for axis in swept.axes] == ["server.schedule.lr", "server.local.epochs", "variant"]
    at = [(*row.labels.values(), row.seed) for row in swept.rows]
    assert len(set(at)) == len(at) == 2 * 2 * 2 * 2
    for row in swept.rows:
        kept = Scenario.load(row.folder / "scenario.yaml")
        assert kept.sweep is None
        assert (kept.server.schedule.lr, kept.server.local.epochs) == tuple(row.labels.values())[:2]
        assert kept.server.algorithm.name == {"FL": "fedavg", "FSL": "fsl"}[row.labels["variant"]]


def test_maps_hold_means_over_seeds(swept):
    maps = swept.maps()
    assert [one.at for one in maps] == [{"variant": "FL"}, {"variant": "FSL"}]
    wanted = {"server.schedule.lr": 0.1, "server.local.epochs": 1, "variant": "FSL"}
    values = [figures(row)["accuracy"] for row in swept.rows if dict(row.labels) == wanted]
    assert maps[1].values.shape == (2, 2)
    assert maps[1].values[0, 1] == pytest.approx(np.mean(values))
    assert len(swept.places()) == 8


@pytest.mark.slow
def test_the_command_prints_every_place_and_goes_on_where_it_was(scenario, out, swept, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("fedactors.simulation.runner.run", None)  # all is there
    out = shutil.copytree(out, tmp_path / "runs")  # a folder takes the tables of one study
    words = ["sweep", str(scenario), "--set", "server.rounds=2", "--out", str(out), "--jobs", "1"]
    assert main([*words, "--plot", str(tmp_path / "map.png"), "--measure", "rounds_to", "--target", "0.01"]) == 0
    said = capsys.readouterr().out
    assert "tiny: 8 places, 16 runs, mean rounds to target" in said
    assert "Target: accuracy 0.01." in said
    assert len(list(csv.DictReader((out / "runs.csv").open()))) == 16
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    assert main([*words, "--json"]) == 0
    said = capsys.readouterr().out
    assert_described("sweep", said)
    found = json.loads(said)
    assert found["measure"] == "accuracy"
    assert len(found["places"]) == 8


@pytest.mark.slow
def test_the_clock_alone_gives_the_plans_of_the_runs(swept, scenario, tmp_path):
    replayed = sweep(scenario, out=tmp_path, overrides=["server.rounds=2"], jobs=1, clock_only=True)
    assert replayed.measure == "heard"
    assert [row.plans for row in replayed.rows] == [row.plans for row in swept.rows]
    for one, run in zip(replayed.rows, swept.rows, strict=True):
        found, wanted = figures(one), figures(run)
        assert found["accuracy"] is None
        for name in ("heard", "partial", "gini", "staleness", "bytes", "seconds"):
            assert found[name] == wanted[name]
    folders = {path: path.stat().st_mtime_ns for path in tmp_path.glob("replay-*/summary.json")}
    sweep(scenario, out=tmp_path, overrides=["server.rounds=2"], jobs=1, clock_only=True)
    assert folders == {path: path.stat().st_mtime_ns for path in tmp_path.glob("replay-*/summary.json")}


def test_a_scenario_with_a_sweep_runs_without_it(scenario):
    assert "sweep" not in Scenario.load(scenario).dump()


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("  grid:", "  gird:", 'sweep.gird: unknown key; did you mean "grid"'),
        (
            "seeds: 2",
            "seeds: 0",
            "sweep.seeds: found 0 (accepted: how many, from 1 to 10,000, or a list of them, each once)",
        ),
        ("seeds: 2", "seeds: [1, 2, 1]", "sweep.seeds: found 1 twice (accepted: how many"),
        ("seeds: 2", "seeds: []", "sweep.seeds: found 0 (accepted: how many"),
        ("label: FSL", "label: FL", 'two entries are called "FL"'),
        ("server.local.epochs: [1, 2]", "seed: [1, 2]", "seed: a seed is not varied"),
        ("[0.01, 0.1]", "[]", "sweep.grid.server.schedule.lr"),
        ("server.local.epochs: [1, 2]", "server.local.epoch: [1, 2]", 'epoch: unknown key; did you mean "epochs"'),
        ("[0.01, 0.1]", "[0.1, 0.1]", "the value 0.1 is given twice"),
        ("  seeds: 2", "  measure: speed", 'no measure "speed"'),
        ("  seeds: 2", "  measure: rounds_to", "needs a target"),
    ],
)
def test_mistakes_are_told(tmp_path, old, new, named):
    path = tmp_path / "bad.yaml"
    assert old in SCENARIO
    path.write_text(SCENARIO.replace(old, new))
    with pytest.raises(UsageError) as told:
        sweep(path, out=tmp_path / "out", jobs=1)
    assert named in str(told.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_no_time_is_left_where_all_replays_are_there(scenario, tmp_path):
    left = []
    for _ in range(2):
        left.clear()
        sweep(
            scenario, out=tmp_path, overrides=["server.rounds=2"], jobs=1, clock_only=True,
            tell=lambda row, pace: left.append(pace.left),
        )  # fmt: skip
    assert set(left) == {None}


def test_a_scenario_without_a_sweep_says_so(tmp_path):
    path = tmp_path / "plain.yaml"
    path.write_text(SCENARIO.partition("sweep:")[0])
    with pytest.raises(UsageError, match="has no sweep"):
        sweep(path)


@pytest.mark.skipif(BINARY is None, reason="no chromium on this machine (Debian: apt install chromium)")
@pytest.mark.slow
def test_heat_maps_are_drawn(swept, tmp_path):
    path = sweep_page.write(swept, tmp_path / "sweep.html")

    async def go():
        async with opened(path, "dark") as (page, state):
            assert state == "2"
            return page.trouble, page.requests

    trouble, requests = asyncio.run(go())
    assert trouble == []
    assert [url for url in requests if not url.startswith("data:")] == [path.as_uri()]


def test_further_measures_are_columns_of_the_table(scenario, tmp_path):
    changes = ["sweep={list: [{label: one, set: {}}], beside: [seconds, bytes]}", "server.rounds=2"]
    found = sweep(scenario, out=tmp_path / "out", overrides=changes, jobs=1)
    assert re.search(r"^variant +accuracy +virtual time +traffic$", sweep_page.text(found), re.MULTILINE)
    assert re.search(r"^one +0\.\d+ +[\d.]+ s +[\d.]+ [kM]B$", sweep_page.text(found), re.MULTILINE)


def test_a_further_measure_that_is_none_is_told(scenario, tmp_path):
    changes = ["sweep={list: [{label: one, set: {}}], beside: [second]}"]
    with pytest.raises(ScenarioError, match=r'sweep.beside: no measure "second"; did you mean "?seconds"?'):
        sweep(scenario, out=tmp_path / "out", overrides=changes, jobs=1)


def test_the_clock_alone_tells_how_old_updates_are(tmp_path):
    file = tmp_path / "buffered.yaml"
    file.write_text(SCENARIO.replace("cohort: 6, deadline: 5s,", "timing: {name: fedbuff, concurrency: 6, buffer: 2},"))
    changes = ["sweep={list: [{label: one, set: {}}]}", "server.participation=uniform"]
    found = sweep(file, out=tmp_path / "out", overrides=changes, jobs=1, measure="staleness", clock_only=True)
    (row,) = found.rows
    assert figures(row)["staleness"] == row.records.summary["staleness"]["mean"] > 0


def test_the_best_place_is_one_that_most_seeds_reached(swept):
    """Of two seeds both reached the target with a rate of 0.1, one with .01, and that one with fewer bytes."""
    rows = [StudyRow({"lr": lr}, seed, Path(), swept.rows[0].records) for lr in (0.1, 0.01) for seed in (1, 2)]
    found = Swept("s", [axis("lr", [0.1, 0.01])], rows, "bytes_to", 0.5, None)
    vars(found)["figures"] = [{"bytes_to": value} for value in (300.0, 400.0, 200.0, None)]
    assert sweep_page.best(found) == ["Best: lr = 0.1 with 350 B."]
    assert "0.1 has the lowest bytes to target of those with figures in the most seeds" in sweep_page.text(found)
    vars(found)["figures"] = [{"bytes_to": value} for value in (300.0, None, 200.0, None)]
    assert sweep_page.best(found) == ["Best: lr = 0.01 with 200 B (1 of 2 seeds)."]


def test_the_best_place_of_each_label_of_an_axis(swept):
    """Each algorithm has a best rate of its own: the table of a paper compares these."""
    axes = [axis("algorithm", ["a", "b", "c"]), axis("lr", [0.1, 1])]
    rows = [StudyRow({"algorithm": a, "lr": lr}, 1, Path(), swept.rows[0].records) for a in "abc" for lr in (0.1, 1)]
    found = Swept("s", axes, rows, "accuracy", None, None, best_per="algorithm")
    vars(found)["figures"] = [{"accuracy": value} for value in (0.5, 0.25, 0.125, 0.75, None, None)]
    assert sweep_page.best(found) == [
        "Best: algorithm = b, lr = 1 with 0.750.",
        "Best of algorithm = a: lr = 0.1 with 0.500.",
        "Best of algorithm = b: lr = 1 with 0.750.",
    ]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--best-per", "server.schedule"], '--best-per: no axis "server.schedule"; did you mean "server.schedule.lr"'),
        (["--best-per", "lr", "--set", "sweep={grid: {server.cohort: [2, 3]}}"], "server.cohort is the only axis"),
    ],
)
def test_an_axis_that_is_none_is_told_before_anything_runs(words, why, scenario, tmp_path, capsys):
    assert main(["sweep", str(scenario), *words, "--out", str(tmp_path / "x")]) == 2
    assert why in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_the_command_says_the_best_place_of_each_label(scenario, out, swept, tmp_path, capsys):
    words = ["--set", "server.rounds=2", "--jobs", "1", "--best-per", "server.local.epochs"]
    assert main(["sweep", str(scenario), *words, "--out", str(shutil.copytree(out, tmp_path / "runs"))]) == 0
    said = capsys.readouterr().out
    found = replace(swept, best_per="server.local.epochs")
    assert len(sweep_page.best(found)) == 3
    assert "\n".join(sweep_page.best(found)) in said


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--measure", "client_accuracy"], "client_accuracy: the scenario has no server.evaluation"),
        (["--measure", "epsilon"], "epsilon: the scenario has no server.privacy"),
        (["--measure", "accuracy", "--clock-only"], "--clock-only trains nothing: no accuracy"),
        (["--measure", "joules", "--set", "population.phones.energy=null"], "joules: the scenario has no group with"),
        (["--target", "80"], "--target 80"),
    ],
)
def test_a_measure_that_no_run_has_is_told_before_anything_runs(words, why, scenario, tmp_path, capsys):
    assert main(["sweep", str(scenario), *words, "--out", str(tmp_path / "x")]) == 2
    assert why in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_a_measure_that_an_axis_asks_for_is_no_mistake(scenario):
    base = Scenario.load(scenario)
    refuse_unmeasured(base, [axis("server.evaluation.every", [1])], "--measure", "client_accuracy", clock_only=False)
    with pytest.raises(ScenarioError, match=r"client_accuracy: the scenario has no server\.evaluation"):
        refuse_unmeasured(base, [axis("server.evaluate_every", [1])], "--measure", "client_accuracy", clock_only=False)

"""Variants face the same devices, figures are those of the runs, and what is done is not done again."""

import asyncio
import csv
import json
import shutil
import zlib
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from fedactors import Scenario, run
from fedactors.cli.main import main
from fedactors.errors import ClusterError, RunFolderError, ScenarioError, UsageError
from fedactors.plan import Ending
from fedactors.report.variant_names import labelled
from fedactors.simulation.endings import cut_short, is_complete, reason
from fedactors.study import comparison_tables, page
from fedactors.study.comparison import compare
from fedactors.study.exports import comparison_files
from fedactors.study.run_figures import common_target, figures
from fedactors.study.run_folders import complete, failure
from fedactors.study.runs import StudyRun, finished, on_cluster
from fedactors.study.study_cells import axis_of
from tests.report.chromium import BINARY, opened

MLP = ["task.model={name: mlp, hidden: [8]}"]


def orders(row):
    return pq.read_table(row.folder / "orders.parquet").drop_columns(["down", "up"])


@pytest.mark.slow
def test_variants_with_equal_traffic_face_the_same_trips_to_the_nanosecond(comparison):
    for fedavg, fsl, scaffold in zip(*comparison.variants.values(), strict=True):
        assert orders(fedavg).equals(orders(fsl))
        assert fedavg.seed == fsl.seed == scaffold.seed
        first, dear = (table.filter(table["version"].to_numpy() == 0) for table in map(orders, (fedavg, scaffold)))
        assert first["client"].equals(dear["client"])  # the same are asked; sending twice as much takes them longer
        assert np.all(dear["downloaded"].to_numpy() >= first["downloaded"].to_numpy())
    assert comparison.alike() == {"fedavg": True, "fsl": True, "scaffold": False}
    assert comparison.seeds == [5, 6, 7]


def test_figures_are_those_of_the_run(comparison):
    for row in comparison.rows:
        summary = json.loads((row.folder / "summary.json").read_text())
        lines = [json.loads(line) for line in (row.folder / "metrics.jsonl").read_text().splitlines()]
        found = figures(row, target=0.0)
        assert found["accuracy"] == summary["final"]["accuracy"]
        assert found["seconds"] == pytest.approx(summary["virtual_seconds"])
        assert found["bytes"] == summary["bytes"]["down"] + summary["bytes"]["up"]
        assert found["joules"] == pytest.approx(summary["joules"])
        assert found["heard"] == pytest.approx(summary["heard"] / summary["asked"])
        assert found["rounds_to"] == 1
        assert found["seconds_to"] == lines[0]["virtual_seconds"]
        assert found["bytes_to"] == lines[0]["bytes_down"] + lines[0]["bytes_up"]
        assert figures(row, target=1.1)["rounds_to"] is None
        mean = sum(line["accuracy"] for line in lines[-2:]) / 2
        assert figures(row, window=2)["accuracy"] == pytest.approx(mean)


def test_estimates_are_means_over_seeds_and_differences_seed_by_seed(comparison):
    found = {(one.variant, one.measure): one for one in comparison.estimates()}
    base, other = ([one["accuracy"] for one in comparison.figures(name)] for name in ("fedavg", "fsl"))
    assert found["fsl", "accuracy"].value.mean == pytest.approx(np.mean(other))
    assert found["fsl", "accuracy"].difference.mean == pytest.approx(np.mean(np.subtract(other, base)))
    assert found["fedavg", "accuracy"].difference is None
    assert found["scaffold", "bytes"].difference.mean > 0
    assert comparison.target == int(90 * np.mean(base)) / 100


def test_figures_are_worked_out_once_for_each_run(comparison, monkeypatch):
    called = []

    def counted(row, *options, **how):
        called.append(row.folder)
        return figures(row, *options, **how)

    monkeypatch.setattr("fedactors.study.compared.figures", counted)
    comparison_tables.text(replace(comparison))
    assert called == [row.folder for row in comparison.rows]


def test_plans_are_compared_in_seeds_that_both_have_finished(comparison):
    """SCAFFOLD's plans are others; a run that diverged has fewer, which says nothing of those faced."""

    def noted(failed):
        rows = {
            name: [replace(row, failure="diverged" * ((name, row.seed) in failed)) for row in rows]
            for name, rows in comparison.variants.items()
            if name != "fsl"
        }
        return comparison_tables.notes(replace(comparison, variants=rows))

    assert any(note.startswith("Plans other than") for note in noted([("scaffold", 5), ("fedavg", 6)]))
    for failed in ([("scaffold", seed) for seed in (5, 6, 7)], [("scaffold", 5), ("fedavg", 6), ("scaffold", 7)]):
        assert not [note for note in noted(failed) if "lans" in note]


def test_tables_say_the_same_in_text_csv_and_latex(comparison):
    text, latex = comparison_tables.text(comparison), comparison_files.latex(comparison)
    rows = list(csv.DictReader(comparison_files.as_csv(comparison).splitlines()))
    [fsl] = [row for row in rows if (row["variant"], row["measure"]) == ("fsl", "accuracy")]
    shown = "{:.3f} [{:.3f}, {:.3f}]".format(*(float(fsl[name]) for name in ("mean", "low", "high")))
    assert shown in text
    assert shown in latex
    assert f"fsl has the highest accuracy, {float(fsl['mean']):.3f}. It" in text
    assert "the last tenth of the rounds" in text
    assert "Plans other than those of fedavg: scaffold" in text
    assert latex.count(r"\\") == 1 + len(comparison.variants)
    assert latex.count("&") == (1 + len(comparison.variants)) * (1 + len(comparison_tables.columns(comparison)))
    runs = list(csv.DictReader(comparison_files.runs_csv(comparison.rows, comparison.target, 1).splitlines()))
    assert [(run["server.algorithm"], run["seed"]) for run in runs[:4]] == [
        ("fedavg", "5"), ("fedavg", "6"), ("fedavg", "7"), ("fsl", "5"),
    ]  # fmt: skip


def test_latex_escapes_names():
    assert comparison_files._latex_cell("a_b 50% & {c} -1.5 *") == r"\textbf{a\_b 50\% \& \{c\} $-$1.5}"


def test_nothing_is_run_twice(scenario, out, comparison, monkeypatch):
    monkeypatch.setattr("fedactors.simulation.runner.run", None)
    again = compare(
        scenario,
        {"server.algorithm": ["fsl", "fedavg"]},
        3,
        out=out,
        overrides=["server.participation=uniform"],
        jobs=1,
    )
    assert again.baseline == "fsl"
    assert again.rows[0].folder == comparison.variants["fsl"][0].folder


def test_a_run_that_diverges_is_kept_as_such_and_leaves_the_others_alone(scenario, tmp_path):
    found = compare(scenario, {"server.schedule.lr": [0.1, 1e30]}, 2, out=tmp_path, overrides=MLP, jobs=1)
    bad = found.variants["1e+30"]
    assert all("NaN or Inf" in row.failure and complete(row.folder) for row in bad)
    assert "Not finished: round" in comparison_tables.text(found)
    assert [one.value for one in found.estimates() if one.variant == "1e+30" and one.measure == "accuracy"] == [None]
    page.write(found, tmp_path / "page.html")


def test_a_run_that_ends_as_it_diverges_has_no_figures(scenario, tmp_path):
    rates = {"server.schedule.lr": [0.1, 1e3]}
    found = compare(scenario, rates, 1, out=tmp_path, overrides=["server.divergence_threshold=20"], jobs=1)
    bad = found.variants["1000.0"][0]
    assert bad.failure.startswith("diverged: train loss")
    assert complete(bad.folder)
    assert {value for figures in found.figures("1000.0") for value in figures.values()} == {None}
    assert f"Not finished: {bad.failure} ({bad.folder})" in comparison_tables.text(found)
    assert found.figures("0.1")[0]["accuracy"] is not None


def test_an_unfinished_run_is_gone_on_with(scenario, tmp_path):
    work = StudyRun(scenario, ("server.rounds=4",), tmp_path)
    whole = finished(work)
    expected = json.loads((whole / "summary.json").read_text())["digests"]
    shutil.rmtree(whole)
    run(Scenario.load(scenario, work.overrides), whole, fleet="local", report=False, stop_after=2)
    assert not complete(whole)
    assert finished(work) == whole
    assert complete(whole)
    assert json.loads((whole / "summary.json").read_text())["digests"] == expected
    assert [path.name for path in tmp_path.iterdir()] == [whole.name]


def test_an_unfinished_run_without_a_checkpoint_is_set_aside(scenario, tmp_path):
    work = StudyRun(scenario, ("server.rounds=1",), tmp_path)
    folder = finished(work)
    (folder / "summary.json").unlink()
    shutil.rmtree(folder / "checkpoint")
    assert finished(work) == folder
    assert complete(folder)
    assert not failure(folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == [folder.name, f"{folder.name}.unfinished-1"]


@pytest.mark.parametrize(
    ("ended", "whole"),  # the second, whether a run that ended so would end so again
    [
        ("all rounds done", True),
        ("no device will ever be available again", True),
        ("diverged: train loss above 9", True),
        (reason(KeyboardInterrupt()), False),
        (reason(OSError("disk full")), False),
        (reason(zlib.error("damaged")), False),
        (reason(type("my_error", (Exception,), {})("odd")), False),
        (reason(type("Fehler_ß", (Exception,), {})()), False),
        ("nobody who can be asked can ever report", True),
        ("virtual time limit", True),
        ("12 trips in a row came to nothing", True),
        ("loss 0.25 is at most 0.3, as server.stop asks", True),
        ("no better accuracy than 0.5 in 3 evaluations, as server.stop asks", True),
        ("the budget of 5 kWh is spent", True),
        (cut_short(3), False),
    ],
)
def test_only_runs_that_ended_by_themselves_are_complete(ended, whole):
    """Summaries of earlier versions have the sentence alone."""
    assert is_complete({"ended_because": str(ended)}) == whole
    if isinstance(ended, Ending):
        assert is_complete({"ended": ended.kind, "ended_because": "in other words: once"}) == whole


def test_values_are_yaml_and_have_short_names():
    assert list(axis_of("a.b=1,fsl,{name: fsl, server_weight: 0.5}").values) == [1, "fsl", "fsl server_weight=0.5"]
    assert labelled([True, None, 2]) == "[true, none, 2]"
    for bad in ("a.b", "=1", "a=", "a=1,1", "a=[", "a=1,,2"):
        with pytest.raises(ScenarioError, match=r"accepted|twice"):
            axis_of(bad)


def test_a_wrong_variant_is_told_before_anything_runs(scenario, tmp_path):
    with pytest.raises(UsageError, match='did you mean "fedavg"'):
        compare(scenario, {"server.algorithm": ["fedavg", "fedavgg"]}, 2, out=tmp_path / "x")
    with pytest.raises(UsageError, match="no variant"):
        compare(scenario, {"server.algorithm": ["fedavg"]}, 2, out=tmp_path / "x", baseline="fsl")
    assert not (tmp_path / "x").exists()


def test_the_command_prints_and_writes(scenario, out, comparison, tmp_path, capsys):
    words = ["compare", str(scenario), "--vary", "server.algorithm=fedavg,fsl", "--set", "server.participation=uniform"]
    out = shutil.copytree(out, tmp_path / "runs")  # a folder takes the tables of one study
    words += ["--seeds", "3", "--out", str(out), "--jobs", "1"]
    words += ["--plot", str(tmp_path / "plot.svg"), "--against", "bytes"]
    assert main(words) == 0
    said = capsys.readouterr()
    assert "tiny: 2 variants, 3 seeds each" in said.out
    assert "their plans have one digest per seed" in said.out
    assert "server.algorithm fsl, seed 6: done" in said.err
    assert (out / "comparison.txt").read_text().strip() in said.out
    assert {"comparison.csv", "comparison.tex", "comparison.html", "runs.csv"} <= {path.name for path in out.iterdir()}
    assert "<svg" in (tmp_path / "plot.svg").read_text()
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["baseline"] == "fedavg"


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (["--seeds", "0"], "seeds: found 0 (accepted: how many, from 1 to 10,000"),
        (["--confidence", "1"], "--confidence 1"),
        (["--jobs", "2", "--address", "auto"], "one of the two"),
        (["--target", "80"], "--target 80 (accepted: an accuracy above 0 and up to 1, such as 0.8)"),
        (["--target", "nan"], "--target nan"),
        (["--target", "0"], "--target 0"),
        (["--clock-only", "--plot", "x.png"], "--plot draws accuracies, and --clock-only trains nothing"),
        (["--vary", "server.algorithm"], "KEY=VALUE,VALUE"),
        (["--metric", "last-round", "--window", "3"], "--metric and --window"),
        (["--fleet", "ray", "--clock-only"], "without --fleet"),
        (["--fleet", "ray", "--jobs", "2", "--vary", "server.algorithm=fedavg"], "--jobs 2"),
        (["--fleet", "local", "--actors", "2", "--vary", "server.algorithm=fedavg"], "--actors 2"),
        (["--vary", "seed=3,4"], "seed: a seed is not varied: every variant is run with the same seeds"),
        (["--vary", "server.rounds=1", "--vary", "server.rounds=2"], "server.rounds: varied twice"),
    ],
)
def test_mistakes_are_told(scenario, more, named, capsys):
    assert main(["compare", str(scenario), *more]) == 2
    assert named in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(BINARY is None, reason="no chromium on this machine (Debian: apt install chromium)")
def test_the_page_is_drawn(comparison, tmp_path):
    path = page.write(comparison, tmp_path / "page.html")

    async def go():
        async with opened(path) as (open_page, state):
            assert state == "2"
            assert "fsl" in await open_page.js("document.querySelector('table').innerText")
            return open_page.trouble, open_page.requests

    trouble, requests = asyncio.run(go())
    assert trouble == []
    assert [url for url in requests if not url.startswith("data:")] == [path.as_uri()]


PATCHES = """Object.fromEntries([...document.querySelectorAll('section tbody tr')]
  .filter((row) => row.querySelector('i'))
  .map((row) => [row.cells[0].innerText.trim(), row.querySelector('i').style.background]))"""
POINTS = """(() => {
  const models = Bokeh.documents.flatMap((d) => d.roots()).flatMap((r) => [...r.references()]);
  const source = models.find((m) => m.type === 'ColumnDataSource' && m.columns().includes('dash'));
  const patch = document.createElement('i');
  const shown = (color) => { patch.style.background = color; return patch.style.background; };
  return Object.fromEntries([...source.get_column('y')].map((name, k) => [name, shown(source.get_column('color')[k])]));
})()"""


@pytest.mark.skipif(BINARY is None, reason="no chromium on this machine (Debian: apt install chromium)")
@pytest.mark.parametrize(
    "baseline",
    [pytest.param("fedavg", marks=pytest.mark.slow), "fsl", pytest.param("scaffold", marks=pytest.mark.slow)],
)
def test_differences_have_the_colours_of_the_table_with_any_baseline(baseline, scenario, out, comparison, tmp_path):
    vary = {"server.algorithm": ["fedavg", "fsl", "scaffold"]}
    changes = ["server.participation=uniform"]
    found = compare(scenario, vary, 3, out=out, overrides=changes, baseline=baseline, jobs=1)
    path = page.write(found, tmp_path / "page.html")

    async def go():
        async with opened(path) as (open_page, _):
            saved = await open_page.js("fedactors.table('differences')[0]")
            return await open_page.js(PATCHES), await open_page.js(POINTS), saved, open_page.trouble

    patches, points, saved, trouble = asyncio.run(go())
    assert not {"color", "dash"} & set(saved)
    assert trouble == []
    assert set(patches) == {"fedavg", "fsl", "scaffold"}
    assert points == {name: color for name, color in patches.items() if name != baseline}


@pytest.mark.slow
def test_actors_of_ray_compute_the_same_runs(scenario, out, comparison, tmp_path, capsys):
    """Two actors for each run compute what one process computed: the same folders, the same bits."""
    words = ["compare", str(scenario), "--vary", "server.algorithm=fedavg,fsl", "--set", "server.participation=uniform"]
    assert main([*words, "--seeds", "1", "--actors", "2", "--out", str(tmp_path)]) == 0
    for name in ("fedavg", "fsl"):
        here = comparison.variants[name][0].folder
        digests = [json.loads((base / here.name / "summary.json").read_text())["digests"] for base in (tmp_path, out)]
        assert digests[0] == digests[1]


@pytest.mark.slow
def test_a_cluster_computes_the_same_runs(scenario, out, comparison, tmp_path):
    from fedactors.fleet.ray.ray_start import connected

    changes = ("server.participation=uniform", 'server.algorithm="fsl"')
    work = [StudyRun(scenario, (*changes, f"seed={seed}"), tmp_path) for seed in (5, 6)]
    with connected(None):
        folders = list(on_cluster(work, "auto"))
    for folder, row in zip(folders, comparison.variants["fsl"][:2], strict=True):
        assert folder.name == row.folder.name
        there, here = (json.loads((path / "summary.json").read_text())["digests"] for path in (folder, row.folder))
        assert there == here


@pytest.mark.slow
def test_a_comparison_by_the_clock_alone_tells_participation_time_and_traffic(tmp_path, capsys):
    words = ["compare", "quickstart", "--clock-only", "--vary", "server.deadline=20s,40s", "--seeds", "2"]
    assert main([*words, "--set", "server.rounds=2", "--out", str(tmp_path)]) == 0
    _, answer, _, heads, *rows = capsys.readouterr().out.splitlines()[:6]
    assert "has the highest heard of asked" in answer
    assert heads.split("  ")[-1].strip() == "traffic"
    assert "heard of asked" in heads
    assert "accuracy" not in heads
    assert [row.split()[0] for row in rows] == ["20s", "40s"]
    assert all("-" not in row.split() for row in rows)


@pytest.mark.parametrize("where", [{"address": "127.0.0.1:1"}, {"fleet": "ray"}], ids=["cluster", "ray"])
def test_the_clock_alone_is_not_played_elsewhere(where, scenario, tmp_path):
    with pytest.raises(ClusterError, match="the clock alone is replayed on this machine"):
        compare(scenario, {"server.deadline": ["5s", "6s"]}, 1, out=tmp_path / "x", clock_only=True, **where)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(("count", "said"), [(0, "0 seeds"), (1, "1 seed"), (2, "2 seeds")])
def test_one_has_no_plural(count, said):
    assert comparison_tables.counted(range(count), "seed") == said


def test_rates_of_the_server_that_differ_are_told_below_the_answer(scenario, out, comparison, tmp_path):
    """sqrt(6) = 2.45."""
    [note] = comparison_tables.cautions(comparison)
    assert note.startswith("Note: fsl and scaffold step with global_lr = sqrt(cohort) = 2.45, fedavg with 1: to")
    assert comparison_tables.text(comparison).splitlines()[2] == note
    assert note in page.write(comparison, tmp_path / "page.html").read_text(encoding="utf-8")
    vary = {"server.algorithm": ["fedavg", {"name": "scaffold", "global_lr": 1}]}
    same = compare(scenario, vary, 1, out=out, overrides=["server.participation=uniform"], jobs=1)
    assert comparison_tables.cautions(same) == []


def test_weights_that_no_variant_names_are_told_where_they_differ(scenario, out):
    """With `participation` named for all variants (as above), nothing is told."""
    vary = {"server.algorithm": ["fedavg", {"name": "scaffold", "global_lr": 1}]}
    found = compare(scenario, vary, 1, out=out, jobs=1)
    [note] = comparison_tables.cautions(found)
    assert note.startswith("Note: updates have unlike weights by default (samples with fedavg; uniform with scaffold)")


def test_a_target_that_the_first_evaluation_reaches_says_nothing(comparison):
    """Accuracies of .12, .30, .11 at the end mean a target of .09 (90 % of .11): already .12 was more than that."""

    def rows(*accuracy):
        [one, *_] = comparison.rows
        column = np.array(accuracy)
        there = {name: values[: len(column)] for name, values in one.records.metrics.items()}
        return [replace(one, records=replace(one.records, metrics=there | {"accuracy": column}))]

    assert common_target(rows(0.12, 0.30, 0.11), None) is None
    assert common_target(rows(0.0, 0.01), None) is None, "a next word that is hardly ever right: 90 % are 0 in percent"
    assert common_target(rows(np.nan, 0.12, 0.50), None) == 0.45
    assert common_target([*rows(0.12, 0.5), *rows(0.48, 0.5)], None) == 0.45, "the mean of first evaluations is .30"
    assert common_target(rows(np.nan), None) is None
    none = replace(comparison, target=None)
    said = "No target: fedavg has 90 % of its accuracy at the end when it is first evaluated; --target names one."
    assert said in comparison_tables.notes(none)
    assert not any(note.startswith("No target") for note in comparison_tables.notes(comparison))


@pytest.mark.slow
def test_variants_that_lasted_unlike_times_are_told_below_the_answer(scenario, out, comparison):
    """Rounds that last until their deadline: 4 rounds take 20 s or 40 s. At equal time nothing is told."""
    fixed = ["server.participation=uniform", "server.close_early=false"]
    vary = {"server.deadline": ["5s", "10s"]}
    found = compare(scenario, vary, 2, out=out, overrides=fixed, jobs=1)
    [note] = comparison_tables.cautions(found)
    assert note == (
        "Note: the variants lasted 20.0 s (5s) to 40.0 s (10s) of virtual time for the same rounds; at equal time:"
        " --set server.until=20.0s --set server.rounds=100000."
    )
    assert note in comparison_tables.text(found)
    assert "virtual time" in comparison_tables.heads(found)
    equal = compare(scenario, vary, 2, out=out, overrides=[*fixed, "server.until=20s", "server.rounds=1000"], jobs=1)
    assert [one.records.rounds for one in equal.rows] == [4, 4, 2, 2]
    assert comparison_tables.cautions(equal) == []
    beyond = compare(scenario, vary, 1, out=out, overrides=[*fixed, "server.until=22s", "server.rounds=1000"], jobs=1)
    assert [one.records.rounds for one in beyond.rows] == [5, 3], "rounds that begin at 20 s end at 25 s and at 30 s"
    assert comparison_tables.cautions(beyond) == [
        "Note: the variants lasted 25.0 s (5s) to 30.0 s (10s) of virtual time, and figures are those at these ends: a"
        " round that is under way at server.until is finished; at equal time: --plot FILE --against virtual, or shorter"
        " rounds (server.deadline)."
    ]
    other = compare(scenario, {"server.rounds": [2, 4]}, 1, out=out, overrides=fixed, jobs=1)
    assert comparison_tables.cautions(other) == [
        "Note: the variants lasted 10.0 s (2) to 20.0 s (4) of virtual time and 2 to 4 rounds; at equal time: --set"
        " server.until=10.0s --set server.rounds=100000."
    ]
    assert not any("virtual time" in one for one in comparison_tables.cautioned(comparison))
    replayed = compare(scenario, vary, 1, out=out, overrides=fixed, jobs=1, clock_only=True)
    assert comparison_tables.cautions(replayed) == [], "where nothing is trained, no variant is called the best"


@pytest.mark.parametrize("against", ["round", "virtual", "bytes", "joules"])
def test_a_picture_shows_means_of_seeds_in_their_bands(comparison, against):
    """One seed's runs are curves of their own: the picture of that seed alone is its accuracies."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    alone = replace(comparison, variants={name: rows[:1] for name, rows in comparison.variants.items()})
    axes = alone.plot(against=against)
    assert [line.get_label() for line in axes.lines] == list(comparison.variants)
    for line, [row] in zip(axes.lines, alone.variants.values(), strict=True):
        assert line.get_ydata().tolist() == row.records.metrics["accuracy"].tolist()
        name = {"round": "round", "virtual": "virtual time", "bytes": "traffic", "joules": "energy"}[against]
        assert axes.get_xlabel().partition(" (")[0] == name
    seconds = [row.records.metrics["virtual_seconds"] for row in comparison.variants["fsl"]]
    if against == "virtual":
        drawn = comparison.plot(against=against).lines[1].get_xdata()
        assert drawn[0] == max(one[0] for one in seconds)
        assert drawn[-1] == min(one[-1] for one in seconds)
    pyplot.close("all")


def test_what_a_picture_is_drawn_against_is_known(comparison, scenario, capsys):
    pytest.importorskip("matplotlib.pyplot")
    with pytest.raises(RunFolderError, match='no axis "time"'):
        comparison.plot(against="time")
    assert main(["compare", str(scenario), "--vary", "server.deadline=5s,10s", "--against", "virtual"]) == 2
    assert "--against virtual says what a picture shows (accepted: with --plot FILE)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("vary", "seeds", "said"),
    [
        ({"server.schedule.lr": [0.1]}, 0, "seeds: found 0 (accepted: how many, from 1 to 10,000, or a list of them"),
        ({"server.schedule.lr": [0.1]}, 10_001, "seeds: found 10,001 (accepted: how many"),
        ({"server.schedule.lr": [0.1]}, [], "seeds: found 0 (accepted: how many"),
        ({"server.schedule.lr": [0.1]}, [1, 1], "seeds: found 1 twice (accepted: how many"),
        ({"server.schedule.lr": []}, 1, "server.schedule.lr: no values"),
        ({}, 1, "nothing is varied"),
    ],
)
def test_seeds_and_values_from_python_are_checked_as_those_of_a_command(vary, seeds, said, scenario, tmp_path):
    with pytest.raises(ScenarioError) as told:
        compare(scenario, vary, seeds, out=tmp_path / "out", jobs=1)
    assert said in str(told.value)
    assert not (tmp_path / "out").exists()

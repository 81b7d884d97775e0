"""The page says what the records say, whole or interrupted, escapes every name, and stays small."""

import html
import json
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedactors.cli.main import main
from fedactors.errors import RunFolderError
from fedactors.report.curves import learning
from fedactors.report.html import write, write_many
from fedactors.report.page_sections import warnings
from fedactors.report.palette import RUNS
from fedactors.report.timeline.device_timeline import timeline
from fedactors.run_files.records import read
from tests.report.conftest import HOSTILE, made_up

FIVE_MB = 5_000_000


def text_of(path):
    """Return the page without the library, the data and the styles."""
    page = path.read_text(encoding="utf-8")
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<(script|style).*?</\1>|<[^>]*>", " ", page, flags=re.S)))


def charts_of(path):
    page = path.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="charts">(.*?)</script>', page, re.S)
    if not found:
        return []
    shown = json.loads(found.group(1))
    return [*shown["items"], *([{"target_id": "timeline"}] if shown["timeline"] else [])]


def test_a_run_is_told_whole(finished):
    page, summary = write(finished), json.loads((finished / "summary.json").read_text())
    assert page == finished / "report.html"
    text = text_of(page)
    assert f"{summary['final']['accuracy']:.1%}" in text
    assert f"{summary['heard']:,} of {summary['asked']:,} asked" in text
    assert "seed 5" in text
    assert "Ended because: all rounds done" in text
    assert summary["digests"]["model"] in text
    assert "ActorDiedError" in text
    assert re.search(r"deadline: 5s?\b", text)
    for outcome, count in summary["outcomes"].items():
        assert (re.search(rf" {outcome.replace('_', ' ')} +{count:,} ", text) is not None) == (count > 0)
    drawn = [item["target_id"] for item in charts_of(page)]
    assert drawn == ["accuracy", "loss", "rounds", "steps", "clients", "traffic", "timeline"]


def test_the_axis_of_losses_names_the_loss_of_all_runs(finished):
    run = read(finished)
    squared = replace(run, summary=run.summary | {"loss_function": "squared"})
    old = replace(run, summary={})

    def label(*runs):
        return learning(runs, "ab"[: len(runs)])[1].model.yaxis.axis_label

    assert label(run, run) == "loss (cross entropy)"
    assert label(squared) == "loss (squared)"
    assert label(run, squared) == label(squared, old) == label(old) == "loss"


def test_a_replay_leaves_out_what_was_not_learned(replayed):
    page = write(replayed)
    assert [item["target_id"] for item in charts_of(page)] == ["rounds", "steps", "clients", "traffic", "timeline"]
    text = text_of(page)
    assert "Learning" not in text
    assert "Final accuracy" not in text
    assert "Real faults" not in text


def test_an_interrupted_run_is_reported_as_far_as_it_got(finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "cut")
    for name in ("summary.json", "plans.parquet", "orders.parquet", "faults.jsonl"):
        (folder / name).unlink()
    page = write(folder)
    assert "This run was interrupted: summary.json, plans.parquet, orders.parquet" in text_of(page)
    assert [item["target_id"] for item in charts_of(page)] == ["accuracy", "loss", "rounds", "traffic"]


def test_rounds_that_are_not_those_of_the_summary_are_told(finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "cut")
    lines = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_text("".join(lines[:2]))
    said = warnings(read(folder))
    assert said == [f"Damaged: metrics.jsonl has 2 rounds, and summary.json counts {len(lines)}."]
    assert warnings(read(finished)) == []


def test_a_run_that_wrote_nothing_but_its_scenario_has_a_page(finished, tmp_path):
    shutil.copy(finished / "scenario.yaml", tmp_path / "scenario.yaml")
    (tmp_path / "metrics.jsonl").touch()
    assert "interrupted" in text_of(write(tmp_path))


def test_names_are_text(finished):
    page = write(finished).read_text(encoding="utf-8")
    assert HOSTILE not in page
    assert "<img" not in page
    assert html.escape("<img src=x onerror=") in page
    assert page.count("<script") == page.count("</script>")
    assert "alert(1)</script" not in page


def test_a_run_has_its_own_page_wherever_it_is_written(finished, tmp_path, capsys):
    run = shutil.copytree(finished, tmp_path / "run", ignore=shutil.ignore_patterns("report.html"))
    assert main(["report", str(run), "--out", str(tmp_path / "one.html")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'one.html'}\n"
    page = (tmp_path / "one.html").read_text(encoding="utf-8")
    assert f"<h1>{html.escape(read(run).name)}</h1>" in page
    assert not (run / "report.html").exists()
    assert text_of(tmp_path / "one.html") == text_of(write(run))


@pytest.mark.parametrize("words", [["--window", "3"], ["--metric", "last-round"]])
def test_rounds_are_averaged_to_compare_runs_only(finished, words, capsys):
    assert main(["report", str(finished), *words]) == 2
    assert f"{words[0]}: the page of one run shows all of its rounds" in capsys.readouterr().err


def test_runs_are_compared(finished, replayed, tmp_path):
    page = write_many([finished, replayed], tmp_path / "both.html")
    text = text_of(page)
    assert "2 runs compared" in text
    assert "their plans have one digest" in text
    assert str(finished) in text
    assert str(replayed) in text
    assert [item["target_id"] for item in charts_of(page)] == ["accuracy", "loss"]


def test_lines_of_the_same_colour_differ_in_the_table_as_in_the_chart(tmp_path):
    """Eight colours, then dashes: the first and the ninth run have one colour."""
    folders = [made_up(tmp_path / f"run-{k}", rounds=3, cohort=4, devices=9) for k in range(9)]
    page = write_many(folders, tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count(f'<i class="solid" style="background:{RUNS[0]}">') == 1
    assert page.count(f'<i class="dashed" style="background:{RUNS[0]}">') == 1
    assert '<i class="dotted"' not in page


@pytest.mark.parametrize(
    ("more", "accuracy", "said"),
    [
        ([], 1 - (1 / 20 + 1 / 21) / 2, "means over the last tenth of the rounds"),
        (["--metric", "last-round"], 1 - 1 / 21, "of the last round"),
        (["--window", "3"], 1 - (1 / 19 + 1 / 20 + 1 / 21) / 3, "means over the last 3 rounds"),
    ],
)
def test_what_is_compared_is_chosen(tmp_path, capsys, more, accuracy, said):
    """Accuracies of the made-up runs are 1 - 1 / (round + 1), of 20 rounds."""
    folders = [str(made_up(tmp_path / name, rounds=20, cohort=4, devices=9)) for name in ("a", "b")]
    assert main(["report", *folders, "--out", str(tmp_path / "page.html"), *more]) == 0
    text = text_of(tmp_path / "page.html")
    assert f"has the highest accuracy, {accuracy:.2%}, 0.00 points above" in text
    assert said in text
    assert main(["report", *folders, "--window", "0"]) == 2
    assert "--window 0" in capsys.readouterr().err


@pytest.mark.slow
def test_a_million_orders_fit(tmp_path):
    folder = made_up(tmp_path / "big", rounds=5_000, cohort=200, devices=100_000)
    began = time.perf_counter()
    page = write(folder)
    assert time.perf_counter() - began < 20
    assert page.stat().st_size < FIVE_MB
    text = text_of(page)
    assert re.search(r"2,\d\d\d of 100,000 devices have a row: the 100 most asked,", text)
    assert "2,000 of 5,000 rounds drawn" in text
    assert "Each bar is the mean of 5 rounds." in text
    assert "500 of 100,000 devices drawn" in text


@pytest.mark.slow
def test_trips_that_do_not_fit_are_cut_in_time(tmp_path, monkeypatch):
    monkeypatch.setattr("fedactors.report.timeline.device_timeline.BYTES", 100_000)
    page = write(made_up(tmp_path / "busy", rounds=3_000, cohort=10, devices=10))
    assert re.search(r"Their first \d{1,2},\d{3} of 30,000 trips are drawn; counts are of all.", text_of(page))


def test_rounds_whose_beginnings_alone_do_not_fit_are_cut_in_time(tmp_path, monkeypatch):
    """Beginnings at odd moments take three bytes each: 3,000 of them are more than the 5,000 bytes of all trips."""
    monkeypatch.setattr("fedactors.report.timeline.device_timeline.BYTES", 5_000)
    folder = made_up(tmp_path / "long", rounds=3_000, cohort=1, devices=10)
    plans = pq.read_table(folder / "plans.parquet").to_pydict()
    odd = np.random.default_rng(2).integers(0, 60_000_000_000, 3_000)
    pq.write_table(pa.table(plans | {"opened": plans["opened"] - odd}), folder / "plans.parquet")
    trips = timeline(read(folder)).data["trips"]
    lengths = dict(trips["columns"])
    assert len(trips["blob"]) <= 5_000
    assert 100 < lengths["version"] == lengths["opened"] < 1_000


def test_a_folder_that_cannot_be_written_is_an_error(finished, tmp_path):
    with pytest.raises(RunFolderError, match="cannot be written"):
        write_many([finished], tmp_path / "absent" / "page.html")


def test_reporting_imports_neither_torch_nor_ray(replayed):
    code = (
        "import sys; from fedactors.report.html import write; write(sys.argv[1]);"
        "print(sorted({'torch', 'ray', 'simpy', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(replayed)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

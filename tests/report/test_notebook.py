"""Frames are the tables of the run folder, and pictures show their numbers."""

import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest

import fedactors
from fedactors import Scenario
from fedactors.errors import RunFolderError
from fedactors.report.measures import byte_unit, time_unit
from fedactors.simulation.replay import Replay

pytest.importorskip("pandas", reason="pandas is not installed (pip install fedactors[notebook])")
pyplot = pytest.importorskip(
    "matplotlib.pyplot", reason="matplotlib is not installed (pip install fedactors[notebook])"
)


@pytest.fixture(autouse=True)
def _no_window():
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def run(finished):
    return fedactors.load_run(finished)


def test_frames_are_the_tables(run, finished):
    orders = pq.read_table(finished / "orders.parquet")
    assert len(run.frames.orders) == orders.num_rows == run.summary["asked"]
    assert run.frames.orders.finished.to_numpy() == pytest.approx(orders["finished"].to_numpy() / 1e9)
    assert run.frames.orders.outcome.value_counts().to_dict() == {k: v for k, v in run.summary["outcomes"].items() if v}
    assert run.frames.plans.ready.iloc[-1] == pytest.approx(run.summary["virtual_seconds"])
    metrics = run.frames.metrics
    assert metrics.index.tolist() == [1, 2, 3, 4, 5, 6]
    assert metrics.accuracy.iloc[-1] == run.summary["final"]["accuracy"]
    assert metrics.filter(like="outcomes.").sum().sum() == run.summary["asked"]


def test_devices_that_never_arrive_or_depart_have_no_time_for_it(tmp_path):
    """Device a is on for the first hour; b never is, and so never belongs to the population."""
    (tmp_path / "never.csv").write_text("device,on,off,first,last\na,0h,1h,0,2h\nb,,,,\n")
    recorded = {"name": "trace", "path": str(tmp_path / "never.csv"), "at_end": "depart"}
    scenario = Scenario.load({
        "name": "never", "seed": 1, "task": {"dataset": "digits", "model": "logistic", "partition": "iid"},
        "population": [
            {"name": "recorded", "count": 2, "availability": recorded, "departs_after": "10min"},
            {"name": "always", "count": 1},
        ],
        "server": {"rounds": 1, "deadline": "5s"},
    })  # fmt: skip
    found = fedactors.run(scenario, tmp_path / "run", fleet="local", report=False).frames.clients
    stays = pq.read_table(tmp_path / "run/clients.parquet").select(["arrive", "depart"])
    assert sorted(zip(*(stays[name].to_pylist() for name in stays.column_names), strict=True)) == [
        (0, 4200 * 10**9), (0, 2**62), (2**62, 2**62)
    ]  # fmt: skip
    assert found.sort_values(["arrive", "depart"]).fillna(-1)[["arrive", "depart"]].to_numpy().tolist() == [
        [0, 4200], [0, -1], [-1, -1]
    ]  # fmt: skip


@pytest.mark.parametrize("against", ["round", "virtual", "bytes", "wall"])
def test_curves_show_the_metrics(run, finished, against):
    axes = run.plot_accuracy(against=against, color="red")
    [line] = axes.lines
    rows = [json.loads(text) for text in (finished / "metrics.jsonl").read_text().splitlines()]
    assert line.get_ydata().tolist() == [row["accuracy"] for row in rows]
    seconds = [(row["virtual_seconds"], row["wall_seconds"]) for row in rows]
    virtual, wall = np.array(seconds).T
    moved = np.cumsum([row["bytes_down"] + row["bytes_up"] for row in rows])
    wanted = {"round": np.arange(1, 7), "virtual": virtual, "bytes": moved, "wall": wall}[against]
    unit, scale = {"round": ("", 1), "bytes": byte_unit(moved[-1])}.get(against) or time_unit(wanted[-1])
    assert line.get_xdata() == pytest.approx(wanted / scale)
    assert axes.get_xlabel().endswith(f"({unit})" if unit else "round")
    assert run.plot_loss(axes) is axes
    assert len(axes.lines) == 2


@pytest.mark.parametrize("name", ["accuracy", "loss", "participation", "steps", "hours", "timeline"])
def test_labels_lie_within_the_picture(run, name):
    axes = getattr(run, f"plot_{name}")()
    axes.figure.canvas.draw()
    page = axes.figure.bbox
    for label in (axes.xaxis.label, axes.yaxis.label):
        box = label.get_window_extent()
        assert page.x0 <= box.x0 < box.x1 <= page.x1
        assert page.y0 <= box.y0 < box.y1 <= page.y1


CUT = """
name: cut
task: {dataset: digits, model: logistic, partition: iid}
population:
  - {name: done, count: 1, FAST, compute: {per_sample: 1ms}}
  - {name: loads, count: 1, network: {down: 100 B/s, up: 1 MB/s, latency: 0s}, NAIVE, compute: {per_sample: 1ms}}
  - {name: computes, count: 1, FAST, NAIVE, compute: {per_sample: 200ms}}
  - {name: sends, count: 1, network: {down: 1 MB/s, up: 100 B/s, latency: 0s}, NAIVE, compute: {per_sample: 1ms}}
  - {name: cannot, count: 1, FAST, compute: {per_sample: 3s}}
server:
  {rounds: 2, cohort: all, deadline: 10s, local: {epochs: 1, batch: 10}, data: {name: iid, samples: 50}}
"""


def test_rounds_and_the_stage_in_which_a_trip_was_cut(tmp_path):
    """2,600 bytes (65 x 10 float32) take 26 s at 100 B/s, and 1,797 / 5 samples at 0.2 s take 72 s: more than 10 s.

    A device that knows of the deadline does not begin with a step of 10 samples, which would take 30 s.
    """
    words = {"FAST": "network: {down: 1 MB/s, up: 1 MB/s, latency: 0s}", "NAIVE": "deadline_aware: false"}
    file = tmp_path / "cut.yaml"
    file.write_text(CUT.replace("FAST", words["FAST"]).replace("NAIVE", words["NAIVE"]))
    frames = fedactors.replay(Scenario.load(file), tmp_path / "replay").frames
    assert frames.plans["round"].tolist() == [1, 2]
    assert frames.orders["round"].tolist() == [1] * 5 + [2] * 5
    assert frames.orders.outcome[:5].tolist() == ["complete", "late", "late", "late", "too_slow"]
    assert frames.orders.cut_in[:5].fillna("-").tolist() == ["-", "download", "compute", "upload", "compute"]
    late = frames.orders.iloc[2]
    assert 0 < late.steps < late.wanted
    assert late.computed == late.finished == 10


def test_what_is_not_there_is_told(run, replayed, finished, tmp_path):
    killed = shutil.copytree(finished, tmp_path / "killed")
    for name in ("summary.json", "orders.parquet"):
        (killed / name).unlink()
    with (killed / "metrics.jsonl").open("a") as file:
        file.write('{"round": 7, "accu')
    frames = fedactors.load_run(killed).frames
    assert len(frames.metrics) == 6
    with pytest.raises(RunFolderError, match=f"not there: this run was stopped.*`fedactors resume {killed}`"):
        _ = frames.orders
    with pytest.raises(RunFolderError, match=r"client_metrics\.parquet: not there: it is written where .*evaluation"):
        _ = run.frames.client_metrics
    with pytest.raises(RunFolderError, match=r"clients\.parquet: not there: a replay writes none"):
        _ = fedactors.load_run(replayed).frames.clients
    assert (run.frames.weights["round"] == run.frames.weights["version"] + 1).all()


def test_bars_add_up(run):
    summary = run.summary
    for axes in (run.plot_participation(), run.plot_steps()):
        assert sum(bar.get_height() for bar in axes.patches) == pytest.approx(summary["asked"])
    spans = run.plot_timeline(devices=100).patches
    assert len(spans) == summary["asked"]
    assert max(bar.get_x() + bar.get_width() for bar in spans) == pytest.approx(run.frames.orders.finished.max())
    assert len(run.plot_timeline(devices=3).patches) < summary["asked"]
    assert run.plot_hours().get_xlabel() == "hour of the virtual day"


def test_a_replay_has_no_accuracy_and_what_was_not_written_cannot_be_shown(replayed, run):
    with pytest.raises(RunFolderError, match="never evaluated"):
        fedactors.load_run(replayed).plot_accuracy()
    with pytest.raises(RunFolderError, match='no axis "joules"'):
        run.plot_accuracy(against="joules")
    with pytest.raises(RunFolderError, match="nothing was written"):
        Replay(None, {}).plot_steps()

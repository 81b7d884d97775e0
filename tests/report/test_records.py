"""Records are read back as they were written; what is damaged is named with its file and line."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from fedactors.cli.main import main
from fedactors.errors import RunFolderError
from fedactors.run_files.records import OUTCOMES, read


def test_reads_back_what_a_run_wrote(finished):
    records, summary = read(finished), json.loads((finished / "summary.json").read_text())
    counts = np.bincount(records.orders["outcome"], minlength=len(OUTCOMES))
    assert dict(zip(OUTCOMES, counts.tolist(), strict=True)) == summary["outcomes"]
    assert records.rounds == summary["plans"] == len(records.plans["version"]) == 6
    assert records.metrics["accuracy"][-1] == summary["final"]["accuracy"]
    assert [group.count for group in records.groups] == [12, 8]
    assert records.devices == 20
    assert records.missing == ()
    assert records.faults[0]["cause"] == "ActorDiedError"


def test_a_replay_has_no_accuracy(replayed):
    records = read(replayed)
    assert np.isnan(records.metrics["accuracy"]).all()
    assert len(records.orders["client"]) == records.summary["asked"]


def test_an_interrupted_run_shows_what_is_there(finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "cut")
    for name in ("summary.json", "plans.parquet", "orders.parquet"):
        (folder / name).unlink()
    lines = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_text("".join(lines[:3]) + lines[3][:20])  # killed while it wrote the fourth
    records = read(folder)
    assert records.rounds == 3
    assert records.missing == ("summary.json", "plans.parquet", "orders.parquet")
    assert len(records.orders["client"]) == len(records.plans["version"]) == 0


def _cut_parquet(folder):
    path = folder / "orders.parquet"
    path.write_bytes(path.read_bytes()[:-200])


def _bad_line(folder):
    path = folder / "metrics.jsonl"
    path.write_text(path.read_text().replace('{"round": 2', '{"round" 2'))


def _bad_number(folder):
    path = folder / "metrics.jsonl"
    path.write_text(path.read_text().replace('"asked": 10', '"asked": "ten"', 1))


def _bad_summary(folder):
    (folder / "summary.json").write_text('{\n"name": \n}')


def _bad_figure(folder):
    path = folder / "summary.json"
    path.write_text(path.read_text().replace('"down": ', '"down": "much", "more": '))


def changed(**figures):
    def change(folder):
        path = folder / "summary.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | figures))

    return change


def _bad_scenario(folder):
    (folder / "scenario.yaml").write_text("name: x\n  population: [\n")


def _wrong_table(folder):
    shutil.copy(folder / "plans.parquet", folder / "orders.parquet")


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (_cut_parquet, "orders.parquet: damaged"),
        (_bad_line, "metrics.jsonl, line 2: damaged"),
        (_bad_number, "metrics.jsonl, line 1: asked: found 'ten'"),
        (_bad_summary, "summary.json, line 3: damaged"),
        (_bad_figure, "summary.json: bytes.down: found 'much' (accepted: a number)"),
        (changed(to_accuracy=3.5), "summary.json: to_accuracy: found 3.5 (accepted: a list)"),
        (changed(to_accuracy=[7]), "summary.json: to_accuracy.0: found 7 (accepted: a JSON object)"),
        (changed(to_accuracy=[{"round": []}]), "summary.json: to_accuracy.0.round: found [] (accepted: a number)"),
        (changed(outcomes={"late": float("inf")}), "summary.json: outcomes.late: found inf (accepted: a finite"),
        (changed(devices=float("nan")), "summary.json: devices: found nan (accepted: a finite number)"),
        (changed(joules="much"), "summary.json: joules: found 'much' (accepted: a number)"),
        (changed(digests=[1]), "summary.json: digests: found [1] (accepted: a JSON object)"),
        (_bad_scenario, "scenario.yaml, line 2: damaged"),
        (_wrong_table, "orders.parquet: damaged: no column client"),
    ],
)
def test_damage_is_named(finished, tmp_path, damage, named):
    folder = shutil.copytree(finished, tmp_path / "damaged")
    damage(folder)
    with pytest.raises(RunFolderError) as told:
        read(folder)
    assert named in str(told.value)


def test_refuses_what_is_not_a_run_folder(tmp_path):
    with pytest.raises(RunFolderError, match="nothing there"):
        read(tmp_path / "absent")
    with pytest.raises(RunFolderError, match="not a run folder: it holds none of scenario"):
        read(tmp_path)
    page = tmp_path / "comparison.html"
    page.touch()
    with pytest.raises(RunFolderError, match=f"it is a study's, whose page is {page}"):
        read(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(RunFolderError, match="a file"):
        read(tmp_path / "file")


@pytest.mark.parametrize("rounds", [0, 3])
def test_a_run_in_which_no_time_passed_is_drawn(rounds, replayed, tmp_path):
    """Of no round, or of rounds that all end when the run begins: folders of others may hold either."""
    folder = shutil.copytree(replayed, tmp_path / "run")
    for name in ("plans.parquet", "orders.parquet"):
        table = pq.read_table(folder / name)
        table = table.filter(pc.less(table["version"], rounds))
        for column in ("opened", "closed", "ready", "started", "downloaded", "computed", "finished"):
            if column in table.column_names:
                table = table.set_column(
                    table.column_names.index(column), table.field(column), pa.array([0] * len(table), pa.int64())
                )
        pq.write_table(table, folder / name)
    lines = (folder / "metrics.jsonl").read_text().splitlines()[:rounds]
    (folder / "metrics.jsonl").write_text("".join(f"{line}\n" for line in lines))
    assert main(["report", str(folder)]) == 0
    assert ("Device by device" in (folder / "report.html").read_text()) == bool(rounds)


def test_a_column_of_one_value_takes_no_memory_for_each_round(tmp_path):
    """Of 3,000 rounds: every column is as the rows have it, and the three that vary take eight bytes a round."""
    rows = [{"round": k, "asked": 4, "loss": 1 / k, "outcomes": {"late": k % 2}} for k in range(1, 3_001)]
    (tmp_path / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    metrics = read(tmp_path, tables=False).metrics
    for name in ("round", "asked", "loss"):
        assert metrics[name].tolist() == [row[name] for row in rows]
    assert metrics["late"].tolist() == [k % 2 for k in range(1, 3_001)]
    assert np.isnan(metrics["accuracy"]).all()
    assert len(metrics["accuracy"]) == 3_000
    assert [name for name, column in metrics.items() if column.strides != (0,)] == ["round", "loss", "late"]

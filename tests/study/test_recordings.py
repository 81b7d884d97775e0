"""One scenario over several recordings: what becomes of the clients asked, by hand, and what a user can mistype."""

import csv
import json
from pathlib import Path

import pytest

from fedactors.cli.main import main
from fedactors.errors import UsageError
from fedactors.plan import Outcome
from fedactors.scenario.model import Scenario
from fedactors.study import incompleteness
from fedactors.study.recordings_axis import recordings_axis, replay_each

SCENARIO = """
name: windows
seed: 1
task: {dataset: synthetic, model: logistic, partition: {name: iid, samples: 10}}
population:
  - name: phones
    count: 4
    availability: {name: trace, path: never.csv, when: charging}
    compute: {per_sample: 1s}
    network: {down: 1 GB/s, up: 1 GB/s}
server: {rounds: 2, cohort: all, deadline: 8s, close_early: false, local: {epochs: 1, batch: 5}}
"""
HEAD = "device,on_s,off_s\n"
ALL_DAY = HEAD + "".join(f"d{k},0,86400\n" for k in range(4))
# two of four devices go off after 4 s, before the first of their two steps of 5 s is done, and are back too late
HALF = HEAD + "d0,0,86400\nd1,0,86400\nd2,0,4\nd2,500,86400\nd3,0,4\nd3,500,86400\n"
QUICK = ["--set", "server.deadline=12s"]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenario.yaml").write_text(SCENARIO, encoding="utf-8")
    for name, text in (("all_day.csv", ALL_DAY), ("half.csv", HALF)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def table_of(folder):
    return list(csv.DictReader((Path(folder) / "incompleteness.csv").read_text(encoding="utf-8").splitlines()))


def test_what_becomes_of_the_clients_by_hand(files):
    """Work of 10 s in steps of 5 s. Deadline 8 s: every device gets one of two steps done, all day: all partial.

    With 12 s all are complete; where two of the four go off after 4 s and stay off, these two miss the first round,
    and the second one asks the other two only: of 6 asked 4 complete and 2 offline. Updates (2, 2, 0, 0): Gini 1/2.
    """
    rows = replay_each("scenario.yaml", ["all_day.csv", "half.csv"], out="slow", jobs=1)
    all_day, half = incompleteness.places(rows)
    assert all_day.at == ("all_day.csv",)
    assert (all_day.rounds, all_day.asked, all_day.heard, all_day.gini) == (2, 8, 1.0, 0.0)
    assert all_day.shares[Outcome.PARTIAL] == 1.0
    rows = replay_each(
        "scenario.yaml", ["all_day.csv", "half.csv"], out="fast", overrides=["server.deadline=12s"], jobs=1
    )
    all_day, half = incompleteness.places(rows)
    assert all_day.shares[Outcome.COMPLETE] == 1.0
    assert half.asked == 6
    assert half.shares[Outcome.COMPLETE] == pytest.approx(4 / 6)
    assert half.shares[Outcome.OFFLINE] == pytest.approx(2 / 6)
    assert half.heard == 0.5
    assert half.gini == pytest.approx(0.5)


@pytest.mark.slow
def test_the_command_prints_a_line_for_each_recording(files, capsys):
    assert main(["replay", "scenario.yaml", "--traces", "*.csv", "--out", "found", *QUICK]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:4] == ["recording", "rounds", "asked", "complete"]
    assert lines[1].split()[:4] == ["all_day.csv", "2", "8", "100.0%"]
    assert lines[2].split()[:4] == ["half.csv", "2", "6", "66.7%"]
    assert lines[-1] == "found/incompleteness.csv"
    table = table_of("found")
    assert [row["recording"] for row in table] == ["all_day.csv", "half.csv"]
    assert main(["replay", "scenario.yaml", "--traces", "half.csv", "--out", "found", "--json", *QUICK]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["schema"] == "fedactors/replay/1"
    assert (printed["name"], printed["table"]) == ("windows", "found/incompleteness.csv")
    (found,) = printed["places"]
    assert found["at"] == {"recording": "half.csv"}
    assert found["shares"]["offline"] == pytest.approx(1 / 3)


def test_recordings_are_an_axis_of_a_comparison_and_of_a_sweep(files):
    words = ["--traces", "all_day.csv", "half.csv", "--clock-only", "--jobs", "1", "--out", "grid"]
    assert main(["compare", "scenario.yaml", "--vary", "server.deadline=8s,12s", "--seeds", "1", *words]) == 0
    table = table_of("grid")
    assert [(row["server.deadline"], row["recording"], row["asked"]) for row in table] == [
        ("8s", "all_day.csv", "8"), ("8s", "half.csv", "6"), ("12s", "all_day.csv", "8"), ("12s", "half.csv", "6"),
    ]  # fmt: skip
    words[-1] = "alone"
    assert main(["sweep", "scenario.yaml", *words]) == 0
    assert len(table_of("alone")) == 2


def test_devices_that_are_always_on_follow_a_recording_and_a_rule_stays_where_formats_have_one(files):
    base = Scenario.load("scenario.yaml", ["population.phones.availability=always"])
    axis = recordings_axis(base, ["half.csv"])
    ((change,),) = axis.values.values()
    assert json.loads(change.partition("=")[2]) == {"name": "trace", "path": str(files / "half.csv")}
    flash = {"d": {"messages": "2020-01-01 00:00:00\tbattery_charged_on\t10.0%", "guid": "d"}}
    (files / "log.json").write_text(json.dumps(flash), encoding="utf-8")
    ((change,),) = recordings_axis(Scenario.load("scenario.yaml"), ["log.json"]).values.values()
    assert json.loads(change.partition("=")[2])["when"] == "charging"


@pytest.mark.parametrize(
    ("recordings", "says"),
    [
        (["none.csv"], "no trace at none.csv"),
        (["no*.csv"], r"no trace is called no\*\.csv"),
        (["half.csv", "./half.csv"], "is named 2 times"),
        (["scenario.yaml"], "a file of no known format"),
    ],
)
def test_what_is_not_there_is_one_message(files, recordings, says):
    with pytest.raises(UsageError, match=says):
        replay_each("scenario.yaml", recordings, out="none", jobs=1)
    assert main(["replay", "scenario.yaml", "--traces", *recordings]) == 2


def test_a_recording_that_changes_is_read_again(files):
    assert incompleteness.places(replay_each("scenario.yaml", ["half.csv"], out="a", jobs=1))[0].asked == 6
    (files / "half.csv").write_text(ALL_DAY, encoding="utf-8")
    assert incompleteness.places(replay_each("scenario.yaml", ["half.csv"], out="a", jobs=1))[0].asked == 8


def test_a_comparison_goes_on_in_its_folder_after_a_recording_has_changed(files):
    words = ["compare", "scenario.yaml", "--vary", "server.deadline=8s,12s", "--clock-only", "--jobs", "1"]
    words += ["--set", "population.phones.availability={name: trace, path: half.csv}", "--seeds", "1", "--out", "b"]
    for text, asked in ((HALF, {"6"}), (ALL_DAY, {"8"})):
        (files / "half.csv").write_text(text, encoding="utf-8")
        assert main(words) == 0
        assert {row["asked"] for row in table_of("b")} == asked

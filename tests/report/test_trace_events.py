"""Timelines hold every trip and every span, nested as they were, and in the form that Perfetto reads."""

import gzip
import json

import pyarrow.parquet as pq
import pytest

from fedactors.cli.main import main
from fedactors.report.trace_events import VIRTUAL, WALL, busy, write
from tests.report.conftest import made_up


def load(path):
    return json.loads(path.read_text())["traceEvents"]


def slices(events, process):
    return [event for event in events if event["ph"] == "X" and event["pid"] == process]


@pytest.fixture(scope="module")
def events(finished, tmp_path_factory):
    return load(write(finished, tmp_path_factory.mktemp("timeline") / "t.json"))


def test_every_trip_is_there_to_the_nanosecond(events, finished):
    orders = pq.read_table(finished / "orders.parquet").to_pylist()
    trips = [event for event in slices(events, VIRTUAL) if "outcome" in event["args"]]
    assert len(trips) == len(orders)
    for trip, order in zip(trips, orders, strict=True):
        assert trip["tid"] == order["client"] + 1
        assert round(trip["ts"] * 1000) == order["started"]
        assert round(trip["dur"] * 1000) == order["finished"] - order["started"]
        assert trip["args"]["steps"] == order["steps"]
    computing = sum(round(event["dur"] * 1000) for event in slices(events, VIRTUAL) if event["name"] == "compute")
    assert computing == sum(order["computed"] - order["downloaded"] for order in orders)


def test_slices_of_a_thread_are_nested_or_apart(events):
    for process in (VIRTUAL, WALL):
        threads = {}
        for event in slices(events, process):
            threads.setdefault(event["tid"], []).append((round(event["ts"], 3), round(event["ts"] + event["dur"], 3)))
        for spans in threads.values():
            open_until = []
            for began, ended in sorted(spans, key=lambda span: (span[0], -span[1])):
                while open_until and open_until[-1] <= began + 0.01:
                    open_until.pop()
                assert not open_until or ended <= open_until[-1] + 0.01
                open_until.append(ended)


def test_threads_have_names_and_counters_the_accuracy(events, finished):
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    assert all((event["pid"], event["tid"]) in names for event in events if event["ph"] == "X")
    assert names[VIRTUAL, 0] == "server"
    assert names[VIRTUAL, 13] == "naive 12"
    assert {"driver", "server", "client host", "evaluator"} <= {name for (pid, _), name in names.items() if pid == WALL}
    rows = [json.loads(line) for line in (finished / "metrics.jsonl").read_text().splitlines()]
    counted = [event["args"]["accuracy"] for event in events if event["ph"] == "C" and event["name"] == "accuracy"]
    assert counted == [row["accuracy"] for row in rows]


def test_actors_say_when_they_worked(events, finished):
    rounds = len((finished / "metrics.jsonl").read_text().splitlines())
    names = [event["name"] for event in slices(events, WALL)]
    assert names.count("aggregate") == names.count("learn") == names.count("evaluate") == rounds
    assert names.count("wait") == names.count("write") == rounds
    assert names.count("start") == 2  # of the driver, and of the server
    assert all(event["dur"] >= 0 for event in slices(events, WALL))
    seconds = {(track, what): spent for track, what, spent in busy(finished / "wall.parquet")}
    assert 0 < seconds["client host", "learn"] < 60


def test_few_devices_of_many_are_shown_and_a_replay_has_no_wall(tmp_path, capsys):
    folder = made_up(tmp_path / "big", rounds=50, cohort=40, devices=900)
    assert main(["timeline", str(folder), "--devices", "20", "--out", str(tmp_path / "t.json.gz")]) == 0
    assert capsys.readouterr().out.strip().endswith("t.json.gz")
    with gzip.open(tmp_path / "t.json.gz", "rt") as file:
        events = json.load(file)["traceEvents"]
    assert len({event["tid"] for event in slices(events, VIRTUAL)}) == 21
    assert not slices(events, WALL)


def test_mistakes_are_told(finished, tmp_path, capsys):
    assert main(["timeline", str(finished), "--devices", "0"]) == 2
    assert main(["timeline", str(tmp_path)]) == 2
    assert main(["timeline", str(finished), "--out", str(tmp_path / "absent/t.json")]) == 2
    assert "cannot be written" in capsys.readouterr().err

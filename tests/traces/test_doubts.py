"""What `describe` doubts, what it does not mix, and records that count once."""

import json
import pickle

import numpy as np
import pytest
from timelines import repaired

from fedactors.cli.main import main
from fedactors.errors import TraceError
from fedactors.plan import SECOND
from fedactors.traces.device_selection import select
from fedactors.traces.device_tables import DOWN, FLOPS, SAMPLE, UP, table
from fedactors.traces.doubts import doubts
from fedactors.traces.format_registry import read, read_series, read_table
from fedactors.traces.formats import native
from fedactors.traces.series import BYTES_PER_SECOND, SeriesRow
from fedactors.traces.series import build as build_series
from fedactors.traces.summaries import bars, summarize
from fedactors.traces.timeline import build

HOUR = 3600 * SECOND
DAY = 24 * HOUR


# --- doubts ---


def test_a_rate_beyond_a_terabit_is_doubted():
    fast = build_series(
        [SeriesRow("a", [0, 5], [7, 125 * 10**9 + 1], 9), SeriesRow("b", [0], [125 * 10**9], 9)], "bytes/s"
    )
    assert doubts(fast) == ["row 'a': 125,000,000,001 bytes/s are more than 1 Tbit/s: is the unit right?"]
    assert doubts(table(["x", "y"], {DOWN: [5, 10**12]})) == [
        "device 'y': down_bytes_per_s: 1,000,000,000,000 bytes/s are more than 1 Tbit/s: is the unit right?"
    ]


def test_holes_of_days_are_doubted():
    week = build([("a", [(0, HOUR), (5 * DAY, 6 * DAY)], 0, 7 * DAY), ("b", [(2 * DAY, 3 * DAY)], 0, 7 * DAY)])
    assert doubts(week) == [
        "2 holes of a day or more in which no device is on, the longest 2 days, from 3 days after the epoch"
    ]
    assert doubts(build([("a", [(9 * HOUR, 17 * HOUR), (33 * HOUR, 40 * HOUR)], 0, 2 * DAY)])) == []
    assert doubts(build_series([SeriesRow("a", [0, HOUR], [5, 7], 3 * DAY)], BYTES_PER_SECOND)) == [
        "row 'a': one value holds for 3.0 days, from 1 h on"
    ]
    assert doubts(build_series([SeriesRow("a", [0], [5], 3 * DAY)], BYTES_PER_SECOND)) == []  # a constant


def test_unix_times_are_doubted(written):
    ms = read_series(written("1700000000000\n1700000000001\n", "drive"), format="mahimahi")
    assert doubts(ms) == ["row 'drive': nothing moves in the first 19676 days: are its times unix milliseconds?"]
    seconds = read(written("device,on_s,off_s\na,1700000000,1700000060\n"))
    assert doubts(seconds)[0].startswith("no device is on in the first 19676 days: are its times unix times?")


def test_columns_that_hold_the_same_are_doubted():
    same = {SAMPLE: [1, 2], FLOPS: [1, 2], DOWN: [5, 6], UP: [5, 6]}
    assert doubts(table(["x", "y"], same)) == ["columns inference_ns and flops_per_s hold the same"]


def test_describe_prints_doubts(written, capsys):
    path = written("row,from_s,to_s,bytes/s\na,0,9,200000000000\n")
    assert main(["traces", "describe", str(path)]) == 0
    assert "doubtful: row 'a': 200,000,000,000 bytes/s are more than 1 Tbit/s" in capsys.readouterr().out
    assert main(["traces", "describe", str(path), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["doubts"]) == 1


@pytest.mark.parametrize(
    "name",
    [
        "flash/state_traces_60.json",
        "fedscale/client_behave_trace",
        "fcc/train",
        "mahimahi/ATT-LTE-driving-2016.down.gz",
        "irish-5g/sample/Download__Static__B_2020.02.14_13.21.26.csv",
        "latency/latencies.txt",
    ],
)
def test_the_real_recordings_are_not_doubted(recording, name):
    from fedactors.traces.format_registry import read_any

    path = recording(name)
    path = sorted(path.iterdir())[0] if path.is_dir() else path
    assert doubts(read_any(path)) == []


# --- contradictions and records that stand twice ---


def test_a_record_of_hsdpa_that_stands_twice_counts_once(written):
    lines = ["1285675666 310761 59.88 10.76 1000 1000", "1285675667 311771 59.88 10.76 3000 1000"]
    once = read_series(written("\n".join(lines), "log"))
    twice = read_series(written("\n".join([lines[0], lines[0], lines[1], lines[0]]), "log"))
    assert twice.same_as(once)
    assert repaired(twice) == {"line that stands twice left out": 2}


def test_contradicting_events_are_counted(written):
    header = "# event_id component_id node_id platform_id event_type event_start_time event_stop_time\n"
    text = header + "0 0 7 3 1 1000 2000\n1 0 7 3 0 1500 1600\n2 0 7 3 0 2000 2100\n"
    assert repaired(read(written(text))) == {"up and down at once, up counts": 1}
    log = "2020-02-02 09:00:00 \twifi\n2020-02-02 10:00:00 \tscreen_on\n2020-02-02 10:00:00 \tscreen_off\n"
    phones = {"a": {"guid": "a", "messages": log}}
    assert repaired(read(written(json.dumps(phones)), when="screen")) == {
        "contradicting events in one second, the last counts": 1,
        "window without length dropped": 1,
    }


def test_columns_that_stand_twice_are_counted_or_refused(written):
    header = "Timestamp,DL_bitrate,UL_bitrate,State,DL_bitrate\n"
    series = read_series(written(header + "2019.12.16_11.49.01,8,16,D,99\n"))
    assert series.value.tolist() == [1000, 2000]
    assert repaired(series) == {"column DL_bitrate stands twice, the first counts": 1}
    with pytest.raises(TraceError, match="line 3: row 'computation' for a second time"):
        read_table(written(",1,2\ncomputation,1,2\ncomputation,3,4\ncommunication,1,2\n"))


# --- directions and times of day ---


def test_averages_of_a_link_do_not_mix_its_directions(written):
    lines = "".join(f"2019.12.16_11.49.{s:02},{8 * s},80,D\n" for s in (1, 2, 3))
    series = read_series(written("Timestamp,DL_bitrate,UL_bitrate,State\n" + lines, "log.csv"))
    found = summarize(series)
    assert {way: figures["mean"] for way, figures in found.data()["directions"].items()} == {"down": 2000, "up": 10_000}
    assert "2,000 bytes/s on average" in found.text()
    assert "10,000 bytes/s on average" in found.text()
    assert "6,000 bytes/s on average" not in found.text()
    assert bars(series).title == "bytes/s down, mean in each 24th of the longest row"


def clients():
    return pickle.dumps({1: {"active": [0], "inactive": [7200], "finish_time": 86_400, "duration": 7200}})


def test_no_hours_of_the_day_where_a_recording_has_none(written, tmp_path):
    timeline = read(written(clients()))
    assert not timeline.time_of_day
    assert summarize(timeline).data()["hourly"] == (None,) * 24
    assert "hour of the day" not in summarize(timeline).text()
    assert bars(timeline).title == "share of devices that are on, in each 24th of the recording"
    assert bars(timeline).heights == (1.0, 1.0, *[0.0] * 22)
    assert not select(timeline, np.array([0])).time_of_day
    for name in ("t.csv", "t.csv.gz", "t.parquet"):
        native.write(timeline, tmp_path / name, "# a head\n" if "csv" in name else "")
        assert not read(tmp_path / name).time_of_day
    spot = {"metadata": {"gap_seconds": 300}, "data": [1, 0, 1]}
    assert not read(written(json.dumps(spot))).time_of_day
    assert "hour of the day" in summarize(read(written("device,on,off\na,9h,17h\n"))).text()

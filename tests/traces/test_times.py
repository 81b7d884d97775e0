"""Times say their unit, in every form of our own files: by the cell, by the column's name, or by the Parquet type."""

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from timelines import as_dict

from fedactors.errors import TraceError
from fedactors.traces.device_tables import FLOPS, SAMPLE, SAMPLES
from fedactors.traces.format_registry import read, read_any, read_latency, read_series, read_table
from fedactors.traces.formats import native
from fedactors.traces.timeline import build

SECOND = 10**9
HOUR = 3600 * SECOND


def parquet(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("device,on,off", "phone,0,9h"),
        ("device,on_h,off_h", "phone,0,9"),
        ("device,on_h,off_min", "phone,0,540"),
        ("device,on_s,off_s", "phone,0.0,32400"),
        ("Device, On_S, Off_S", "phone , 0, 9h"),
        ("off_ns,device,on", "32400000000000,phone,"),
    ],
)
def test_a_column_of_a_csv_states_its_unit_or_the_cell_does(written, header, row):
    if row.endswith(","):
        row += "0"
    assert as_dict(read(written(f"{header}\n{row}\n"), strict=True)) == {"phone": [(0, 9 * HOUR)]}


def test_decimals_in_a_column_with_a_unit_are_exact(written):
    assert as_dict(read(written("device,on_s,off_ms\na,9.25,9250.5\n"))) == {"a": [(9_250_000_000, 9_250_500_000)]}


def test_pieces_of_rates_state_their_unit_too(written):
    rates = read_series(written("row,from_s,to_min,bytes/s\nhome,0,1.5,5000\nhome,90,2,0\n"))
    assert list(rates.pieces(0)) == [(0, 90 * SECOND, 5000), (90 * SECOND, 120 * SECOND, 0)]


def test_what_is_written_states_nanoseconds(tmp_path):
    native.write(build([("a", [(1, 5)], 0, 5)]), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "device,on_ns,off_ns,first_ns,last_ns\na,1,5,0,5\n"


def test_blanks_around_a_name_make_no_second_device(written, tmp_path):
    assert as_dict(read(written("device,on_s,off_s\nphone,0,1\nphone ,2,3\n"))) == {
        "phone": [(0, SECOND), (2 * SECOND, 3 * SECOND)]
    }
    rates = read_series(written("row,from_s,to_s,ppm\na,0,1,5\na ,1,2,7\n"))
    assert rates.names == ("a",)
    with pytest.raises(TraceError, match=r"two names, 'A' and 'A ' .*more than blanks"):
        read_table(written('{"A": 5, "A ": 7}'))
    with pytest.raises(TraceError, match=r"the name ' a' begins or ends with a blank"):
        native.write(build([(" a", [], 0, 5)]), tmp_path / "t.csv")


@pytest.mark.parametrize(("unit", "factor"), [("s", SECOND), ("ms", 10**6), ("us", 10**3), ("ns", 1)])
def test_durations_of_a_parquet_are_converted(tmp_path, unit, factor):
    kind = pa.duration(unit)
    path = parquet(
        tmp_path / "t.parquet",
        device=pa.array(["a"]),
        on=pa.array([[2, 7]], pa.list_(kind)),
        off=pa.array([[5, 9]], pa.list_(kind)),
        first=pa.array([1], kind),
        last=pa.array([9], kind),
    )
    timeline = read(path)
    assert as_dict(timeline) == {"a": [(2 * factor, 5 * factor), (7 * factor, 9 * factor)]}
    assert (timeline.first[0], timeline.last[0]) == (factor, 9 * factor)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_of_a_parquet_count_from_midnight_of_the_earliest_day(tmp_path, unit):
    kind = pa.timestamp(unit, tz="UTC")

    def moment(day, hour):
        return datetime.datetime(2024, 5, day, hour, tzinfo=datetime.timezone.utc)

    path = parquet(
        tmp_path / "t.parquet",
        device=pa.array(["a"]),
        on=pa.array([[moment(3, 9)]], pa.list_(kind)),
        off=pa.array([[moment(4, 1)]], pa.list_(kind)),
        first=pa.array([moment(3, 8)], kind),
        last=pa.array([moment(4, 2)], kind),
    )
    timeline = read(path)
    assert as_dict(timeline) == {"a": [(9 * HOUR, 25 * HOUR)]}
    assert (timeline.first[0], timeline.last[0]) == (8 * HOUR, 26 * HOUR)


def windows(on, off=None, first=0, last=9):
    off = on if off is None else off
    return {"device": pa.array(["a"]), "on": on, "off": off, "first": pa.array([first]), "last": pa.array([last])}


def test_the_name_of_a_parquet_column_may_state_its_unit(tmp_path):
    columns = windows(pa.array([[2]]), pa.array([[5]]))
    named = {name if name == "device" else f"{name}_s": column for name, column in columns.items()}
    assert as_dict(read(parquet(tmp_path / "t.parquet", **named))) == {"a": [(2 * SECOND, 5 * SECOND)]}


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (windows(pa.array([[2]], pa.list_(pa.int32()))), 'column "on": of type int32'),
        (windows(pa.array([[2.0]])), 'column "on": of type double'),
        (windows(pa.array([["9h"]])), 'column "on": of type string'),
        (windows(pa.array([[2]], pa.list_(pa.time32("s")))), 'column "on": of type time32[ms]'),
        (windows(pa.array([2])), 'column "on": of type int64 (a list for each device'),
        (windows(pa.array([[2]], pa.list_(pa.timestamp("ms")))), "timestamps beside other times"),
        (windows(pa.array([[2**62]], pa.list_(pa.duration("s")))), 'column "on": a time out of range'),
        (windows(pa.array([[None]], pa.list_(pa.int64()))), 'column "on": an empty cell'),
        ({**windows(pa.array([[2]])), "device": pa.array([7])}, 'column "device": of type int64 (text)'),
    ],
)
def test_other_types_are_refused(tmp_path, columns, words):
    with pytest.raises(TraceError) as caught:
        read(parquet(tmp_path / "t.parquet", **columns))
    assert words in str(caught.value)


def test_rates_of_others_in_parquet_are_recognised_by_their_columns(tmp_path):
    path = parquet(
        tmp_path / "r.parquet",
        **{
            "bytes/s": pa.array([5000, 7], pa.int32()),
            "row": pa.array(["home", "home"]).dictionary_encode(),
            "from": pa.array([0, 90], pa.duration("s")),
            "to": pa.array([90, 120], pa.duration("s")),
        },
    )
    assert list(read_series(path).pieces(0)) == [(0, 90 * SECOND, 5000), (90 * SECOND, 120 * SECOND, 7)]


def test_a_device_table_of_pandas_in_parquet_is_recognised(tmp_path):
    import pandas as pd

    frame = pd.DataFrame(
        {"flops_per_s": [5e9, 7e9], "device": ["a", "b"], "samples": np.array([3, 4], np.uint8)}, index=[4, 9]
    )
    frame.to_parquet(tmp_path / "d.parquet")
    table = read_table(tmp_path / "d.parquet")
    assert table.names == ("a", "b")
    assert table.columns[FLOPS].tolist() == [5 * 10**9, 7 * 10**9]
    assert table.columns[SAMPLES].tolist() == [3, 4]
    frame["inference_ns"] = pd.to_timedelta([5, 7], unit="ms")
    frame.to_parquet(tmp_path / "d.parquet")
    assert read_table(tmp_path / "d.parquet").columns[SAMPLE].tolist() == [5 * 10**6, 7 * 10**6]
    frame["samples"] = [0.5, 1]
    frame.to_parquet(tmp_path / "d.parquet")
    with pytest.raises(TraceError, match='column "samples"'):
        read_any(tmp_path / "d.parquet")


def test_latencies_of_others_in_parquet_are_recognised(tmp_path):
    path = parquet(tmp_path / "l.parquet", **{"from": ["a"], "to": ["a"], "ns": [5]})
    assert read_latency(path).ns.tolist() == [[5]]

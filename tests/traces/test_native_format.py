"""Our own format: what is written is read back, and a hand-written file may be lazy."""

import gzip
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from timelines import as_dict, repaired, timelines

from fedactors.errors import TraceError
from fedactors.traces.format_registry import read
from fedactors.traces.formats import native
from fedactors.traces.timeline import build
from tests.examples import drawn

HOUR = 3600 * 10**9


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_reading_what_was_written_gives_the_same(name):
    @drawn(60)
    @given(timelines())
    def check(timeline):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            native.write(timeline, path)
            back = read(path, strict=True)
            assert back.same_as(timeline)
            assert [p.name for p in Path(folder).iterdir()] == [name]

    check()


def test_a_file_written_by_hand(written):
    path = written(
        "# my two phones\n\n"
        "Device, on, off\n"
        "phone 1, 9h, 17.5h\n"
        "\n"
        'Ann\'s "tablet",0,90s\n'
        "phone 1 ,20h,1440min\n"
        "never,,\n"
    )
    timeline = read(path)
    assert as_dict(timeline) == {
        "phone 1": [(9 * HOUR, 17.5 * HOUR), (20 * HOUR, 24 * HOUR)],
        'Ann\'s "tablet"': [(0, 90 * 10**9)],
        "never": [],
    }
    assert timeline.first.tolist() == [0, 0, 0]
    assert timeline.last.tolist() == [24 * HOUR] * 3  # all were observed as long as the file lasts
    assert timeline.repairs == ()


def test_first_and_last_stand_on_any_line_of_a_device(written):
    timeline = read(written("device,last,off,on,first\na,,4s,3s,1s\na,8s,2s,1s,\nb,,,,2s\n"))
    assert as_dict(timeline) == {"a": [(10**9, 2 * 10**9), (3 * 10**9, 4 * 10**9)], "b": []}
    assert timeline.first.tolist() == [10**9, 2 * 10**9]
    assert timeline.last.tolist() == [8 * 10**9, 8 * 10**9]
    assert repaired(timeline) == {"windows out of order sorted": 1}


def test_windows_line_ends_and_a_byte_order_mark_do_not_matter(written):
    plain = "device,on_ns,off_ns\na,0,5\n"
    assert read(written("\ufeff" + plain.replace("\n", "\r\n"))).same_as(read(written(plain, "plain")))


def test_gzip_is_recognised_by_content(written):
    text = "device,on_ns,off_ns\na,0,5\n"
    assert read(written(gzip.compress(text.encode()))).same_as(read(written(text, "plain")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("device,on,off\na,1\n", "line 2: 2 fields (3, as in the header)"),
        ("device,on_ns,off_ns\na,5,4\n", 'device "a", line 2: window ends before it begins: 4 ns after 5 ns'),
        ("device,on_s,off\na,5,\n", 'device "a", line 2: only one of on and off'),
        ("device,on_s,off\na,5,9x\n", 'device "a", line 2: off "x" is not a unit of time'),
        ("device,on,off\na,-5,9\n", "device \"a\", line 2: on '-5'"),
        ("device,on,off\nphone,0,9\n", 'device "phone", line 2: off 9 has no unit (a time such as 90s or 9h, or'),
        (
            "device,on_s,off_s\nphone,0,1e3\n",
            """line 2: off_s '1e3' is no plain number (a number in the column's unit""",
        ),
        ("device,on_s,off_s\nphone,-1,3\n", "line 2: on_s '-1' is no plain number"),
        ("device,on,off\nphone,0,9.25\n", 'device "phone", line 2: off 9.25 has no unit'),
        ("device,on_s,off_s\na,0,1.23456789012\n", "off_s 1.23456789012 is not a whole number of nanoseconds"),
        ("device,on_ns,off_ns\na,5,9223372036854775807\n", "at most 146 years"),
        ("device,on,off,frist\na,5,9,1\n", "line 1: unknown column 'frist'; did you mean \"first\"?"),
        ("device,on,off,on\na,5,9,1\n", "line 1: a column twice"),
        ("device,on,off,on_s\na,5,9,1\n", "line 1: a column twice"),
        ("device,on_ns,off_ns,first_ns\na,5,9,6\n", "window 5..9 ns outside the device's sight"),
        ("device,on_ns,off_ns,first_ns\na,5,9,1\na,,,2\n", "line 3: a second value of first: 2 (1, or nothing)"),
        ("device,on_ns,off_ns,first_ns,last_ns\na,,,2,1\n", "last 1 ns before first 2 ns"),
        ("device,on_ns,off_ns,first_ns,last_ns\na,,,2,\na,,,,1\n", "a device last seen before it was first seen"),
        ('device,on,off\n"a,5,9\n', "line 2: unexpected end of data"),
        ('device,on,off\n"a"b,5,9\n', "line 2: ',' expected after '\"'"),
    ],
)
def test_mistakes_are_named_with_their_line(written, text, message):
    path = written(text)
    with pytest.raises(TraceError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_strict_refuses_to_join_windows(written):
    path = written("device,on_ns,off_ns\na,0,5\nb,0,1\na,5,9\n")
    assert repaired(read(path)) == {"touching windows joined": 1}
    with pytest.raises(TraceError, match='device "a", line 4: touching windows joined'):
        read(path, strict=True)


def test_parquet_of_other_columns_is_refused(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"device": ["a"], "on": [[1]], "off": [[2, 3]], "first": [0], "last": [9]}), path)
    with pytest.raises(TraceError, match="different lengths"):
        read(path)
    pq.write_table(pa.table({"device": ["a"], "on": [[None, 1]], "off": [[2, 3]], "first": [0], "last": [9]}), path)
    with pytest.raises(TraceError, match='column "on": an empty cell'):
        read(path)
    pq.write_table(pa.table({"x": [1]}), path)
    with pytest.raises(TraceError, match=r"cannot be read as windows: no column device, on.*lists of times"):
        read(path)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_what_cannot_be_written_leaves_nothing(name, tmp_path):
    (tmp_path / name).mkdir()
    with pytest.raises(TraceError, match="cannot be written"):
        native.write(build([("a", [(0, 5)], 0, 5)]), tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_what_cannot_be_written_is_one_error(tmp_path):
    timeline = build([("a", [(0, 5)], 0, 5)])
    with pytest.raises(TraceError, match="cannot be written"):
        native.write(timeline, tmp_path / "no folder" / "t.csv")
    with pytest.raises(TraceError, match="cannot be written"):
        native.write(build([("\ud800", [], 0, 5)]), tmp_path / "t.csv")

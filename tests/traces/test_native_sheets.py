"""Rates, device tables and latencies in our own format: what is written is read back, and mistakes are told."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from timelines import NAMES

from fedactors.errors import TraceError
from fedactors.plan import NEVER
from fedactors.traces import device_tables
from fedactors.traces.device_tables import Matrix, table
from fedactors.traces.format_registry import read_any, read_latency, read_series, read_table
from fedactors.traces.formats import native
from fedactors.traces.series import BYTES_PER_SECOND, PPM, SeriesRow, build
from tests.examples import drawn

SECOND = 10**9
VALUES = st.integers(0, NEVER)


@st.composite
def series(draw):
    rows = []
    for name in draw(st.lists(NAMES, unique=True, max_size=5)):
        times = [0, *sorted(draw(st.sets(st.integers(1, NEVER), min_size=1, max_size=5)))]
        values = draw(st.lists(VALUES, min_size=len(times) - 1, max_size=len(times) - 1))
        rows.append(SeriesRow(name, times[:-1], values, times[-1]))
    return build(rows, draw(st.sampled_from([BYTES_PER_SECOND, PPM])))


@st.composite
def drawn_tables(draw):
    names = draw(st.lists(NAMES, unique=True, min_size=1, max_size=5))
    columns = draw(
        st.sets(
            st.sampled_from([device_tables.SAMPLE, device_tables.DOWN, device_tables.SCORE, device_tables.FLOPS]),
            min_size=1,
        )
    )
    size = {"min_size": len(names), "max_size": len(names)}
    labels = {device_tables.BENCHMARK: draw(st.lists(NAMES, **size))} if draw(st.booleans()) else {}
    return table(names, {name: draw(st.lists(VALUES, **size)) for name in sorted(columns)}, labels)


@st.composite
def matrices(draw):
    names = draw(st.lists(NAMES, unique=True, min_size=1, max_size=4))
    cells = draw(st.lists(VALUES, min_size=len(names) ** 2, max_size=len(names) ** 2))
    return Matrix(tuple(names), np.array(cells, np.int64).reshape(len(names), -1))


def same(one, other):
    if hasattr(one, "same_as"):
        return one.same_as(other)
    if isinstance(one, Matrix):
        return one.names == other.names and np.array_equal(one.ns, other.ns)
    equal = all(np.array_equal(column, other.columns[name]) for name, column in one.columns.items())
    return equal and one.names == other.names and dict(one.labels) == dict(other.labels)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
@pytest.mark.parametrize("kind", [series, drawn_tables, matrices])
def test_reading_what_was_written_gives_the_same(name, kind):
    @drawn(60)
    @given(kind())
    def check(recording):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            native.write(recording, path)
            assert same(read_any(path, strict=True), recording)

    check()


def test_rates_written_by_hand(written):
    rates = read_series(written("# my link\nrow, from, to, bytes/s\nhome,0,90s,5000\nhome,90s,2h,0\nwork,0,1s,7\n"))
    assert [list(rates.pieces(row)) for row in range(2)] == [
        [(0, 90 * SECOND, 5000), (90 * SECOND, 7200 * SECOND, 0)],
        [(0, SECOND, 7)],
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("row,from,to,bytes/s\na,5s,9s,1\n", 'device "a": a piece from 5000000000 ns (0 in a row'),
        ("row,from,to,bytes/s\na,0,9s,1\na,10s,11s,1\n", 'device "a": a piece from 10000000000 ns'),
        ("row,from,to,bytes/s\na,0,9s,-1\n", "line 2: bytes/s '-1' (a whole number >= 0)"),
        ("row,from,to,bytes/s\na,0,9 parsecs,1\n", "line 2: to '9 parsecs' (a time such as 90s)"),
        (
            "row,from,to,bytes/s\na,0,9,1\n",
            "line 2: to 9 has no unit (a time such as 90s, or a column that states its unit",
        ),
        ("row,from,to,miles\na,0,9s,1\n", "columns 'row,from,to,miles' (row,from,to and one of bytes/s, ppm)"),
        ("row,from,to,ppm\na,0,9s\n", "line 2: 3 fields (4, as in the header)"),
        ("row,from,to,ppm\na,0,9s,1\nb,0,9s,1\na,0,9s,1\n", "two rows of one name"),
        ("device,flops_per_s,colour\na,1,2\n", "columns 'device,flops_per_s,colour' (device and any of inference_ns"),
        ("from,to,ns\na,a,1\na,b,2\n", "2 pairs (every pair of places once"),
    ],
)
def test_what_is_wrong_is_told(written, content, message):
    path = written(content)
    with pytest.raises(TraceError) as caught:
        read_any(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_a_table_and_latencies_written_by_hand(written):
    found = read_table(written("device,flops_per_s,up_bytes_per_s\nphone,5000000000,125000\n"))
    assert (found.names, found.columns[device_tables.FLOPS].tolist()) == (("phone",), [5 * 10**9])
    assert read_latency(written("from,to,ns\na,a,0\na,b,5ms\nb,a,7\nb,b,0\n".replace("5ms", "5"))).ns.tolist() == [
        [0, 5],
        [7, 0],
    ]

"""Some devices of a recording, against picking them one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from timelines import timelines

from fedactors.errors import TraceError
from fedactors.traces import device_tables
from fedactors.traces.device_selection import select
from fedactors.traces.device_tables import Matrix, table
from fedactors.traces.series import PPM, SeriesRow, build


@given(timelines(), st.data())
def test_devices_keep_their_windows(timeline, data):
    rows = data.draw(st.lists(st.integers(0, max(len(timeline) - 1, 0)), unique=True, max_size=len(timeline)))
    found = select(timeline, np.array(rows, np.int64))
    assert found.names == tuple(timeline.names[row] for row in rows)
    assert [list(found.windows(k)) for k in range(len(rows))] == [list(timeline.windows(row)) for row in rows]
    assert found.last.tolist() == [int(timeline.last[row]) for row in rows]


def test_rates_tables_and_latencies():
    rates = build(
        [SeriesRow("a", [0, 5], [1, 2], 9), SeriesRow("b", [0], [7], 3), SeriesRow("c", [0, 1, 2], [4, 5, 6], 8)], PPM
    )
    found = select(rates, np.array([2, 1]))
    assert [list(found.pieces(k)) for k in range(2)] == [list(rates.pieces(2)), list(rates.pieces(1))]
    phones = table(["a", "b"], {device_tables.SCORE: [1, 2]}, {device_tables.BENCHMARK: ["x", "y"]})
    one = select(phones, np.array([1]))
    assert (one.names, one.columns[device_tables.SCORE].tolist(), one.labels[device_tables.BENCHMARK]) == (
        ("b",),
        [2],
        ("y",),
    )
    assert select(Matrix(("a", "b"), np.array([[1, 2], [3, 4]])), np.array([1])).ns.tolist() == [[4]]


def test_a_device_that_is_not_there():
    with pytest.raises(TraceError, match="no device 2 among 2"):
        select(table(["a", "b"], {device_tables.SCORE: [1, 2]}), np.array([2]))

"""Values looked up in many rows at once, against Python's bisect on each row."""

from bisect import bisect_right

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedactors.clock.row_search import RowSearch
from tests.examples import drawn

ROWS = st.lists(st.lists(st.integers(0, 50), max_size=6).map(sorted), min_size=1, max_size=5)


@drawn(300)
@given(ROWS, st.lists(st.integers(-60, 120), min_size=1, max_size=8), st.sampled_from([1, 10**16, 8 * 10**16]))
def test_it_is_the_bisection_of_each_row(rows, wanted, unit):
    """Also of rows without values, and of values so large that shifted ones do not fit 64 bits."""
    starts = np.cumsum([0, *map(len, rows)])
    values = np.array([unit * one for row in rows for one in row], np.int64)
    found = RowSearch(values, starts)
    numbers = np.arange(len(rows))
    for one in wanted:
        expected = [int(starts[r]) + bisect_right([unit * v for v in row], unit * one) for r, row in enumerate(rows)]
        assert found.right(numbers, np.full(len(rows), min(unit * one, 2**62))).tolist() == expected
    assert (found._keys is None) == (len(rows) * (max([0, *values.tolist()]) + 2) >= 2**62)

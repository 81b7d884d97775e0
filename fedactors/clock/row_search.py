"""Bisection in many rows at once: columns in which each row of values ascends."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
_LARGEST = 2**62  # keys that fit 64 bits with room for what is looked for


def search(values: Int64, low: Int64, high: Int64, wanted: Int64) -> Int64:
    """Return, for each i, the bisect_right of `wanted[i]` in `values[low[i]:high[i]]`, as an index into `values`."""
    low, high = low.copy(), high.copy()
    while (open_ := low < high).any():
        middle = (low + high) >> 1
        right = open_ & (values[np.where(open_, middle, 0)] <= wanted)
        low = np.where(right, middle + 1, low)
        high = np.where(open_ & ~right, middle, high)
    return low


class RowSearch:
    """Looks values up in rows of `values`; row r is values[starts[r] : starts[r + 1]], ascending.

    Rows are shifted by so much that all of them together ascend: one bisection of numpy's for each value looked up.
    Where the shifted values do not fit 64 bits, or one is below 0, rows are bisected step by step.
    """

    def __init__(self, values: Int64, starts: Int64) -> None:
        self._values = values
        self._starts = starts
        self._stride = int(values.max(initial=0)) + 2
        rows = len(starts) - 1
        self._keys: Int64 | None = None
        if rows * self._stride < _LARGEST and values.min(initial=0) >= 0:
            self._keys = values + np.repeat(np.arange(rows, dtype=np.int64) * self._stride, np.diff(starts))

    def right(self, rows: Int64, wanted: Int64) -> Int64:
        """Return, for each i, the bisect_right of `wanted[i]` in row `rows[i]`, as an index into all values."""
        if self._keys is None:
            return search(self._values, self._starts[rows], self._starts[rows + 1], wanted)
        inside = np.minimum(np.maximum(wanted, -1), self._stride - 1)
        found: Int64 = np.searchsorted(self._keys, inside + rows * self._stride, side="right")
        return found

"""Rates over time: of a link, or of the free part of a processor.

A `Series` is piecewise constant. Row r has the value `value[k]` from `at[k]` until `at[k + 1]`, its last
piece until `end[r]`, for `starts[r] <= k < starts[r + 1]`. Times are integer nanoseconds, strictly increasing
inside a row, and each row begins at 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedactors.errors import TraceError
from fedactors.plan import NEVER, Time
from fedactors.traces.timeline import Int64, Repair

BYTES_PER_SECOND = "bytes/s"
PPM = "ppm"  # parts per million of a processor
FULL_SHARE = 1_000_000  # ppm: the whole of a processor


@dataclass(frozen=True, eq=False)
class Series:
    """Values of `len(names)` rows in columns; see the module's docstring for the layout.

    Raises TraceError if the columns break the layout. Two series are compared by `same_as`; `==` is identity.
    """

    names: tuple[str, ...]
    unit: str  # BYTES_PER_SECOND or PPM
    starts: Int64  # (rows + 1,)
    at: Int64  # (pieces,) ns
    value: Int64  # (pieces,) in `unit`
    end: Int64  # (rows,) ns
    repairs: tuple[Repair, ...] = ()

    def __post_init__(self) -> None:
        problem = _problem(self)
        if problem:
            raise TraceError(f"not a series: {problem}")

    def __len__(self) -> int:
        return len(self.names)

    def pieces(self, row: int) -> Iterator[tuple[Time, Time, int]]:
        """Yield the pieces of `row` as (from, to, value)."""
        part = slice(int(self.starts[row]), int(self.starts[row + 1]))
        begin = self.at[part].tolist()
        return zip(begin, [*begin[1:], int(self.end[row])], self.value[part].tolist(), strict=True)

    def mean(self, row: int) -> float:
        """Return the mean over time of `row`, in its unit."""
        return sum((end - begin) * value for begin, end, value in self.pieces(row)) / int(self.end[row])

    def same_as(self, other: Series) -> bool:
        """Whether both hold the same rows and values, whatever was repaired."""
        return (self.names, self.unit) == (other.names, other.unit) and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in ("starts", "at", "value", "end")
        )


class SeriesRow(NamedTuple):
    """One row on its way into a Series: `value[k]` from `at[k]` on, the last until `end`."""

    name: str
    at: Sequence[Time] | Int64
    value: Sequence[int] | Int64
    end: Time


def build(rows: Iterable[SeriesRow], unit: str, repairs: tuple[Repair, ...] = ()) -> Series:
    """Put `rows` into columns; neighbours of equal value become one piece."""
    names: list[str] = []
    at: list[Int64] = []
    value: list[Int64] = []
    ends: list[Time] = []
    for row in rows:
        times, values = (np.asarray(column, dtype=np.int64) for column in (row.at, row.value))
        keep = np.concatenate(([True], values[1:] != values[:-1]))[: len(values)]
        names.append(row.name)
        at.append(times[keep])
        value.append(values[keep])
        ends.append(row.end)
    starts = np.concatenate(([0], np.cumsum([len(times) for times in at]))).astype(np.int64)
    end = np.array(ends, dtype=np.int64)
    return Series(tuple(names), unit, starts, _column(at), _column(value), end, repairs)


def join(parts: Sequence[Series]) -> Series:
    """Put the rows of several series below one another. Raises TraceError if units differ or names repeat."""
    if len({part.unit for part in parts}) != 1:
        raise TraceError("cannot join series of different units, or none at all")
    return Series(
        tuple(name for part in parts for name in part.names),
        parts[0].unit,
        _joined_starts(parts),
        _column([part.at for part in parts]),
        _column([part.value for part in parts]),
        _column([part.end for part in parts]),
        tuple(repair for part in parts for repair in part.repairs),
    )


def padded(series: Series, ends: Int64) -> Series:
    """Return `series` with rows that end at `ends`, `(rows,)` ns, at their own end or later, and are 0 until then."""
    longer = (ends > series.end) & (series.value[series.starts[1:] - 1] != 0)
    where = series.starts[1:][longer]
    return Series(
        series.names,
        series.unit,
        series.starts + np.concatenate(([0], np.cumsum(longer))),
        np.insert(series.at, where, series.end[longer]),
        np.insert(series.value, where, 0),
        np.maximum(ends, series.end),
        series.repairs,
    )


def _joined_starts(parts: Sequence[Series]) -> Int64:
    """Return where each row begins among the pieces of all parts, `(rows + 1,)`."""
    sizes = np.cumsum([0, *(len(part.at) for part in parts)])
    starts = [part.starts[:-1] + size for part, size in zip(parts, sizes[:-1], strict=True)]
    return np.concatenate([*starts, sizes[-1:]])


def _column(parts: Sequence[NDArray[np.int64]]) -> Int64:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def _problem(s: Series) -> str:
    """Say what breaks the layout, or nothing."""
    return _problem_of_rows(s) or _problem_of_pieces(s)


def _problem_of_rows(s: Series) -> str:
    """Say what is wrong with the columns' lengths, the names or the rows, or nothing."""
    if not (len(s.starts) == len(s.names) + 1 == len(s.end) + 1 and len(s.at) == len(s.value)):
        return "columns of different lengths"
    if len(set(s.names)) != len(s.names):
        return "two rows of one name"
    if s.starts[0] != 0 or s.starts[-1] != len(s.at) or (np.diff(s.starts) < 1).any():
        return "rows do not cover the pieces, or one is empty"
    return ""


def _problem_of_pieces(s: Series) -> str:
    """Say what is wrong with values or times, or nothing."""
    if (s.value < 0).any() or (s.value > NEVER).any() or (s.end > NEVER).any():
        return "a negative value, or one too large"
    firsts, lasts = s.starts[:-1], s.starts[1:] - 1
    inside = np.ones(len(s.at), dtype=np.bool_)
    inside[firsts] = False
    if (s.at[firsts] != 0).any() or (np.diff(s.at)[inside[1:]] <= 0).any() or (s.end <= s.at[lasts]).any():
        return "times that do not begin at 0 or do not increase"
    return ""

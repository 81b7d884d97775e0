"""Figures of a table with what a verdict needs: a value for each seed, and which models behind it did not learn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from operator import add, mul, sub, truediv
from statistics import fmean

Number = int | float

LEFT_OUT = "left out of the experiment"
"""The fault of what was not run because the experiment is played without it; where it is, no other counts."""


@dataclass(frozen=True)
class Figure:
    """A measure at one place of a grid; arithmetic goes seed by seed, so that differences are those of pairs.

    A number counts for every seed. Figures of different numbers of repeats make no pairs: that raises ValueError,
    unless one has no repeats, as what was left out has none.
    """

    values: tuple[float | None, ...]  # one for each repeat; None where it was not measured or never reached
    faults: tuple[str, ...] = ()  # of runs that did not learn

    @property
    def missing(self) -> bool:
        """Whether there is no value, or one that is no finite number."""
        return not self.values or self.lacking > 0

    @property
    def lacking(self) -> int:
        """In how many repeats there is no value, or one that is no finite number."""
        return sum(value is None or not isfinite(value) for value in self.values)

    @property
    def mean(self) -> float:
        """Mean over the repeats; NaN if one has no value."""
        return nan if self.missing else fmean(value for value in self.values if value is not None)

    def __add__(self, other: Figure | Number) -> Figure:
        """Return the sum, seed by seed."""
        return _joined(add, self, other)

    def __sub__(self, other: Figure | Number) -> Figure:
        """Return the difference, seed by seed."""
        return _joined(sub, self, other)

    def __rsub__(self, other: Number) -> Figure:
        """Return the difference, seed by seed."""
        return _joined(sub, other, self)

    def __mul__(self, other: Figure | Number) -> Figure:
        """Return the product, seed by seed."""
        return _joined(mul, self, other)

    def __truediv__(self, other: Figure | Number) -> Figure:
        """Return the quotient, seed by seed; without a value where it has none."""
        return _joined(truediv, self, other)

    __radd__, __rmul__ = __add__, __mul__

    def __abs__(self) -> Figure:
        """Return the absolute value of the mean: how far apart two means are, whichever is larger."""
        return self if self.missing or self.mean >= 0 else self * -1

    def __format__(self, form: str) -> str:
        """Return the mean in a format; a dash if there is none."""
        return "-" if self.missing else format(self.mean, form)


_NONE = Figure(())


def figure(value: Figure | Number) -> Figure:
    """Return a number as a figure."""
    return value if isinstance(value, Figure) else Figure((float(value),))


def highest(figures: Iterable[Figure]) -> Figure:
    """Return the figure of the highest mean; the faults of all count, for all were compared. Of none it is missing."""
    found = list(figures)
    return _with_faults(max(found, key=lambda one: one.mean, default=_NONE), found)


def lowest(figures: Iterable[Figure]) -> Figure:
    """Return the figure of the lowest mean; the faults of all count, for all were compared. Of none it is missing."""
    found = list(figures)
    return _with_faults(min(found, key=lambda one: one.mean, default=_NONE), found)


def share_of(figures: Iterable[Figure], meets: Callable[[float], bool]) -> Figure:
    """Return the share of the figures whose value `meets`, seed by seed; without a value where one has none."""
    return _by_seed(figures, lambda row: fmean(meets(value) for value in row))


def span_of(figures: Iterable[Figure]) -> Figure:
    """Return max - min of the figures, seed by seed; without a value where one has none."""
    return _by_seed(figures, lambda row: max(row) - min(row))


def _by_seed(figures: Iterable[Figure], function: Callable[[Sequence[float]], float]) -> Figure:
    found = list(figures)
    rows = zip(*(one.values for one in found), strict=all(one.values for one in found))
    values = (function(row) if Figure(row).lacking == 0 else None for row in rows)
    return Figure(tuple(values), faults_of(found))


def faults_of(figures: Iterable[Figure]) -> tuple[str, ...]:
    """Return the faults of all, each once; only that something was left out, if it was."""
    found = dict.fromkeys(fault for one in figures for fault in one.faults)
    return (LEFT_OUT,) if LEFT_OUT in found else tuple(found)


def _with_faults(one: Figure, all_: Sequence[Figure]) -> Figure:
    missing = next((other for other in all_ if other.missing), one)
    return Figure(missing.values, faults_of(all_))


def _joined(function: Callable[[float, float], float], left: Figure | Number, right: Figure | Number) -> Figure:
    count = max(len(one.values) for one in (left, right) if isinstance(one, Figure))
    a, b = (one if isinstance(one, Figure) else Figure((float(one),) * count) for one in (left, right))
    if not (a.values and b.values):
        return Figure((), faults_of((a, b)))
    if len(a.values) != len(b.values):
        raise ValueError(f"figures of {len(a.values)} and of {len(b.values)} repeats make no pairs")
    pairs = zip(a.values, b.values, strict=True)
    return Figure(tuple(_value(function, x, y) for x, y in pairs), faults_of((a, b)))


def _value(function: Callable[[float, float], float], x: float | None, y: float | None) -> float | None:
    if x is None or y is None:
        return None
    try:
        return function(x, y)
    except ZeroDivisionError:
        return None

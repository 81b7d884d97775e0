"""Functions that make claims: a comparison of figures of a table, with the figures in its text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from fedactors.papers.experiment import Claim, Label, ResultTable


def more(text: str, left: float, right: float, by: float = 0.0, *, asserted: bool = True) -> Claim:
    """Claim left > right + by."""
    margin = f" + {by:g}" if by else ""
    return Claim(text, f"{left:.3f} > {right:.3f}{margin}", left > right + by, asserted)


def less(text: str, left: float, right: float, share: float = 1.0, *, asserted: bool = True) -> Claim:
    """Claim left < share * right."""
    scaled = f"{share:g} x " if share != 1.0 else ""
    return Claim(text, f"{left:.3g} < {scaled}{right:.3g}", left < share * right, asserted)


def at_most(text: str, left: float, right: float, share: float = 1.0, *, asserted: bool = True) -> Claim:
    """Claim left <= share * right."""
    scaled = f"{share:g} x " if share != 1.0 else ""
    return Claim(text, f"{left:.3g} <= {scaled}{right:.3g}", left <= share * right, asserted)


def narrow(text: str, values: Sequence[float], most: float, *, asserted: bool = True) -> Claim:
    """Claim max - min < most."""
    spread = max(values) - min(values)
    return Claim(text, f"{spread:.3f} < {most:g}", spread < most, asserted)


def rising(text: str, values: Sequence[float], *, asserted: bool = True) -> Claim:
    """Claim that values increase strictly."""
    holds = all(low < high for low, high in pairwise(values))
    return Claim(text, " < ".join(f"{value:.3f}" for value in values), holds, asserted)


def span(table: ResultTable, measure: str, axis: str, **labels: Label) -> float:
    """Return max - min of a measure's mean along an axis."""
    values = [table.mean(measure, **labels, **{axis: label}) for label in table.labels(axis)]
    return max(values) - min(values)

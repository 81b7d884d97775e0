"""What Ruan et al. (AISTATS 2021) measure: points of accuracy, rebounds after arrivals, crossings after departures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import nan
from statistics import mean, median

from fedactors.papers.experiment import Label, Measures, ResultTable
from fedactors.papers.figures import Figure

LAST = 10  # rounds whose mean accuracy is a run's


def last(run: Measures, rounds: int = LAST) -> float | None:
    """Return the mean accuracy of a run over its last rounds; None if it diverged."""
    if not run.curve:
        return None
    end = run.curve[-1].round
    return mean(point.accuracy for point in run.curve if point.round > end - rounds)


def accuracy(table: ResultTable, **labels: Label) -> Figure:
    """Return `last` of each repeat."""
    return table.figure(last, **labels)


def rebound(run: Measures, after: int) -> int | None:
    """Return min {j >= 1: a(tau_0 + j) >= a(tau_0)}, the rounds until accuracy is back; None if it never is."""
    at = {point.round: point.accuracy for point in run.curve}
    return next((r - after for r in sorted(at) if r > after and at[r] >= at[after]), None) if after in at else None


def gains(table: ResultTable, round: int, measure: str, **labels: Label) -> Figure:
    """Return fast minus vanilla of a measure after a round, one for each repeat."""
    fast, vanilla = (
        table.figure(lambda run: at_round(run, round, measure), reboot=name, **labels) for name in ("fast", "vanilla")
    )
    return fast - vanilla


def apart(table: ResultTable, after: int, rounds: int, a: float) -> Figure:
    """Return loss_exclude - loss_include so many rounds after a departure, each on its own test set, by repeat."""
    exclude, include = (
        table.figure(lambda run: at_round(run, after + rounds, "loss"), tau=after, option=name, a=a)
        for name in ("exclude", "include")
    )
    return exclude - include


def crossings(table: ResultTable, after: int, a: float) -> list[int | None]:
    """Return min {j >= 1: loss_exclude(tau_0 + j) <= loss_include(tau_0 + j)} of each repeat; None if there is none.

    No repeats if an option was left out.
    """
    exclude, include = (table.runs(tau=after, option=name, a=a) for name in ("exclude", "include"))
    return [_crossing(one, other, after) for one, other in zip(exclude, include, strict=bool(exclude and include))]


def shown(found: Iterable[int | None]) -> str:
    """Return the median, None counting as never, and the share of None."""
    values = list(found)
    if not values:
        return f"{'-':>5}"
    never = sum(value is None for value in values)
    middle = middle_of(values)
    return f"{'never' if middle == float('inf') else f'{middle:g}':>5}" + (
        f" ({never / len(values):.0%} none)" if never else ""
    )


def middle_of(values: Sequence[int | None]) -> float:
    """Return the median, None counting as infinite; NaN of nothing."""
    if not values:
        return nan
    return median(float("inf") if value is None else value for value in values)


def _crossing(exclude: Measures, include: Measures, after: int) -> int | None:
    if not (exclude.curve and include.curve):  # one diverged
        return None
    pairs = zip(exclude.curve, include.curve, strict=True)
    return next((a.round - after for a, b in pairs if a.round > after and a.loss <= b.loss), None)


def at_round(run: Measures, round: int, measure: str) -> float | None:
    """Return a measure after a round; None if the run was not evaluated then."""
    return next((getattr(point, measure) for point in run.curve if point.round == round), None)

"""What a study answers, in a sentence or two: the best variant, its difference from others, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from fedactors.study.run_figures import Measure
from fedactors.study.statistics import Interval, paired

Seeds = Mapping[int, float | None]  # a measure by seed; None where a run has none


class Beside(NamedTuple):
    """A further measure of each variant, by seed, that no choice looks at."""

    measure: Measure
    values: Mapping[str, Seeds]

    def of(self, variant: str) -> str:
        """Return its mean of a variant, in brackets; nothing if it has none."""
        known = _known(self.values[variant])
        return f" ({self.measure.name} {self.measure.show(fmean(known))})" if known else ""


def best_variant(
    values: Mapping[str, Seeds],
    baseline: str | None,
    measure: Measure,
    rises: bool | None,
    confidence: float,
    beside: Beside | None = None,
) -> str:
    """Return which variant is best in a measure, and by how much, in pairs of runs with the same seed.

    Variants that have a figure in more seeds come first, since those that lack one may have failed where it was hard.
    The best variant is compared with the baseline, if there is one, and with the second best. Without better and worse
    (`rises` is None), the highest one is named. What stands `beside` the measure is told of the best variant.
    """
    known = _with_figures(values)
    if not known:
        return f"No variant has a figure of {measure.name}."
    best, *rest = _ranked(known, rises)
    word = "lowest" if rises is False else "highest"
    further = beside.of(best) if beside else ""
    shown = f"{measure.show(fmean(known[best]))}{_few(values[best])}{further}"
    first = f"{best} has the {word} {measure.name}{_those(known)}, {shown}"
    others = dict.fromkeys(name for name in (baseline, *rest[:1]) if name in known and name != best)
    if not others:
        return f"{first}; there is nothing to compare it with."
    compared = " ".join(_against(values, best, other, measure, rises, confidence) for other in others)
    lucky = "; of many variants one is better by luck now and then" if len(known) > 2 else ""
    return f"{first}. {compared[:-1]}{lucky}."


def _those(known: Mapping[str, Sequence[float]]) -> str:
    """Return among which variants the best one is looked for, if not among all."""
    uneven = len({len(found) for found in known.values()}) > 1
    return " of those with figures in the most seeds" if uneven else ""


def _ranked(known: Mapping[str, Sequence[float]], rises: bool | None) -> list[str]:
    """Return variants, those with the most figures first, and of these the best."""
    sign = -1 if rises is False else 1
    return sorted(known, key=lambda name: (len(known[name]), sign * fmean(known[name])), reverse=True)


def _with_figures(values: Mapping[str, Seeds]) -> dict[str, list[float]]:
    return {name: found for name, seeds in values.items() if (found := _known(seeds))}


def _known(seeds: Seeds) -> list[float]:
    return [value for value in seeds.values() if value is not None]


def _few(seeds: Seeds) -> str:
    """Return in how many seeds there is a figure, if not in all."""
    count = len(_known(seeds))
    return "" if count == len(seeds) else f" ({count} of {len(seeds)} seeds)"


def _against(
    values: Mapping[str, Seeds], best: str, other: str, measure: Measure, rises: bool | None, confidence: float
) -> str:
    """Return how the best variant differs from another one, as a sentence."""
    seeds = [seed for seed in values[best] if seed in values[other]]
    mine, theirs = ([values[name][seed] for seed in seeds] for name in (best, other))
    found = paired(mine, theirs, confidence)
    other = f"{other}{_few(values[other])}"
    if found is None:
        return f"Against {other}: no pairs of runs with the same seed."
    if found.half is None:
        return f"Against {other}: {_signed(found.mean, measure)} in one pair of runs, which tells no interval."
    if found.mean == 0 and found.half == 0:
        return f"It is equal to {other} ({found.n} pairs)."
    return _told(found, other, measure, rises, confidence)


def _told(found: Interval, other: str, measure: Measure, rises: bool | None, confidence: float) -> str:
    """Return what a difference from another variant says, with its interval."""
    ends = (found.low or 0.0, found.high or 0.0)
    sure = f"({confidence:.0%} interval {{}} to {{}}, {found.n} pairs)"
    if found.apart:
        shown = sure.format(*map(measure.show, sorted(map(abs, ends))))
        return f"It is {comparative(found.mean, rises)} than {other} by {measure.show(abs(found.mean))} {shown}."
    shown = sure.format(*(_signed(end, measure) for end in ends))
    return f"Against {other} it is too close to tell which is better: {_signed(found.mean, measure)} {shown}."


def comparative(difference: float, rises: bool | None) -> str:
    """Return what a variant is whose measure differs so much from another one's; `rises`: whether higher is better."""
    if rises is None:
        return "higher" if difference > 0 else "lower"
    return "better" if (difference > 0) == rises else "worse"


def _signed(value: float, measure: Measure) -> str:
    return f"{'+' if value >= 0 else ''}{measure.show(value)}"

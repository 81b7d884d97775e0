"""What a study answers, in a sentence or two: the best variant, its difference from others, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from fedactors.study.run_figures import Measure
from fedactors.study.statistics import Interval, paired

Seeds = Mapping[int, float | None]  # a measure by seed; None where a run has none


def best_variant(
    values: Mapping[str, Seeds], baseline: str | None, measure: Measure, rises: bool | None, confidence: float
) -> str:
    """Return which variant is best in a measure, and by how much, in pairs of runs with the same seed.

    The best variant is compared with the baseline, if there is one, and with the second best. Without better and worse
    (`rises` is None), the highest one is named.
    """
    means = {name: fmean(known) for name, seeds in values.items() if (known := _known(seeds))}
    if not means:
        return f"No variant has a figure of {measure.name}."
    ranked = sorted(means, key=lambda name: means[name], reverse=rises is not False)
    best = ranked[0]
    word = "highest" if rises is not False else "lowest"
    first = f"{best} has the {word} {measure.name}, {measure.show(means[best])}"
    others = dict.fromkeys([*([baseline] if baseline in means else []), *ranked[1:2]])
    compared = [_against(values, best, other, measure, confidence) for other in others if other not in (best, None)]
    if not compared:
        return f"{first}; there is nothing to compare it with."
    lucky = "; of many variants one is better by luck now and then" if len(means) > 2 else ""
    return f"{first}. {' '.join(compared)[:-1]}{lucky}."


def _known(seeds: Seeds) -> list[float]:
    return [value for value in seeds.values() if value is not None]


def _against(values: Mapping[str, Seeds], best: str, other: str, measure: Measure, confidence: float) -> str:
    """Return how the best variant differs from another one, as a sentence."""
    seeds = [seed for seed in values[best] if seed in values[other]]
    mine, theirs = ([values[name][seed] for seed in seeds] for name in (best, other))
    found = paired(mine, theirs, confidence)
    if found is None:
        return f"Against {other}: no pairs of runs with the same seed."
    if found.half is None:
        return f"Against {other}: {_signed(found.mean, measure)} in one pair of runs, which tells no interval."
    return f"{_verdict(found)} {other}: {_difference(found, measure, confidence)}."


def _verdict(found: Interval) -> str:
    if found.mean == 0 and found.half == 0:
        return "It is equal to"
    return "It differs from" if found.apart else "It is too close to tell from"


def _difference(found: Interval, measure: Measure, confidence: float) -> str:
    low, high = (_signed(end or 0.0, measure) for end in (found.low, found.high))
    return f"{_signed(found.mean, measure)} ({confidence:.0%} interval {low} to {high}, {found.n} pairs)"


def _signed(value: float, measure: Measure) -> str:
    return f"{'+' if value >= 0 else ''}{measure.show(value)}"

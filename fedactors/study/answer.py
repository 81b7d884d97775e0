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
    compared = [
        _against(values, best, other, measure, rises, confidence) for other in others if other not in (best, None)
    ]
    if not compared:
        return f"{first}; there is nothing to compare it with."
    lucky = "; of many variants one is better by luck now and then" if len(means) > 2 else ""
    return f"{first}. {' '.join(compared)[:-1]}{lucky}."


def _known(seeds: Seeds) -> list[float]:
    return [value for value in seeds.values() if value is not None]


def _against(
    values: Mapping[str, Seeds], best: str, other: str, measure: Measure, rises: bool | None, confidence: float
) -> str:
    """Return how the best variant differs from another one, as a sentence."""
    seeds = [seed for seed in values[best] if seed in values[other]]
    mine, theirs = ([values[name][seed] for seed in seeds] for name in (best, other))
    found = paired(mine, theirs, confidence)
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
        return f"It is {_word(found.mean, rises)} than {other} by {measure.show(abs(found.mean))} {shown}."
    shown = sure.format(*(_signed(end, measure) for end in ends))
    return f"Against {other} it is too close to tell which is better: {_signed(found.mean, measure)} {shown}."


def _word(difference: float, rises: bool | None) -> str:
    """Return what a variant is whose measure differs so much from another one's."""
    if rises is None:
        return "higher" if difference > 0 else "lower"
    return "better" if (difference > 0) == rises else "worse"


def _signed(value: float, measure: Measure) -> str:
    return f"{'+' if value >= 0 else ''}{measure.show(value)}"

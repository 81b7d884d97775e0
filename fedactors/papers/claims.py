"""Functions that make claims: a comparison of figures of a table, its verdict, and the figures in its text.

A margin or tolerance is part of the claim and stated before the run; an interval decides whether the difference is
clear of it. The interval is Student's t over the differences of pairs (same seed), two-sided 90 %: a claim about a
direction that is wrong holds in one of twenty cases at most. With one seed there is no interval, and a claim can fail
but not hold. Where a figure is missing, or nothing is compared, the verdict is "not learnt".

The best of several figures is above a line by chance more often than one of them is. Such claims say from how many it
was chosen (`chosen_from`), and their interval is as wide as for so many comparisons (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

from fedactors.papers.experiment import Label, ResultTable
from fedactors.papers.figures import Figure, Number, faults_of, figure, highest, lowest, span_of
from fedactors.papers.verdicts import Claim, ClaimVerdict, SeedMean
from fedactors.study.statistics import interval, proportion_interval

CONFIDENCE = 0.9
_ROUNDING = 1e-11  # of margins: 63 <= .7 x 90 is so

_NOTHING = "there is nothing to compare"
_WORST = (ClaimVerdict.NOT_LEARNT, ClaimVerdict.FAILS, ClaimVerdict.TOO_CLOSE, ClaimVerdict.HOLDS)


def more(
    text: str,
    left: Figure | Number,
    right: Figure | Number,
    by: float = 0.0,
    *,
    chosen_from: int = 1,
    asserted: bool = True,
) -> Claim:
    """Claim left > right + by."""
    margin = f" {'+' if by > 0 else '-'} {abs(by):g}" if by else ""
    said = f"{left:.3f} > {right:.3f}{margin}"
    return _claim(text, said, [figure(left - right - by)], asserted, chosen_from=chosen_from)


def all_more(text: str, values: Sequence[Figure], line: Figure | Number, *, asserted: bool = True) -> Claim:
    """Claim value > line of each of the values."""
    margins = [figure(value - line) for value in values]
    return _claim(text, f"{lowest(values):.3f} > {figure(line):.3f}", margins, asserted)


def less(
    text: str, left: Figure | Number, right: Figure | Number, share: float = 1.0, *, asserted: bool = True
) -> Claim:
    """Claim left < share * right."""
    scaled = f"{share:g} x " if share != 1.0 else ""
    return _claim(text, f"{left:.3g} < {scaled}{right:.3g}", [figure(right * share - left)], asserted)


def at_least(text: str, left: Figure | Number, right: Figure | Number, *, asserted: bool = True) -> Claim:
    """Claim left >= right: equal figures satisfy it."""
    return _claim(text, f"{left:.3f} >= {right:.3f}", [figure(left - right)], asserted, strict=False)


def at_most(
    text: str, left: Figure | Number, right: Figure | Number, share: float = 1.0, *, asserted: bool = True
) -> Claim:
    """Claim left <= share * right."""
    scaled = f"{share:g} x " if share != 1.0 else ""
    return _claim(text, f"{left:.3g} <= {scaled}{right:.3g}", [figure(right * share - left)], asserted, strict=False)


def narrow(
    text: str, values: Sequence[Figure | Number], most: float, *, chosen_from: int = 1, asserted: bool = True
) -> Claim:
    """Claim max - min < most, of the means."""
    gaps = [abs(figure(a - b)) for a, b in combinations(values, 2)]
    margins = [most - gap for gap in gaps]
    return _claim(text, f"{highest(gaps):.3f} < {most:g}", margins, asserted, chosen_from=chosen_from)


def rising(text: str, values: Sequence[Figure | Number], *, asserted: bool = True) -> Claim:
    """Claim that values increase strictly."""
    margins = [figure(high - low) for low, high in pairwise(values)]
    return _claim(text, " < ".join(f"{value:.3f}" for value in values), margins, asserted)


def printed(
    text: str,
    ours: Figure | Number,
    theirs: float,
    within: float,
    digits: int = 3,
    *,
    chosen_from: int = 1,
    asserted: bool = True,
) -> Claim:
    """Claim that ours is a number that the paper prints, within a tolerance."""
    margin = within - abs(figure(ours) - theirs)
    said = f"{ours:.{digits}f} = {theirs:.{digits}f} within {within:.4g}"
    claim = _claim(text, said, [margin], asserted, strict=False, chosen_from=chosen_from)
    return claim._replace(paper=theirs, found=_seed_mean(figure(ours)))


def counted(text: str, count: int, of: int, least: float, behind: Sequence[Figure], *, asserted: bool = True) -> Claim:
    """Claim that something is so in at least a share of all repeats, found with the figures `behind` it.

    The exact interval of the share decides: so in all of three repeats does not show that it is so in most.
    """
    if why := _absent(behind) or ("" if of else _NOTHING):
        return Claim(text, f"{count} of {of}; {why}", ClaimVerdict.NOT_LEARNT, asserted)
    share = proportion_interval(count, of, CONFIDENCE)
    verdict = ClaimVerdict.HOLDS if share.low >= least else ClaimVerdict.TOO_CLOSE
    ours = f"{count} of {of}: a share of {share.low:.2f} to {share.high:.2f}"
    return Claim(text, ours, verdict if share.high >= least else ClaimVerdict.FAILS, asserted)


def observed(text: str, ours: str, holds: bool, behind: Sequence[Figure], *, asserted: bool = True) -> Claim:
    """Claim what is exactly so or not, found with the figures `behind` it; nothing is so without any."""
    if why := _absent(behind):
        return Claim(text, f"{ours}; {why}", ClaimVerdict.NOT_LEARNT, asserted)
    return Claim(text, ours, ClaimVerdict.HOLDS if holds else ClaimVerdict.FAILS, asserted)


def reported(claims: Sequence[Claim]) -> list[Claim]:
    """Return the claims as reported, not asserted."""
    return [claim._replace(asserted=False) for claim in claims]


def span(table: ResultTable, measure: str, axis: str, **labels: Label) -> Figure:
    """Return max - min of a measure along an axis, seed by seed: no mean is chosen as the highest or the lowest."""
    return span_of(table.mean(measure, **labels, **{axis: label}) for label in table.labels(axis))


def _claim(
    text: str, ours: str, margins: Sequence[Figure], asserted: bool, strict: bool = True, chosen_from: int = 1
) -> Claim:
    """Judge a claim by its margins, how far figures are on the claim's side of the line: it is as good as its worst."""
    if why := _absent(margins):
        return Claim(text, f"{ours}; {why}", ClaimVerdict.NOT_LEARNT, asserted)
    found = [one for margin in margins if (one := _seed_mean(margin, chosen_from))]
    verdict, margin = min(
        ((_verdict(one, strict), one) for one in found), key=lambda pair: (_WORST.index(pair[0]), pair[1].mean)
    )
    return Claim(text, f"{ours}; {_said(margin)}", verdict, asserted, margin)


def _absent(figures: Sequence[Figure]) -> str:
    """Return what is missing or was not learnt; nothing if all is there."""
    if not figures:
        return _NOTHING
    if faults := faults_of(figures):
        further = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
        return faults[0] + further
    lacking = max(figures, key=lambda one: (one.missing, one.lacking))
    repeats = f"{lacking.lacking} of {len(lacking.values)} repeats"
    return f"a figure is missing: never reached or not measured in {repeats}" if lacking.missing else ""


def _verdict(margin: SeedMean, strict: bool) -> ClaimVerdict:
    half = margin.half or 0.0
    low, high = margin.mean - half, margin.mean + half
    inside = low > _ROUNDING or (not strict and low >= -_ROUNDING)
    if inside and margin.half is not None:
        return ClaimVerdict.HOLDS
    return ClaimVerdict.FAILS if high <= _ROUNDING and not inside else ClaimVerdict.TOO_CLOSE


def _seed_mean(found: Figure, chosen_from: int = 1) -> SeedMean | None:
    """Return the mean and its interval, of a figure that was chosen from so many; None if a value is missing."""
    if found.missing:
        return None
    confidence = 1 - (1 - CONFIDENCE) / chosen_from
    of = interval([value for value in found.values if value is not None], confidence)
    return None if of is None else SeedMean(of.mean, of.half, of.n)


def _said(margin: SeedMean) -> str:
    wide = f" +- {margin.half:.2g}, {margin.seeds} seeds" if margin.half is not None else ", one seed"
    return f"margin {margin.mean:+.3g}{wide}"

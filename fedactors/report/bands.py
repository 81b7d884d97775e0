"""Curves of several runs that belong together: their mean, in a band that tells how sure it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fedactors.report.curves import progressing
from fedactors.report.figure import Chart, blank, hover, legend
from fedactors.report.measures import Floats, every
from fedactors.report.palette import run_line
from fedactors.report.progress_axes import AXES, ProgressAxis, axes, progress
from fedactors.run_files.records import Records

Ends = Callable[[Sequence[float]], tuple[float, float]]  # of a mean's confidence interval; NaN if it has none
_POINTS = 600


def mean_curve(runs: Sequence[Records], column: str) -> tuple[Floats, Floats, dict[str, Floats]]:
    """Return (rounds, values of each run `(runs, rounds)`, means of each axis at these rounds).

    The rounds are those that every run has a value of `column` for.
    """
    seen = [np.flatnonzero(np.isfinite(one.metrics[column])) for one in runs]
    common = seen[0]
    for rows in seen[1:]:
        common = np.intersect1d(common, rows)
    common = common[every(len(common), _POINTS)]
    ways = [progress(one) for one in runs]
    with np.errstate(invalid="ignore"):
        means = {key: np.mean([way[key][common] for way in ways], axis=0) for key in AXES}
    values = np.array([one.metrics[column][common] for one in runs])
    return means["round"], values, means


def along(runs: Sequence[Records], column: str, against: str) -> tuple[Floats, Floats]:
    """Return (progress, values of each run `(runs, points)`) of a `column` along an axis of `AXES` other than rounds.

    A value stands until the next one is known, so a curve is a stair. There is nothing before every run has its first
    value, and nothing beyond the end of the shortest.
    """
    stairs = [(progress(one)[against], one.metrics[column]) for one in runs]
    stairs = [(x[known], y[known]) for x, y in stairs if (known := np.isfinite(x) & np.isfinite(y)).any()]
    if len(stairs) < len(runs) or not runs:
        return np.zeros(0), np.zeros((0, 0))
    first, last = max(x[0] for x, _ in stairs), min(x[-1] for x, _ in stairs)
    points = np.unique(np.concatenate([x for x, _ in stairs]))
    points = points[(points >= first) & (points <= last)]
    points = points[every(len(points), _POINTS)]
    return points, np.array([y[np.searchsorted(x, points, side="right") - 1] for x, y in stairs])


def accuracy(
    variants: Mapping[str, Sequence[Records]],
    ends: Ends,
    column: str = "accuracy",
    name: str = "accuracy on the test set",
) -> Chart | None:
    """Return means of a `column` of accuracies over progress, a line in a band for each variant; none if it is empty.

    `name` says at the axis what they are. Lines look as those of the variants' places in `variants`, also where one
    before was never evaluated.
    """
    from bokeh.models import NumeralTickFormatter

    drawn = {variant: runs for variant, runs in variants.items() if runs and _evaluated(runs, column)}
    if not drawn:
        return None
    every_run = [one for runs in drawn.values() for one in runs]
    ways = axes(every_run)
    made = blank(340, "round", name)
    made.yaxis.formatter = NumeralTickFormatter(format="0%")
    made.xaxis.tags = ["progress"]
    looks = {variant: run_line(k) for k, variant in enumerate(variants)}
    lasts = [_variant(made, one, (runs, column), ends, ways, looks[one]) for one, runs in drawn.items()]
    legend(made, "bottom_right")
    progressing(made, every_run)
    said = "; ".join(f"{variant} ends at {last:.1%}" for variant, last in zip(drawn, lasts, strict=True))
    text = "Mean over seeds, and its confidence interval (on the scale of logits, so it stays within 0 and 100 %)."
    text += " Other axes show the mean progress at each round."
    return Chart("bands", "Accuracy", text, made, f"Mean accuracy against progress: {said}.")


def _evaluated(runs: Sequence[Records], column: str) -> bool:
    return bool(len(mean_curve(runs, column)[0]))


def _variant(
    made: Any,
    name: str,
    shown: tuple[Sequence[Records], str],
    ends: Ends,
    ways: list[ProgressAxis],
    look: tuple[str, str],
) -> float:
    """Draw a column of the metrics of a variant's runs, which are `shown`; return its last mean."""
    from bokeh.models import ColumnDataSource

    rounds, values, means = mean_curve(*shown)
    middle = values.mean(axis=0)
    low, high = np.array([ends(column.tolist()) for column in values.T]).T
    color, dash = look
    columns = {way.key: means[way.key] / way.scale for way in ways}
    data = {"x": rounds, "y": middle, "low": low, "high": high}
    source = ColumnDataSource(data | columns, tags=["switch"])
    if np.isfinite(low).all():
        made.varea("x", "low", "high", source=source, fill_color=color, fill_alpha=0.16, legend_label=name)
    line = made.line("x", "y", source=source, color=color, line_width=2, line_dash=dash, legend_label=name, name=name)
    tips = [("", "$name"), ("accuracy", "@y{0.0%}"), ("from", "@low{0.0%}"), ("to", "@high{0.0%}")]
    made.add_tools(hover([*tips, *((way.label, f"@{way.key}{{0,0.[00]}}") for way in ways)], [line], mode="vline"))
    return float(middle[-1])


def differences(
    found: Sequence[tuple[str, float, float | None]], baseline: str, name: str, variants: Sequence[str]
) -> Chart | None:
    """Return differences from the baseline as points with whiskers: (variant, mean, half width) each.

    They have the colours and dashes of the lines of all `variants`, in whose order the baseline may stand anywhere.
    """
    from bokeh.models import ColumnDataSource
    from bokeh.models.annotations import Span

    if not found:
        return None
    names = [variant for variant, _, _ in found]
    middle = np.array([mean for _, mean, _ in found])
    width = np.array([np.nan if half is None else half for _, _, half in found])
    data = {"y": names, "mean": middle, "low": middle - width, "high": middle + width}
    across = _with_zero(np.concatenate([middle, data["low"], data["high"]]))
    look = {"x_range": across, "y_range": names[::-1]}
    made = blank(max(140, 60 + 44 * len(found)), f"{name}: difference from {baseline}", "", **look)
    zero = Span(location=0, dimension="height", line_width=1, line_dash="dashed", tags=["muted"])
    made.add_layout(zero)
    looks = [run_line(variants.index(variant)) for variant in names]
    source = ColumnDataSource(data | {"color": [color for color, _ in looks], "dash": [dash for _, dash in looks]})
    made.segment("low", "y", "high", "y", source=source, line_width=3, color="color", line_dash="dash")
    points = made.scatter("mean", "y", source=source, size=11, color="color")
    tips = [("", "@y"), ("difference", "@mean{+0.0000}"), ("from", "@low{+0.0000}"), ("to", "@high{+0.0000}")]
    made.add_tools(hover(tips, [points]))
    said = "; ".join(f"{variant} {mean:+.3f}" for variant, mean, _ in found)
    text = "Seed by seed: what both variants had to face cancels. A whisker that leaves out 0 is a difference."
    return Chart("differences", "Differences in pairs", text, made, f"Differences from {baseline}: {said}.")


def _with_zero(values: Floats) -> tuple[float, float]:
    """Return the ends of an axis that shows all finite values, and 0, with room beside them."""
    known = [0.0, *values[np.isfinite(values)].tolist()]
    low, high = min(known), max(known)
    room = 0.05 * (high - low) or 0.01
    return low - room, high + room

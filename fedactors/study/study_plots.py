"""Studies drawn with matplotlib, for notebooks and papers. It is an extra: `pip install fedactors[notebook]`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedactors.extras import needed
from fedactors.report.bands import along, mean_curve
from fedactors.report.heat import SHADES
from fedactors.report.measures import Floats
from fedactors.report.palette import RUNS
from fedactors.report.progress_axes import ProgressAxis
from fedactors.report.run_plots import new_axes, way
from fedactors.run_files.records import Records
from fedactors.study.heat_map import HeatMap
from fedactors.study.run_figures import Measure
from fedactors.study.statistics import share_interval

_ACROSS = 4  # heat maps side by side


def accuracies(
    variants: Mapping[str, Sequence[Records]],
    confidence: float,
    title: str,
    axes: Any = None,
    against: str = "round",
    column: str = "accuracy",
    name: str = "accuracy on the test set",
) -> Any:
    """Draw means of a `column` of accuracies against progress, each in the band of its interval; return the axes.

    `name` says at the axis what they are.

    Over rounds they are lines through the rounds that all seeds have; see `along` for other axes. Raises RunFolderError
    if the runs cannot be drawn against that.
    """
    axes = new_axes(axes, 4)
    every_run = [one for runs in variants.values() for one in runs]
    across = way(every_run, against) if every_run else ProgressAxis(against, against, against, 1.0)
    step = None if against == "round" else "post"
    for k, (variant, runs) in enumerate(variants.items()):
        x, values = _curve(runs, column, against)
        if not len(x):
            continue
        x, color = x / across.scale, RUNS[k % len(RUNS)]
        axes.plot(x, values.mean(axis=0), color=color, label=variant, drawstyle="steps-post" if step else "default")
        low, high = np.array([_ends(column.tolist(), confidence) for column in values.T]).T
        axes.fill_between(x, low, high, color=color, alpha=0.16, linewidth=0, step=step)
    axes.set(xlabel=across.label, ylabel=name, title=title)
    axes.legend(frameon=False)
    return axes


def _curve(runs: Sequence[Records], column: str, against: str) -> tuple[Floats, Floats]:
    """Return (progress, accuracies of each run `(runs, points)`); nothing where there are no runs."""
    if not runs or against != "round":
        return along(runs, column, against)
    return mean_curve(runs, column)[:2]


def _ends(values: list[float], confidence: float) -> tuple[float, float]:
    """Return the ends of the interval of shares; where there is none, their mean."""
    found = share_interval(values, confidence)
    if found is None or found.low is None or found.high is None:
        return values[0], values[0]
    return found.low, found.high


def heat_maps(maps: Sequence[HeatMap], measure: Measure, figure: Any = None) -> Any:
    """Draw heat maps of a `measure`, up to four side by side, in shades that they share; return the figure."""
    plt = needed("matplotlib.pyplot", "notebook")
    colors = needed("matplotlib.colors", "notebook")
    across = min(len(maps), _ACROSS)
    down = -(-len(maps) // _ACROSS)
    figure = figure or plt.figure(figsize=(1.2 + 3.4 * across, 3.4 * down), layout="constrained")
    shades = colors.LinearSegmentedColormap.from_list("shades", SHADES)
    grid = _places(figure.subplots(down, across, squeeze=False).ravel(), len(maps))
    low, high = (f(np.concatenate([one.values.ravel() for one in maps])) for f in (np.nanmin, np.nanmax))
    drawn = None
    for axes, one in zip(grid, maps, strict=True):
        drawn = axes.imshow(one.values, cmap=shades, vmin=low, vmax=high, origin="lower", aspect="auto")
        axes.set_xticks(range(len(one.across.values)), [str(label) for label in one.across.values])
        axes.set_yticks(range(len(one.up.values)), [str(label) for label in one.up.values])
        axes.set(xlabel=one.across.name, ylabel=one.up.name, title=", ".join(map(str, one.at.values())))
        for (y, x), value in np.ndenumerate(one.values):
            if np.isfinite(value):
                ink = "black" if value - low > 0.55 * (high - low) else "white"
                axes.text(x, y, measure.show(value), ha="center", va="center", color=ink, fontsize=8)
    figure.colorbar(drawn, ax=list(grid), label=measure.name)
    return figure


def _places(every: Any, count: int) -> Any:
    """Return the first `count` of some axes, and remove the others."""
    for unused in every[count:]:
        unused.remove()
    return every[:count]

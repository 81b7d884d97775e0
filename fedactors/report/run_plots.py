"""Pictures of a run with matplotlib, for notebooks and papers; the page has more of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedactors.errors import RunFolderError, suggestion
from fedactors.extras import needed
from fedactors.plan import SECOND
from fedactors.report.measures import Counts, by_hour, every, outcomes_per_round, steps_done
from fedactors.report.palette import OUTCOME, label
from fedactors.report.progress_axes import ProgressAxis, axes, progress
from fedactors.run_files.records import OUTCOMES, Records


def new_axes(given: Any, height: float = 3.6) -> Any:
    """Return the axes that are given, or new ones, whose labels have room in a file too."""
    if given is not None:
        return given
    return needed("matplotlib.pyplot", "notebook").figure(figsize=(6.4, height), layout="constrained").subplots()


def way(runs: Sequence[Records], against: str) -> ProgressAxis:
    """Return the axis of this name, in a unit for all `runs`. Raises RunFolderError if they cannot be drawn so."""
    ways = {way.key: way for way in axes(runs)}
    if against not in ways:
        raise RunFolderError(f'no axis "{against}"{suggestion(against, ways)}')
    return ways[against]


def curve(records: Records, column: str, against: str, given: Any, look: Mapping[str, Any]) -> Any:
    """Draw one figure of each round against progress. Raises RunFolderError if it cannot be drawn so."""
    across = way([records], against)
    drawn, values = new_axes(given), records.metrics[column]
    rows = np.flatnonzero(np.isfinite(values))
    if not len(rows):
        raise RunFolderError(f"{records.path}: {column} was never evaluated")
    x = progress(records)[against][rows] / across.scale
    drawn.plot(x, values[rows], **{"label": records.name, **look})
    drawn.set(xlabel=across.label, ylabel=column)
    return drawn


def participation(records: Records, given: Any) -> Any:
    """Draw what became of everybody asked, stacked by round."""
    x, width, counts = outcomes_per_round(records, 400)
    return _stacked(new_axes(given), x, width, counts, "round", "clients asked")


def steps(records: Records, given: Any) -> Any:
    """Draw the histogram of the share of the wanted steps that was done."""
    drawn = _stacked(
        new_axes(given), np.arange(11.0), 0.9, steps_done(records), "steps done, % of those wanted", "trips"
    )
    drawn.set_xticks(range(11), [*(f"{10 * tenth}" for tenth in range(10)), "all"])
    return drawn


def hours(records: Records, given: Any) -> Any:
    """Draw trips by the hour in which they began."""
    return _stacked(
        new_axes(given), np.arange(24.0), 0.9, by_hour(records), "hour of the virtual day", "trips, mean of the days"
    )


def _stacked(drawn: Any, x: Any, width: float, counts: Counts, x_label: str, y_label: str) -> Any:
    foot = np.zeros(len(x))
    for name, values in counts.items():
        drawn.bar(x, values, width, bottom=foot, color=OUTCOME[name], label=label(name))
        foot = foot + values
    drawn.set(xlabel=x_label, ylabel=y_label)
    if counts:
        drawn.legend(frameon=False, fontsize="small")
    return drawn


def timeline(records: Records, given: Any, devices: int) -> Any:
    """Draw a row per device and a bar per trip, of devices evenly spread over those that were asked."""
    asked = np.unique(records.orders["client"])
    shown = asked[every(len(asked), devices)]
    drawn = new_axes(given, 1.2 + 0.11 * len(shown))
    orders = records.orders
    for code, name in enumerate(OUTCOMES):
        rows = np.flatnonzero(np.isin(orders["client"], shown) & (orders["outcome"] == code))
        if len(rows):
            began = orders["started"][rows] / SECOND
            lengths = orders["finished"][rows] / SECOND - began
            place = np.searchsorted(shown, orders["client"][rows])
            drawn.barh(place, lengths, left=began, height=0.8, color=OUTCOME[name], label=label(name))
    drawn.set(xlabel="virtual time (seconds)", ylabel="device", ylim=(len(shown) - 0.4, -0.6))
    ticks = every(len(shown), 12)
    drawn.set_yticks(ticks, [str(shown[k]) for k in ticks])
    if len(shown):
        drawn.legend(frameon=False, fontsize="small")
    return drawn

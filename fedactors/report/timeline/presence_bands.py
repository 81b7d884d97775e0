"""When devices were on: their windows as a run folder has them, and shares by time of day."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedactors.durations import DAY, HOUR
from fedactors.report.figure import Chart, blank, hover
from fedactors.report.measures import Floats, Ints, virtual_span
from fedactors.run_files.files import damaged
from fedactors.run_files.records import Records
from fedactors.run_files.tables import columns_of

_SHOWN_FROM = 2 * 3600.0


@dataclass(frozen=True)
class WindowTable:
    """Windows of devices in columns, one row per window, ascending; `sampled` are devices of the even sample."""

    client: Ints
    on: Ints
    off: Ints
    sampled: Ints
    known: Ints  # devices whose windows are here, also those that have none


def read(folder: Path) -> WindowTable | None:
    """Return the windows of a run folder; None if none were written. Raises RunFolderError if they are damaged."""
    path = folder / "windows.parquet"
    if not path.exists():
        return None
    import pyarrow as pa
    import pyarrow.compute as pc

    table = columns_of(path, ("client", "sampled", "on", "off"))
    try:
        client = table["client"].to_numpy()
        counts = pc.list_value_length(table["on"]).to_numpy()
        on, off = (pc.list_flatten(table[name]).to_numpy() for name in ("on", "off"))
        sampled = client[table["sampled"].to_numpy(zero_copy_only=False)]
    except (pa.ArrowException, IndexError) as error:  # columns of other types
        raise damaged(path, str(error).splitlines()[0]) from None
    if len(on) != len(off):
        raise damaged(path, "on and off differ in length")
    return WindowTable(np.repeat(client, counts), on, off, sampled, client)


def by_hour(windows: WindowTable, end: int) -> Floats:
    """Return the share of the sampled devices that was on, in each of the 24 hours of the virtual day.

    Hours that the `end` ns of the run did not reach are NaN.
    """
    mine = np.isin(windows.client, windows.sampled)
    on, off = windows.on[mine], np.minimum(windows.off[mine], end)
    hours = range(24)
    spent = np.array([(_within(off, hour) - _within(on, hour)).sum() for hour in hours], np.float64)
    there = np.array([_within(np.array([end]), hour)[0] for hour in hours], np.float64) * len(windows.sampled)
    shares: Floats = np.divide(spent, there, out=np.full(24, np.nan), where=there > 0)
    return shares


def _within(time: Ints, hour: int) -> Ints:
    """Return how much of [0, time) fell into an hour of the day, ns."""
    inside: Ints = time // DAY * HOUR + np.clip(time % DAY - hour * HOUR, 0, HOUR)
    return inside


def hours(records: Records) -> Chart | None:
    """Return availability against time of day; none without windows, or for runs too short to have hours."""
    windows = read(records.path)
    if windows is None or not len(windows.sampled) or virtual_span(records) < _SHOWN_FROM:
        return None
    share = by_hour(windows, int(records.plans["ready"].max(initial=0)))
    made = blank(260, "hour of the virtual day (0 is when the scenario begins)", "devices that are on")
    from bokeh.models import NumeralTickFormatter

    bars = made.vbar(x=np.arange(24.0), top=np.nan_to_num(share), width=0.86, color="#6a9f3c", line_color=None)
    made.add_tools(hover([("hour", "@x{0}"), ("on", "@top{0.0%}")], [bars]))
    made.xaxis.ticker = list(range(0, 24, 2))
    made.yaxis.formatter = NumeralTickFormatter(format="0%")
    made.y_range.start = 0
    text = f"Share of the time on, of {len(windows.sampled):,} devices evenly spread over the population."
    low, high = float(np.nanmin(share)), float(np.nanmax(share))
    return Chart("available", "Availability", text, made, f"Availability by hour: {low:.0%} to {high:.0%}.")

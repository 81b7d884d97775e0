"""What in a recording is possible and yet most likely a mistake: said by `describe`, never changed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fedactors.durations import DAY
from fedactors.traces import device_tables
from fedactors.traces.describe import shown_time
from fedactors.traces.device_tables import DeviceTable, Matrix
from fedactors.traces.series import BYTES_PER_SECOND, Series
from fedactors.traces.source import shown
from fedactors.traces.timeline import Int64, Timeline

_YEAR = 365 * DAY
FASTEST = 125_000_000_000  # bytes/s: 1 Tbit/s
_MOST = 5  # rows that are named for one doubt


def doubts(recording: Timeline | Series | DeviceTable | Matrix) -> list[str]:
    """Return a line for each thing that is most likely a mistake."""
    if isinstance(recording, Timeline):
        return list(_of_windows(recording))
    if isinstance(recording, Series):
        return [*_of_rates(recording), *_of_long_pieces(recording)]
    if isinstance(recording, DeviceTable):
        return list(_of_table(recording))
    return []


def _of_windows(timeline: Timeline) -> Iterator[str]:
    """Yield how long the recording begins without a window, if it is years, and the longest hole, if it is days."""
    if not len(timeline.on):
        return
    order = np.argsort(timeline.on, kind="stable")
    on, reach = timeline.on[order], np.maximum.accumulate(timeline.off[order])
    wait = int(on[0] - timeline.first.min())
    if wait >= _YEAR:
        hint = "are its times unix times? then first and last should be given too"
        yield f"no device is on in the first {shown_time(wait)}: {hint}"
    holes = on[1:] - reach[:-1]
    if len(holes) and holes.max() >= DAY:
        k = int(holes.argmax())
        count = int((holes >= DAY).sum())
        where = f"the longest {shown_time(int(holes[k]))}, from {shown_time(int(reach[k]))} after the epoch"
        yield f"{count} holes of a day or more in which no device is on, {where}"


def _of_rates(series: Series) -> Iterator[str]:
    if series.unit != BYTES_PER_SECOND:
        return
    rows = np.repeat(np.arange(len(series)), np.diff(series.starts))
    for row in np.unique(rows[series.value > FASTEST])[:_MOST].tolist():
        peak = int(series.value[series.starts[row] : series.starts[row + 1]].max())
        yield f"row {shown(series.names[row])}: {_too_fast(peak)}"


def _of_long_pieces(series: Series) -> Iterator[str]:
    """Yield the rows in which one of several values holds for days: nothing was recorded then."""
    ends: Int64 = np.append(series.at[1:], 0)
    ends[series.starts[1:] - 1] = series.end
    lengths = ends - series.at
    several = np.repeat(np.diff(series.starts) > 1, np.diff(series.starts))
    rows = np.repeat(np.arange(len(series)), np.diff(series.starts))
    for row in np.unique(rows[several & (lengths >= DAY)])[:_MOST].tolist():
        part = slice(int(series.starts[row]), int(series.starts[row + 1]))
        k = part.start + int(lengths[part].argmax())
        name, lasts = f"row {shown(series.names[row])}", shown_time(int(lengths[k]))
        if k == part.start and not series.value[k] and lengths[k] >= _YEAR:
            yield f"{name}: nothing moves in the first {lasts}: are its times unix milliseconds?"
        else:
            yield f"{name}: one value holds for {lasts}, from {shown_time(int(series.at[k]))} on"


def _of_table(table: DeviceTable) -> Iterator[str]:
    for name in (device_tables.DOWN, device_tables.UP):
        if name in table.columns and (table.columns[name] > FASTEST).any():
            k = int(table.columns[name].argmax())
            yield f"device {shown(table.names[k])}: {name}: {_too_fast(int(table.columns[name][k]))}"
    columns = list(table.columns.items())
    for place, (name, values) in enumerate(columns):
        for other, others in columns[:place]:
            if len(table) > 1 and {name, other} != {device_tables.DOWN, device_tables.UP} and (values == others).all():
                yield f"columns {other} and {name} hold the same"


def _too_fast(rate: int) -> str:
    return f"{rate:,} bytes/s are more than 1 Tbit/s: is the unit right?"

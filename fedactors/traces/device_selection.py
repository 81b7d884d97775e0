"""Some devices of a recording, as a recording."""

from __future__ import annotations

import numpy as np

from fedactors.errors import TraceError
from fedactors.traces.device_tables import DeviceTable, Matrix
from fedactors.traces.series import Series
from fedactors.traces.timeline import Int64, Timeline

Recording = Timeline | Series | DeviceTable | Matrix


def select(recording: Recording, rows: Int64) -> Recording:
    """Return the devices numbered `rows` of `recording`, in that order.

    Raises TraceError if a device is wanted twice, or there is none of that number.
    """
    if len(rows) and not 0 <= rows.min() <= rows.max() < len(recording):
        raise TraceError(f"no device {rows.max()} among {len(recording)}")
    names = tuple(recording.names[row] for row in rows.tolist())
    if isinstance(recording, DeviceTable):
        columns = {name: values[rows] for name, values in recording.columns.items()}
        labels = {name: tuple(texts[row] for row in rows.tolist()) for name, texts in recording.labels.items()}
        return DeviceTable(names, columns, labels)
    if isinstance(recording, Matrix):
        return Matrix(names, recording.ns[np.ix_(rows, rows)])
    counts = np.diff(recording.starts)[rows]
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    inside = np.arange(starts[-1]) - np.repeat(starts[:-1], counts) + np.repeat(recording.starts[rows], counts)
    if isinstance(recording, Series):
        return Series(names, recording.unit, starts, recording.at[inside], recording.value[inside], recording.end[rows])
    on, off = recording.on[inside], recording.off[inside]
    first, last = recording.first[rows], recording.last[rows]
    return Timeline(names, starts, on, off, first, last, time_of_day=recording.time_of_day)

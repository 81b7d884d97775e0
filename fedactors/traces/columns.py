"""From windows as recorded to a `Timeline`: sorted, empty ones dropped, touching and overlapping ones joined.

Everything here works on whole columns, so that millions of windows take seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedactors.errors import TraceError
from fedactors.plan import NEVER, SECOND
from fedactors.traces.source import RecordingFile, RepairLog
from fedactors.traces.timeline import Int64, Timeline

DAY_SECONDS = 86_400  # s
_PIECE = 2**20  # windows that are looked at at once, so that what is made of them takes little memory


Places = NDArray[np.intp] | None  # where windows stood in the recording; None where they stand as they did


@dataclass(frozen=True)
class RecordedWindows:
    """Windows as recorded, in any order and overlap: `[on[k], off[k])` of device number `row[k]`."""

    row: Int64
    on: Int64
    off: Int64

    def keep(self, index: NDArray[np.intp] | NDArray[np.bool_]) -> RecordedWindows:
        """Return the windows that `index` selects, in its order."""
        return RecordedWindows(self.row[index], self.on[index], self.off[index])


def windows(row: ArrayLike, on: ArrayLike, off: ArrayLike) -> RecordedWindows:
    """Put three equally long sequences of integers into `RecordedWindows`."""
    return RecordedWindows(*(np.asarray(values, dtype=np.int64) for values in (row, on, off)))


def assemble(
    names: Sequence[str],
    recorded: RecordedWindows,
    seen: tuple[ArrayLike, ArrayLike],
    repair_log: RepairLog,
    place: Callable[[int], str],
    time_of_day: bool = True,
) -> Timeline:
    """Tidy `recorded` into a Timeline; `seen` holds the devices' first and last instants, `(devices,)` ns.

    `place(k)` says where window k of the recording stands, for repairs and errors. `time_of_day` says whether the
    epoch is a midnight. Raises TraceError if a
    window ends before it begins or lies outside `seen`, two devices share a name, or the repair log is strict and
    something had to be tidied.
    """
    first, last = (np.asarray(values, dtype=np.int64) for values in seen)
    _check(recorded, first, last, repair_log.source, place)
    tidy = _joined(*_sorted(*_filled(recorded, repair_log, place), repair_log, place), repair_log, place)
    counts = np.bincount(tidy.row, minlength=len(names))
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    try:
        return Timeline(tuple(names), starts, tidy.on, tidy.off, first, last, repair_log.repairs, time_of_day)
    except TraceError as error:
        raise repair_log.source.error("", str(error)) from error


def _check(w: RecordedWindows, first: Int64, last: Int64, source: RecordingFile, place: Callable[[int], str]) -> None:
    """Refuse what cannot be repaired by sorting and joining."""
    backward = np.flatnonzero(w.off < w.on)
    if len(backward):
        k = int(backward[0])
        raise source.error(place(k), f"window ends before it begins: {w.off[k]} ns after {w.on[k]} ns", "on <= off")
    unseen = _first_outside(w, first, last)
    if unseen is not None:
        k = unseen
        sight = f"first {first[w.row[k]]} ns to last {last[w.row[k]]} ns"
        raise source.error(place(k), f"window {w.on[k]}..{w.off[k]} ns outside the device's sight", sight)


def _first_outside(w: RecordedWindows, first: Int64, last: Int64) -> int | None:
    """Return the first window outside its device's sight, if there is one; looked for piece by piece."""
    for begin in range(0, len(w.on), _PIECE):
        piece = slice(begin, begin + _PIECE)
        row = w.row[piece]
        outside = np.flatnonzero((w.on[piece] < first[row]) | (w.off[piece] > last[row]))
        if len(outside):
            return begin + int(outside[0])
    return None


def from_midnight(times: Sequence[ArrayLike], repair_log: RepairLog, tick: int = SECOND) -> list[Int64]:
    """Turn columns of calendar times, in ticks of `tick` ns, into ns from midnight of the earliest day.

    Time of day is thus `t % 24 h`, whatever the recording's first instant. Raises TraceError if they
    span more than 146 years.
    """
    columns = [np.asarray(values, dtype=np.int64) for values in times]
    earliest = min((int(values.min()) for values in columns if len(values)), default=0)
    latest = max((int(values.max()) for values in columns if len(values)), default=0)
    day = DAY_SECONDS * SECOND // tick
    epoch = earliest // day * day
    if latest - epoch > NEVER // tick:
        years = (latest - epoch) // (365 * day)
        raise repair_log.source.error("", f"times span {years} years", "at most 146 years")
    return [(values - epoch) * tick for values in columns]


def _filled(w: RecordedWindows, repair_log: RepairLog, place: Callable[[int], str]) -> tuple[RecordedWindows, Places]:
    """Drop windows without length; also return where each one kept stood in the recording."""
    empty = np.flatnonzero(w.on == w.off)
    if not len(empty):
        return w, None
    repair_log.note("window without length dropped", place(int(empty[0])), count=len(empty))
    index = np.flatnonzero(w.on != w.off)
    return w.keep(index), index


def _sorted(
    w: RecordedWindows, index: Places, repair_log: RepairLog, place: Callable[[int], str]
) -> tuple[RecordedWindows, Places]:
    """Sort by device, then by time; rows of one device need not stand together."""
    if (w.row[1:] < w.row[:-1]).any():
        by_row = np.argsort(w.row, kind="stable")
        w = w.keep(by_row)
        index = _reordered(index, by_row)
    late = np.flatnonzero((w.row[1:] == w.row[:-1]) & (w.on[1:] < w.on[:-1])) + 1
    if not len(late):
        return w, index
    repair_log.note("windows out of order sorted", place(_stood(index, late[0])), count=len(late))
    order = np.lexsort((w.off, w.on, w.row))
    return w.keep(order), _reordered(index, order)


def _reordered(index: Places, order: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return where windows stood in the recording after they were put into an `order`."""
    return order if index is None else index[order]


def _stood(index: Places, k: np.intp) -> int:
    """Return where window k stood in the recording."""
    return int(k if index is None else index[k])


def _joined(w: RecordedWindows, index: Places, repair_log: RepairLog, place: Callable[[int], str]) -> RecordedWindows:
    """Join windows of one device that touch or overlap; they are sorted by start."""
    same = w.row[1:] == w.row[:-1]
    reach = _running_end(w, same)
    for kind, hit in (("touching", w.on[1:] == reach[:-1]), ("overlapping", w.on[1:] < reach[:-1])):
        found = np.flatnonzero(same & hit) + 1
        if len(found):
            repair_log.note(f"{kind} windows joined", place(_stood(index, found[0])), count=len(found))
    follows = same & (w.on[1:] <= reach[:-1])
    if not follows.any():
        return w
    heads = np.flatnonzero(np.concatenate(([True], ~follows)))
    return RecordedWindows(w.row[heads], w.on[heads], np.maximum.reduceat(w.off, heads))


def _running_end(w: RecordedWindows, same: NDArray[np.bool_]) -> Int64:
    """Return the latest end so far inside each device; differs from `off` only where windows are nested."""
    nested = np.unique(w.row[1:][same & (w.off[1:] < w.off[:-1])])
    if not len(nested):
        return w.off
    reach: Int64 = w.off.copy()
    for low, high in zip(np.searchsorted(w.row, nested), np.searchsorted(w.row, nested, "right"), strict=True):
        np.maximum.accumulate(reach[low:high], out=reach[low:high])
    return reach

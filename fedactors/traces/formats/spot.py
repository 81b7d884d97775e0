"""SkyPilot's spot instances: how many of a kind could be had, or were alive, at each tick.

    {"metadata": {"gap_seconds": 300}, "data": [4, 4, 3, 0, …]}

Source: Z. Wu et al., "Can't Be Late: Optimizing Spot Instance Savings under Deadlines", NSDI 2024;
github.com/skypilot-org/spot-traces. Zone and machine stand in the file's name only, the first day in its
folder's name. What changed within a tick is not recorded: a tick's count holds until the next.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from fedactors.plan import NEVER, SECOND
from fedactors.traces.columns import assemble, windows
from fedactors.traces.source import RecordingFile, RepairLog, device, shown
from fedactors.traces.timeline import Int64, Timeline

_MOST = 4096  # instances in one file


def looks_like(data: bytes) -> bool:
    """Whether `data` is a JSON object that contains gap_seconds."""
    return data[:64].removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{" and b'"gap_seconds"' in data


def read(source: RecordingFile, repair_log: RepairLog) -> Timeline:
    """Read one device per instance: number i is on while more than i could be had; t = 0 is the first tick.

    A file that never counts more than one gives one device of the file's name; else they are `name/0`,
    `name/1`, … Raises TraceError if the file is damaged.
    """
    gap, counts = _content(source)
    most = int(counts.max())
    names = [source.stem] if most <= 1 else [f"{source.stem}/{number}" for number in range(most)]
    row: list[int] = []
    edges: list[Int64] = []
    for number in range(len(names)):
        on = np.concatenate(([False], counts > number, [False]))
        edges.append(np.flatnonzero(on[1:] != on[:-1]).astype(np.int64))
        row += [number] * (len(edges[-1]) // 2)
    ticks = np.concatenate(edges) * gap
    found = windows(row, ticks[::2], ticks[1::2])
    seen = ([0] * len(names), [len(counts) * gap] * len(names))
    return assemble(names, found, seen, repair_log, lambda k: device(names[row[k]]), time_of_day=False)


def _content(source: RecordingFile) -> tuple[int, Int64]:
    """Return the tick in ns and the counts."""
    record = source.json()
    gap = _member(_member(record, "metadata"), "gap_seconds")
    data = _member(record, "data")
    if not isinstance(data, list) or not data:
        raise source.error("", "no list of counts under data", '{"metadata": {"gap_seconds": 300}, "data": [1, 0]}')
    for tick, count in enumerate(data):
        if type(count) is not int or not 0 <= count <= _MOST:
            raise source.error(f"tick {tick}", f"count {shown(count)}", f"a whole number up to {_MOST}")
    if isinstance(gap, bool) or not isinstance(gap, (int, float)) or not 0 < gap < NEVER // SECOND // len(data):
        raise source.error("", f"gap_seconds {shown(gap)}", "seconds between two counts")
    tick_ns = Fraction(str(gap)) * SECOND  # the decimal number that is written
    if tick_ns.denominator != 1:
        raise source.error("", f"gap_seconds {shown(gap)}", "a whole number of nanoseconds")
    return int(tick_ns), np.array(data, dtype=np.int64)


def _member(record: object, name: str) -> object:
    """Return `record[name]`; None if it is not there, or `record` is no object."""
    return record.get(name) if isinstance(record, dict) else None

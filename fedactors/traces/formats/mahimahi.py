"""Mahimahi packet-delivery traces: one line per 1,500-byte packet that may cross, in ms from the start.

Source: R. Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015; recorded with
Saturator. A packet of millisecond m is spread over [m, m + 1): n packets make n * 1.5 MB/s, so that no byte
is lost. The trace ends after its last millisecond, and a loop begins again there. The emulator itself adds the last
number for each turn, so its turns are one millisecond shorter: the packets of the last millisecond and of millisecond 0
fall together there.
"""

from __future__ import annotations

import numpy as np

from fedactors.traces.lines import bounded, head, is_whole, numbered, whole
from fedactors.traces.series import BYTES_PER_SECOND, Series, SeriesRow, build
from fedactors.traces.source import RecordingFile, RepairLog

_MS = 1_000_000  # ns
_PACKET = 1_500_000  # bytes/s during one ms


def looks_like(data: bytes) -> bool:
    """Whether the first lines of `data` are bare whole numbers that never fall."""
    lines = head(data)
    if not lines or not all(is_whole(line) for line in lines):
        return False
    times = [int(line) for line in lines]
    return times == sorted(times)


def read(source: RecordingFile, repair_log: RepairLog) -> Series:
    """Read one row of bytes/s, named like the file. Raises TraceError if the trace is damaged."""
    times: list[int] = []
    for number, text in numbered(source):
        time = whole(text, "time", f"line {number}", source)
        if times and time < times[-1]:
            raise source.error(f"line {number}", f"time runs backwards: {time} after {times[-1]}", "ms, rising")
        bounded(time * _MS, f"line {number}", source)
        times.append(time)
    if not times:
        raise source.error("", "no packet", "ms, one a line")
    busy, packets = np.unique(np.array(times, dtype=np.int64), return_counts=True)
    # Each busy ms begins at its rate and ends at zero; where the next is busy too, its beginning wins.
    ends = np.setdiff1d(busy + 1, busy)[:-1]
    at = np.concatenate((busy, ends, [] if busy[0] == 0 else [0])).astype(np.int64)
    rate = np.concatenate((packets * _PACKET, np.zeros(len(at) - len(busy)))).astype(np.int64)
    order = np.argsort(at)
    row = SeriesRow(source.name, at[order] * _MS, rate[order], int(busy[-1] + 1) * _MS)
    return build([row], BYTES_PER_SECOND, repair_log.repairs)

"""Norwegian HSDPA logs: what a phone on the move downloaded over 3G, about once a second.

    1285675666 310761 59.889623 10.763866 288648 1008

Unix s, ms of a counter, latitude, longitude, bytes since the previous line, ms since the previous line.
Source: H. Riiser et al., "Commute Path Bandwidth Traces from 3G Networks", MMSys 2013.

Time is the sum of the intervals: they are what the bytes were counted over. The stamps, of one second, only
tell the order; the counter restarts. An outage is one line with a long interval and few bytes, which is what
its rate says. Positions, `NOFIX` in tunnels, are not used.

A rate is rounded to a whole byte per second, so that a line of an interval of t seconds is off by up to t / 2 bytes.
That is nothing but for transfers that end in an outage: those are up to half a second off.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from fedactors.traces.lines import bounded, head, is_whole, numbered, whole
from fedactors.traces.series import BYTES_PER_SECOND, Series, SeriesRow, build
from fedactors.traces.source import RecordingFile, RepairLog

_COLUMNS = 6
_MS = 1_000_000  # ns
_SLACK = 2_000  # ms by which stamps of one second may exceed an interval


class _HsdpaLine(NamedTuple):
    number: int
    stamp: int  # unix s
    bytes: int
    interval: int  # ms


def looks_like(data: bytes) -> bool:
    """Whether the first line of `data` has six columns, four of them whole numbers."""
    cells = next(iter(head(data)), "").split()
    return len(cells) == _COLUMNS and all(is_whole(cells[k]) for k in (0, 1, 4, 5))


def read(source: RecordingFile, repair_log: RepairLog) -> Series:
    """Read the downlink in bytes/s. Raises TraceError if the log is damaged."""
    lines = []
    recorded = _once(numbered(source), repair_log)
    for line in _ordered([_line(number, text, source) for number, text in recorded], repair_log):
        if line.interval:
            lines.append(line)
        else:
            repair_log.note("line without duration left out", f"line {line.number}")
    if not lines:
        raise source.error("", "no line with a duration", "an HSDPA log")
    bounded(sum(line.interval for line in lines) * _MS, "", source)
    ends = np.cumsum([line.interval for line in lines]) * _MS
    rates = [(line.bytes * 1000 + line.interval // 2) // line.interval for line in lines]
    row = SeriesRow(source.stem, np.concatenate(([0], ends[:-1])), rates, int(ends[-1]))
    return build([row], BYTES_PER_SECOND, repair_log.repairs)


def _once(lines: Iterable[tuple[int, str]], repair_log: RepairLog) -> Iterator[tuple[int, str]]:
    """Yield the lines, those that stand there again left out: their counters show that they are one record."""
    seen: set[tuple[str, ...]] = set()
    for number, text in lines:
        cells = tuple(text.split())
        if cells in seen:
            repair_log.note("line that stands twice left out", f"line {number}")
            continue
        seen.add(cells)
        yield number, text


def _line(number: int, text: str, source: RecordingFile) -> _HsdpaLine:
    where, cells = f"line {number}", text.split()
    if len(cells) != _COLUMNS:
        raise source.error(where, f"{len(cells)} columns", f"{_COLUMNS}")
    stamp, _, amount, interval = (
        whole(cells[k], what, where, source)
        for k, what in ((0, "unix time"), (1, "ms counter"), (4, "bytes"), (5, "interval"))
    )
    return _HsdpaLine(number, stamp, amount, interval)


def _ordered(lines: list[_HsdpaLine], repair_log: RepairLog) -> list[_HsdpaLine]:
    """Turn a log around that is written backwards; sort what else is out of order; count gaps."""
    if len(lines) > 1 and lines[-1].stamp < lines[0].stamp:
        repair_log.note("log in reversed order turned around", f"line {lines[1].number}")
        lines = lines[::-1]
    for before, after in itertools.pairwise(lines):
        if after.stamp < before.stamp:
            repair_log.note("time runs backwards", f"line {after.number}", f"{after.stamp} after {before.stamp}")
    lines = sorted(lines, key=lambda line: line.stamp)
    for before, after in itertools.pairwise(lines):
        gap = (after.stamp - before.stamp) * 1000 - after.interval
        if gap > _SLACK:
            repair_log.note("unobserved gap closed", f"line {after.number}", f"{gap} ms")
    return lines

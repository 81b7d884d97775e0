"""Irish 5G logs (G-NetTrack Pro): what an application moved in each second, as CSV.

    Timestamp,…,DL_bitrate,UL_bitrate,State,…
    2019.12.16_11.49.59,…,22,36,D,…

Source: D. Raca et al., "Beyond Throughput, the Next Generation: a 5G Dataset with Channel and Context
Metrics", MMSys 2020. Rates are kbit/s of actual traffic, not of what the link could carry: only lines of
state D (download) are measurements of it. In idle lines nobody asked for data; the last measured rate holds
through them, and through gaps without lines, which counts as a repair where it is longer than `_GAP`. What lies
before the first measurement and after the last one is cut off. Stamps are local times without a zone, and stay so.
"""

from __future__ import annotations

import csv
import datetime
import io
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from fedactors.plan import SECOND
from fedactors.traces.lines import bounded, head, places_of, scaled
from fedactors.traces.series import BYTES_PER_SECOND, Series, SeriesRow, build
from fedactors.traces.source import RecordingFile, RepairLog, shown

_NEEDED = ("Timestamp", "DL_bitrate", "UL_bitrate", "State")
_KBIT = 125  # bytes
_GAP = 10  # s


class _IrishLine(NamedTuple):
    number: int
    second: int
    rates: tuple[int, int] | None  # down and up, bytes/s; None where nothing was measured


def looks_like(data: bytes) -> bool:
    """Whether the header of `data` names the rates."""
    return set(_NEEDED) <= set(next(iter(head(data)), "").split(","))


def read(source: RecordingFile, repair_log: RepairLog) -> Series:
    """Read two rows, `name/down` and `name/up`, in bytes/s. Raises TraceError if the log is damaged."""
    logged = list(_lines(source, repair_log))
    lines = _one_per_second([line for line in logged if line.rates], repair_log)
    if not lines:
        raise source.error("", "no line of state D with its rates", "a log of a download")
    begin = lines[0].second
    _note_gaps([line for line in logged if begin <= line.second <= lines[-1].second], repair_log)
    at = [(line.second - begin) * SECOND for line in lines]
    end = bounded(at[-1] + SECOND, f"line {lines[-1].number}", source)
    down, up = zip(*(line.rates for line in lines if line.rates), strict=True)
    rows = [SeriesRow(f"{source.stem}/{name}", at, rates, end) for name, rates in (("down", down), ("up", up))]
    return build(rows, BYTES_PER_SECOND, repair_log.repairs)


def _lines(source: RecordingFile, repair_log: RepairLog) -> Iterator[_IrishLine]:
    """Yield all lines; measured are those of state D that have both rates."""
    for number, (stamp, down, up, state) in _cells(source, repair_log):
        where = f"line {number}"
        second = _second(stamp, where, source)
        rates = None
        if state == "D" and "-" in (down, up):
            repair_log.note("measurement without a rate left out", where)
        elif state == "D":
            rates = (scaled(down, _KBIT, "rate", where, source), scaled(up, _KBIT, "rate", where, source))
        yield _IrishLine(number, second, rates)


def _cells(source: RecordingFile, repair_log: RepairLog) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line that is not empty, and its cells of the columns needed."""
    reader = csv.reader(io.StringIO(source.text(), newline=""), strict=True)
    try:
        header = next(reader, [])
        columns = places_of(_NEEDED, header, source, repair_log)
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                raise source.error(
                    f"line {reader.line_num}", f"{len(cells)} columns", f"{len(header)}, as in the header"
                )
            yield reader.line_num, [cells[k] for k in columns]
    except csv.Error as error:
        raise source.error(f"line {reader.line_num}", str(error), "comma-separated values") from error


def _second(stamp: str, where: str, source: RecordingFile) -> int:
    try:
        time = datetime.datetime.strptime(stamp, "%Y.%m.%d_%H.%M.%S")
    except ValueError as error:
        raise source.error(where, f"time {shown(stamp)}", "YYYY.MM.DD_HH.MM.SS") from error
    return int((time - datetime.datetime(1970, 1, 1)) / datetime.timedelta(seconds=1))


def _note_gaps(lines: Sequence[_IrishLine], repair_log: RepairLog) -> None:
    """Note the times in which nothing was logged, whatever the state."""
    for before, after in pairwise(sorted(lines, key=lambda line: line.second)):
        if after.second - before.second > _GAP:
            detail = f"{after.second - before.second} s"
            repair_log.note("gap in the log, the last rate holds", f"line {after.number}", detail)


def _one_per_second(lines: list[_IrishLine], repair_log: RepairLog) -> list[_IrishLine]:
    """Sort by time; of several lines in one second the last counts."""
    kept: dict[int, _IrishLine] = {}
    latest = None
    for line in lines:
        if latest is not None and line.second < latest:
            repair_log.note("time runs backwards", f"line {line.number}", f"by {latest - line.second} s")
        if line.second in kept:
            repair_log.note("several lines in one second, the last counts", f"line {line.number}")
        latest = line.second
        kept[line.second] = line
    return [kept[second] for second in sorted(kept)]

"""PlanetLab CPU use: 288 bare percentages, one for each five minutes of a day.

Source: K. Park and V. Pai, "CoMon", 2006, as kept with CloudSim (A. Beloglazov and R. Buyya, 2012). What
others used is not left for training: the row holds the share of the processor that was free, in parts per
million.
"""

from __future__ import annotations

from fedactors.plan import SECOND
from fedactors.traces.lines import head, is_whole, numbered, whole
from fedactors.traces.series import PPM, Series, SeriesRow, build
from fedactors.traces.source import RecordingFile, RepairLog

_LINES = 288  # in a day
_STEP = 300 * SECOND
_PERCENT = 100


def looks_like(data: bytes) -> bool:
    """Whether `data` is 288 whole numbers up to 100, one a line."""
    lines = head(data)
    return len(lines) == _LINES and all(is_whole(line) and int(line) <= _PERCENT for line in lines)


def read(source: RecordingFile, repair_log: RepairLog) -> Series:
    """Read one row of free share, named like the file. Raises TraceError if a line is no percentage."""
    free = []
    for number, text in numbered(source):
        used = whole(text, "percentage", f"line {number}", source)
        if used > _PERCENT:
            raise source.error(f"line {number}", f"percentage {used}", "0 to 100")
        free.append((_PERCENT - used) * 10_000)
    if not free:
        raise source.error("", "no percentage", "one a line")
    at = [k * _STEP for k in range(len(free))]
    return build([SeriesRow(source.name, at, free, len(free) * _STEP)], PPM, repair_log.repairs)

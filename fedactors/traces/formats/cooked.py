"""Pensieve's "cooked" bandwidth: `seconds Mbps` per line, as made of the FCC's broadband measurements.

Source: H. Mao et al., "Neural Adaptive Video Streaming with Pensieve", SIGCOMM 2017. A rate holds from its
line's time until the next line's, the last one as long as the one before. Traces that do not start at 0, such as
those with unix times, are moved there.
"""

from __future__ import annotations

from fedactors.plan import NEVER, SECOND
from fedactors.traces.lines import bounded, head, is_decimal, numbered, scaled
from fedactors.traces.series import BYTES_PER_SECOND, Series, SeriesRow, build
from fedactors.traces.source import RecordingFile, RepairLog

_MBIT = 125_000  # bytes
_LINES = 2  # below which the last line's length is unknown


def looks_like(data: bytes) -> bool:
    """Whether the first lines of `data` are pairs of decimal numbers."""
    pairs = [line.split() for line in head(data)]
    return bool(pairs) and all(len(pair) == 2 and all(is_decimal(text) for text in pair) for pair in pairs)


def read(source: RecordingFile, repair_log: RepairLog) -> Series:
    """Read one row of bytes/s, named like the file. Raises TraceError if the trace is damaged."""
    at: list[int] = []
    rates: list[int] = []
    for number, text in numbered(source):
        where, cells = f"line {number}", text.split()
        if len(cells) != 2:
            raise source.error(where, f"{len(cells)} columns", "seconds and Mbit/s")
        time = scaled(cells[0], SECOND, "time", where, source, most=NEVER)
        if at and time <= at[-1]:
            raise source.error(where, f"time does not rise: {cells[0]} s", "a later time than the line above")
        at.append(time)
        rates.append(scaled(cells[1], _MBIT, "rate", where, source))
    if len(at) < _LINES:
        raise source.error("", f"{len(at)} lines", f"at least {_LINES}")
    end = bounded(2 * at[-1] - at[-2] - at[0], "the last line", source)
    row = SeriesRow(source.name, [time - at[0] for time in at], rates, end)
    return build([row], BYTES_PER_SECOND, repair_log.repairs)

"""Round-trip times between places: a square of ms, comma-separated, without names.

As in `data/latencies.txt` of github.com/sacs-epfl/plexus (227 cities). The matrix need not be symmetric, nor
its diagonal zero. A negative time, which no packet took, is read as 0 and counted.
"""

from __future__ import annotations

import numpy as np

from fedactors.traces.device_tables import Matrix
from fedactors.traces.lines import head, is_decimal, numbered, scaled
from fedactors.traces.source import RecordingFile, RepairLog

_MS = 1_000_000  # ns
_LEAST = 3  # columns by which a matrix is recognised


def looks_like(data: bytes) -> bool:
    """Whether the first line of `data` is three or more decimal numbers between commas."""
    line = next(iter(head(data, 1 << 20)), "")
    cells = [cell.strip().removeprefix("-") for cell in line.split(",")]
    return len(cells) >= _LEAST and all(is_decimal(cell) for cell in cells)


def read(source: RecordingFile, repair_log: RepairLog) -> Matrix:
    """Read the matrix in ns; places are named "0", "1", … Raises TraceError if it is damaged."""
    rows: list[list[int]] = []
    for number, text in numbered(source):
        cells = [cell.strip() for cell in text.split(",")]
        if rows and len(cells) != len(rows[0]):
            raise source.error(f"line {number}", f"{len(cells)} columns", f"{len(rows[0])}, as above")
        rows.append([_time(cell, f"line {number}, column {k}", source, repair_log) for k, cell in enumerate(cells, 1)])
    if not rows or len(rows) != len(rows[0]):
        raise source.error("", f"{len(rows)} lines", "as many lines as columns")
    return Matrix(tuple(str(k) for k in range(len(rows))), np.array(rows, dtype=np.int64), repair_log.repairs)


def _time(text: str, where: str, source: RecordingFile, repair_log: RepairLog) -> int:
    negative = text.startswith("-")
    time = scaled(text.removeprefix("-"), _MS, "latency", where, source)
    if negative and time:
        repair_log.note("negative latency read as 0", where, text)
    return 0 if negative else time

"""Failure Trace Archive: when the nodes of a machine were up, in `event_trace.tab`.

    # event_id component_id node_id platform_id node_name event_type event_start_time event_stop_time …
      0        0            655     3           10.000    1          1099906200       1112096400

Source: D. Kondo et al., "The Failure Trace Archive", CCGrid 2010. Times are unix seconds (UTC); `event_type`
is 1 while the node is available. Columns are found by their names, with or without the `#`, between blanks
and TABs. A device is a `node_id`.
"""

from __future__ import annotations

import itertools
import re
from typing import NamedTuple

from fedactors.plan import SECOND
from fedactors.traces.columns import assemble, from_midnight, windows
from fedactors.traces.lines import places_of
from fedactors.traces.source import RecordingFile, RepairLog, device, shown
from fedactors.traces.timeline import Timeline

_WANTED = ("node_id", "event_type", "event_start_time", "event_stop_time")
_TIME = re.compile(r"(\d{1,10})(?:\.(\d{1,9})0*)?", re.ASCII)
_UP = "1"
_DOWN = "0"


class _Event(NamedTuple):
    row: int
    line: int
    up: bool
    start: int  # ns, unix
    stop: int


def looks_like(data: bytes) -> bool:
    """Whether the first line of `data` names the columns of an event trace."""
    words = data[:4096].split(b"\n", 1)[0].split()
    return all(word.encode() in words for word in _WANTED)


def read(source: RecordingFile, repair_log: RepairLog) -> Timeline:
    """Read every node's windows; a node is seen from its first to its last event, up or down.

    Raises TraceError if the file is damaged.
    """
    names: dict[str, int] = {}
    events = _events(source, names, repair_log)
    if not events:
        raise source.error("", "no event", "an event trace with lines below its header")
    _note_contradictions(events, list(names), repair_log)
    up = [event for event in events if event.up]
    first = [2**63 - 1] * len(names)
    last = [0] * len(names)
    for event in events:
        first[event.row] = min(first[event.row], event.start)
        last[event.row] = max(last[event.row], event.stop)
    columns = ([event.start for event in up], [event.stop for event in up], first, last)
    on, off, begin, end = from_midnight(columns, repair_log, tick=1)
    labels = list(names)

    def place(k: int) -> str:
        return device(labels[up[k].row], up[k].line)

    return assemble(labels, windows([event.row for event in up], on, off), (begin, end), repair_log, place)


def _note_contradictions(events: list[_Event], names: list[str], repair_log: RepairLog) -> None:
    """Count the events that say a node was up where another says it was down; up counts."""
    ordered = sorted(events, key=lambda event: (event.row, event.start, event.stop))
    for before, after in itertools.pairwise(ordered):
        if before.row == after.row and before.up != after.up and after.start < before.stop:
            repair_log.note("up and down at once, up counts", device(names[after.row], after.line))


def _events(source: RecordingFile, names: dict[str, int], repair_log: RepairLog) -> list[_Event]:
    """Parse the lines and number the nodes by appearance. Raises TraceError at the first that is damaged."""
    lines = source.text().split("\n")
    header = lines[0].lstrip("# ").split()
    node, kind, start, stop = places_of(_WANTED, header, source, repair_log)
    events = []
    for number, line in enumerate(lines[1:], 2):
        cells = line.split()
        if not cells or cells[0].startswith("#"):
            continue
        if len(cells) != len(header):
            raise source.error(f"line {number}", f"{len(cells)} columns", f"{len(header)}, as in the header")
        where = device(cells[node], number)
        if cells[kind] not in (_UP, _DOWN):
            raise source.error(where, f"event_type {shown(cells[kind])}", "1 (up) or 0 (down)")
        times = _span(cells[start], cells[stop], where, source)
        row = names.setdefault(cells[node], len(names))
        events.append(_Event(row, number, cells[kind] == _UP, *times))
    return events


def _span(start: str, stop: str, where: str, source: RecordingFile) -> tuple[int, int]:
    """Return when an event starts and stops, ns."""
    times = (_nanoseconds(start, where, source), _nanoseconds(stop, where, source))
    if times[1] < times[0]:
        raise source.error(where, "an event that stops before it starts", "start <= stop")
    return times


def _nanoseconds(text: str, where: str, source: RecordingFile) -> int:
    match = _TIME.fullmatch(text)
    if not match or int(match[1]) >= 2**63 // SECOND:
        raise source.error(where, f"time {shown(text)}", "unix seconds")
    return int(match[1]) * SECOND + int((match[2] or "").ljust(9, "0"))

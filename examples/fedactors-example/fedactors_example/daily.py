"""Opening hours: a line per device, and when it is on every day.

# daily
shop: 9-17
bar: 0-2 18-24
"""

from __future__ import annotations

import re

from fedactors.traces.columns import assemble, windows
from fedactors.traces.format_registry import AVAILABILITY, Format
from fedactors.traces.source import RecordingFile, RepairLog, device
from fedactors.traces.timeline import Timeline

_HOUR = 3600 * 10**9  # ns
_SPAN = re.compile(r"(\d+)-(\d+)")


class Daily:
    """Reads opening hours; a device's day repeats."""

    def looks_like(self, data: bytes) -> bool:
        """Whether `data` begins with the first line of this format."""
        return data.startswith(b"# daily\n")

    def read(self, source: RecordingFile, repair_log: RepairLog) -> Timeline:
        """Return one device per line, observed for a day. Raises TraceError if a line cannot be understood."""
        names, row, on, off = list[str](), list[int](), list[int](), list[int]()
        for number, line in enumerate(source.text().splitlines()[1:], start=2):
            name, colon, spans = line.partition(":")
            hours = [_SPAN.fullmatch(span) for span in spans.split()]
            if not colon or not all(h and int(h[1]) < int(h[2]) <= 24 for h in hours):
                raise source.error(f"line {number}", f"found {line!r}", "NAME: FROM-TO …, hours from 0 to 24")
            names.append(name.strip())
            row += [len(names) - 1] * len(hours)
            on += [int(h[1]) * _HOUR for h in hours if h]
            off += [int(h[2]) * _HOUR for h in hours if h]
        seen = ([0] * len(names), [24 * _HOUR] * len(names))
        return assemble(tuple(names), windows(row, on, off), seen, repair_log, lambda k: device(names[row[k]]))


FORMAT = Format("daily", AVAILABILITY, "opening hours, every day alike", Daily())

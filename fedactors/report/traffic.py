"""What crossed the links: bytes by round, and how much of it served nobody."""

from __future__ import annotations

import numpy as np

from fedactors.report.figure import Chart, blank, hover, legend, share, tied, zoomable
from fedactors.report.measures import Floats, byte_unit, every, heard, time_unit
from fedactors.report.terminal_text import size
from fedactors.run_files.records import Records

_POINTS = 1_000
_LINES = {"bytes_down": ("to devices", "#3f6fb5"), "bytes_up": ("to the server", "#d9822b")}


def traffic(records: Records) -> Chart | None:
    """Return bytes sent since the beginning, down and up, against virtual time."""
    metrics = records.metrics
    sums = {column: np.nancumsum(metrics[column]) for column in _LINES}
    most = max((float(values[-1]) for values in sums.values() if len(values)), default=0.0)
    if not most:
        return None
    unit, scale = byte_unit(most)
    clock, length = time_unit(float(metrics["virtual_seconds"][-1]))
    rows = every(records.rounds, _POINTS)
    made = blank(260, f"virtual time ({clock})", f"sent so far ({unit})")
    for column, (name, color) in _LINES.items():
        _line(made, metrics["virtual_seconds"][rows] / length, sums[column][rows] / scale, name, color, unit)
    legend(made, "top_left")
    made.y_range.start = 0
    tied(made, "virtual", (0.0, float(metrics["virtual_seconds"][-1]) / length), length)
    zoomable(made)
    down, up = (size(float(values[-1])) for values in sums.values())
    text = f"{down} to devices, {up} to the server.{_wasted(records)}"
    note = f"{len(rows):,} of {records.rounds:,} rounds drawn, evenly spread." if len(rows) < records.rounds else ""
    return Chart("traffic", "Bytes sent", text, made, f"Bytes sent against virtual time. {text}", note)


def _line(made: object, x: Floats, y: Floats, name: str, color: str, unit: str) -> None:
    line = made.line(x, y, color=color, line_width=2, legend_label=name, name=name)  # type: ignore[attr-defined]
    tips = [(name, f"@y{{0,0.[00]}} {unit}"), ("virtual time", "@x{0,0.[00]}")]
    made.add_tools(hover(tips, [line], mode="vline"))  # type: ignore[attr-defined]


def _wasted(records: Records) -> str:
    moved = records.orders["down"] + records.orders["up"]
    total, lost = int(moved.sum()), int(moved[~heard(records)].sum())
    return f" {size(lost)} of it ({share(lost, total)}) went to trips that were never heard." if lost else ""

"""The one look of all charts: a frame without ornament, units on the axes, colours that the page can exchange.

Models tagged "ink", "muted" or "panel" get their colours from the theme of the page, in the browser.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedactors.report.measures import Counts, Floats
from fedactors.report.palette import LIGHT, OUTCOME, label

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


@dataclass(frozen=True)
class Chart:
    """A drawing and the words around it. `said` is what a screen reader says; `note` tells what is sampled.

    `model` is a Bokeh figure, or None if the script of the page draws the `data`.
    """

    key: str
    title: str
    text: str
    model: Any
    said: str
    note: str = ""
    data: Mapping[str, Any] | None = None


def blank(height: int, x_label: str, y_label: str, **options: Any) -> Any:
    """Return an empty figure in the look of the report."""
    from bokeh.plotting import figure

    made = figure(
        height=height,
        sizing_mode="stretch_width",
        tools="",
        toolbar_location=None,
        x_axis_label=x_label,
        y_axis_label=y_label,
        background_fill_color=None,
        border_fill_color=None,
        outline_line_color=None,
        **options,
    )
    made.toolbar.logo = None
    made.xgrid.grid_line_color = None
    made.ygrid.grid_line_color = LIGHT["grid"]
    for axis in made.axis:
        plain(axis)
    return made


def plain(axis: Any) -> None:
    """Take the ornament off an axis."""
    axis.update(
        axis_line_color=None,
        major_tick_line_color=None,
        minor_tick_line_color=None,
        axis_label_text_font=FONT,
        axis_label_text_font_style="normal",
        axis_label_text_font_size="12px",
        axis_label_text_color=LIGHT["text"],
        major_label_text_font=FONT,
        major_label_text_font_size="12px",
        major_label_text_color=LIGHT["text"],
    )


def hover(tips: Sequence[tuple[str, str]], renderers: Sequence[Any], **options: Any) -> Any:
    """Return a hover tool for `renderers`."""
    from bokeh.models import HoverTool

    return HoverTool(tooltips=list(tips), renderers=list(renderers), **options)


def tied(made: Any, key: str, ends: tuple[float, float], scale: float = 1.0, offset: float = 0.0) -> None:
    """Tie the window of a chart to those of the other charts that show progress.

    `key` is what its axis shows, one of `progress_axes.AXES`, in `scale` and shifted by `offset`; "chosen" is the one
    that the reader has chosen.
    """
    from bokeh.models import Range1d

    start, end = ends
    pad = 0.01 * (end - start) or 0.5
    made.window_axis = "x"  # the other axis fits what is in view
    made.x_range = Range1d(start=start - pad, end=end + pad, tags=["tied", key, scale, offset])


def zoomable(made: Any) -> None:
    """Let a chart be dragged, and zoomed by the wheel with Ctrl held (the wheel alone scrolls the page)."""
    from bokeh.models import PanTool, WheelZoomTool

    wheel = WheelZoomTool(dimensions="width", modifiers="ctrl")
    made.add_tools(PanTool(dimensions="width"), wheel)
    made.toolbar.active_scroll = wheel


def stacked(
    made: Any, x: Floats, width: float | Floats, counts: Counts, tips: Sequence[tuple[str, str]], **extra: Any
) -> None:
    """Stack the counts of each outcome over `x`; `extra` holds columns that `tips` refer to."""
    from bokeh.models import ColumnDataSource

    total = np.sum(list(counts.values()), axis=0) if counts else np.zeros(len(x))
    columns = {name: values.astype(np.float32) for name, values in counts.items()}
    source = ColumnDataSource({"x": x, "width": np.full(len(x), width), "total": total, **extra, **columns})
    bars = made.vbar_stack(
        list(counts), x="x", width="width", source=source, color=[OUTCOME[name] for name in counts], line_color=None
    )
    for name, bar in zip(counts, bars, strict=True):
        shown = (label(name), f"@{name}{{0,0.[0]}} of @total{{0,0.[0]}}")
        made.add_tools(hover([*tips, shown], [bar]))
    made.y_range.start = 0
    made.y_range.range_padding = 0.04


def legend(made: Any, place: str) -> None:
    """Put the legend inside the frame, without a box."""
    made.legend.location = place
    made.legend.update(
        background_fill_alpha=0,
        border_line_color=None,
        label_text_font=FONT,
        label_text_font_size="12px",
        label_text_color=LIGHT["text"],
        spacing=2,
        padding=4,
        glyph_width=18,
        label_standoff=6,
    )


def share(part: float, whole: float) -> str:
    """Return a share as it is read: "94%", and never 100% or 0% for what is not all or nothing."""
    percent = 100 * part / whole if whole else 0.0
    if 0 < percent < 1:
        return "< 1%"
    if 99 < percent < 100:
        return "> 99%"
    return f"{percent:.0f}%"


def listed(counts: Mapping[str, float]) -> str:
    """Return counts as a sentence's end: "1,459 complete, 790 partial"."""
    return ", ".join(f"{value:,.0f} {label(name)}" for name, value in counts.items())

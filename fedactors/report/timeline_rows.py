"""What each device did and when: a row per device, a bar per trip, of as many as can be drawn with ease."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedactors.plan import SECOND
from fedactors.report import presence_bands
from fedactors.report.figure import Chart, blank, hover, plain, stacked, zoomable
from fedactors.report.measures import DAY, Floats, Ints, every, outcomes_per_round
from fedactors.report.palette import LIGHT, OUTCOME, label
from fedactors.run_files.records import OUTCOMES, Records

DEVICES = 500
BARS = 20_000
_TRIPS = BARS // 3  # download, computing, upload
_FEW = 60  # devices kept at least, before the time shown is cut instead
_ROUNDS_AT_FIRST = 12
_STAGES = {
    "download": ("started", "downloaded", 0.3),
    "compute": ("downloaded", "computed", 0.82),
    "upload": ("computed", "finished", 0.3),
}  # from, to, share of the row's height
_MS = 1_000_000  # ns; the axis counts milliseconds


@dataclass(frozen=True)
class DrawnOrders:
    """The orders that are drawn: their indices, the devices of the rows, and what was left out."""

    orders: Ints
    devices: Ints
    note: str


def choose(records: Records) -> DrawnOrders:
    """Choose devices evenly and, if these are still too busy, the first part of the time."""
    client = records.orders["client"]
    pool, told = _pool(records)
    devices = pool[every(len(pool), DEVICES)]
    orders = np.flatnonzero(np.isin(client, devices))
    while len(orders) > _TRIPS and len(devices) > _FEW:
        fewer = max(_FEW, len(devices) * _TRIPS // len(orders) - 1)
        devices = pool[every(len(pool), fewer)]
        orders = np.flatnonzero(np.isin(client, devices))
    asked = len(np.unique(client))
    notes = [f"{len(devices):,} of the {asked:,} devices asked, evenly spread{told}"] if len(devices) < asked else []
    if len(orders) > _TRIPS:
        notes.append(f"the first {_TRIPS:,} of their {len(orders):,} trips")
        orders = orders[:_TRIPS]
    return DrawnOrders(orders, devices, f"Drawn: {'; '.join(notes)}." if notes else "")


def _pool(records: Records) -> tuple[Ints, str]:
    """Return the devices to choose from: of a large population those asked early, lest the first view be empty."""
    version, client = records.orders["version"], records.orders["client"]
    asked = np.unique(client)
    early = np.unique(client[version < version[:1] + _ROUNDS_AT_FIRST])
    if len(asked) <= DEVICES or len(early) < _FEW:
        return asked, ""
    return early, f" over those that the first {_ROUNDS_AT_FIRST} rounds asked"


def timeline(records: Records) -> Chart | None:
    """Return the timeline with an overview below that moves and stretches its window; none without orders."""
    if not len(records.orders["client"]):
        return None
    from bokeh.models import Range1d

    shown = choose(records)
    taken = {name: column[shown.orders] for name, column in records.orders.items()}
    end = max(1.0, float(taken["finished"].max()) / _MS)  # a picture has a width, though no time passed
    made = blank(
        int(np.clip(6.2 * len(shown.devices) + 70, 240, 780)), "virtual time (h:min:s)", "device",
        x_range=Range1d(start=0, end=_first_window(records, end), bounds=(0, end), name="window"),
        y_range=Range1d(start=len(shown.devices) - 0.4, end=-0.6, bounds=(-0.6, len(shown.devices) - 0.4)),
        name="timeline",
    )  # fmt: skip
    _clock(made, end)
    _rows(made, shown.devices)
    _groups(made, records, shown.devices)
    rows = np.searchsorted(shown.devices, taken["client"])
    windows = presence_bands.read(records.path)
    whole = presence_bands.bands(made, windows, shown.devices) if windows else True
    _bars(made, taken, rows)
    paused = presence_bands.overlay(made, windows, taken, rows) if windows else 0
    zoomable(made, "both")
    text = "Thick bars compute; thin ones before and after are download and upload."
    text += " Bands tell when a device is on." if windows else " Gaps are idle or out of reach."
    text += " Hatched: the trip pauses, the device is off." if paused else ""
    note = shown.note if whole else f"{shown.note} Not all bands are drawn.".strip()
    said = f"Timeline of {len(shown.devices)} devices and {len(shown.orders)} trips, coloured by outcome."
    return Chart("timeline", "Device by device", text, _with_overview(made, records, end), said, note)


def _first_window(records: Records, end: float) -> float:
    """Return the milliseconds that are in view at first."""
    closed = records.plans["ready"] / _MS
    return min(0.998 * float(closed[_ROUNDS_AT_FIRST - 1]), end) if len(closed) > _ROUNDS_AT_FIRST else end


def _clock(made: Any, end: float) -> None:
    """Write times as on a clock, at every zoom."""
    from bokeh.models import TimedeltaTicker, TimedeltaTickFormatter

    days = "%d d " if end * _MS >= DAY else ""
    scales = ("seconds", "minsec", "minutes", "hourmin", "hours", "days")
    formatter = TimedeltaTickFormatter(milliseconds=f"{days}%H:%M:%S.%MS")
    formatter.update(**dict.fromkeys(scales, f"{days}%H:%M:%S"))
    made.xaxis.formatter = formatter
    made.xaxis.ticker = TimedeltaTicker(desired_num_ticks=7, num_minor_ticks=0)


def _rows(made: Any, devices: Ints) -> None:
    from bokeh.models import BasicTicker

    made.ygrid.grid_line_color = None
    made.yaxis.ticker = BasicTicker(min_interval=1, num_minor_ticks=0, desired_num_ticks=12)
    made.yaxis.major_label_overrides = {row: str(device) for row, device in enumerate(devices.tolist())}


def _groups(made: Any, records: Records, devices: Ints) -> None:
    """Name the groups along the right side, and part them by a line."""
    from bokeh.models import FixedTicker, LinearAxis

    edges = np.searchsorted(devices, np.cumsum([0, *(group.count for group in records.groups)]))
    spans = [(g.name, int(a), int(b)) for g, a, b in zip(records.groups, edges, edges[1:], strict=False) if b > a]
    if len(spans) < 2 or len(spans) > 12:
        return
    middles = [(low + high - 1) / 2 for _, low, high in spans]
    axis = LinearAxis(major_label_orientation="vertical")
    axis.ticker = FixedTicker(ticks=middles)  # type: ignore[assignment]
    axis.major_label_overrides = {middle: _short(name) for middle, (name, _, _) in zip(middles, spans, strict=True)}
    plain(axis)
    made.add_layout(axis, "right")
    rules = made.hspan([low - 0.5 for _, low, _ in spans[1:]], line_color=LIGHT["line"])
    rules.glyph.tags = ["rule"]


def _short(name: str) -> str:
    return name if len(name) <= 16 else name[:15] + "…"


def _bars(made: Any, taken: dict[str, Any], rows: Ints) -> None:
    from bokeh.models import CategoricalColorMapper, ColumnDataSource

    names = [label(name) for name in OUTCOMES]
    data = {name: taken[name].astype(np.int32) for name in ("client", "steps", "wanted")}
    data |= {"row": rows.astype(np.int32), "round": (taken["version"] + 1).astype(np.int32)}
    data |= {"outcome": [names[code] for code in taken["outcome"].tolist()]}
    for stage, (begin, end, _) in _STAGES.items():
        # rectangles by their middles: bokeh squeezes bars that lie outside the window into a line at its edge
        data[f"{stage}_middle"] = (taken[begin] + taken[end]) / 2 / _MS
        data[f"{stage}_time"] = (taken[end] - taken[begin]) / _MS
    source = ColumnDataSource(data)
    colors = CategoricalColorMapper(factors=names, palette=[OUTCOME[name] for name in OUTCOMES])
    look = {"fill_color": {"field": "outcome", "transform": colors}, "line_color": None}
    drawn = [
        made.rect(f"{stage}_middle", "row", f"{stage}_time", height, source=source, **look)
        for stage, (_, _, height) in _STAGES.items()
    ]
    made.add_tools(_tips(drawn))


def _tips(drawn: list[Any]) -> Any:
    return hover(
        [("device", "@client"), ("round", "@round"), ("outcome", "@outcome"), ("steps", "@steps of @wanted")], drawn
    )


def _with_overview(made: Any, records: Records, end: float) -> Any:
    """Put a strip of all rounds below, whose window is the part of the time in view."""
    from bokeh.layouts import column
    from bokeh.models import Range1d, RangeTool

    x, width, counts = outcomes_per_round(records, 300)
    strip = blank(64, "", "", x_range=Range1d(start=0, end=end), name="overview")
    times = _ready(records, x + width / 2 - 0.5) * (SECOND / _MS)
    widths = np.diff([0.0, *times])
    stacked(strip, times - widths / 2, widths, counts, [])
    strip.tools = []
    strip.yaxis.visible = False
    _clock(strip, end)
    strip.ygrid.grid_line_color = None
    tool = RangeTool(x_range=made.x_range, start_gesture="pan")
    tool.overlay.update(
        fill_color=LIGHT["text"], fill_alpha=0.18, line_color=LIGHT["ink"], line_dash="solid", tags=["ink"]
    )
    strip.add_tools(tool)
    return column(made, strip, sizing_mode="stretch_width")


def _ready(records: Records, x: Floats) -> Floats:
    """Return the virtual seconds at which the rounds numbered `x` were over."""
    return np.interp(x, records.metrics["round"], records.metrics["virtual_seconds"])

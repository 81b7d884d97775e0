"""Who took part: outcomes by round and by hour, steps done, and what each device gave."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedactors.report.figure import Chart, blank, hover, listed, share, stacked, tied, zoomable
from fedactors.report.measures import (
    HEARD_NAMES,
    by_hour,
    contributions,
    every,
    gini,
    heard,
    outcomes_per_round,
    steps_done,
    totals,
    virtual_span,
)
from fedactors.report.palette import OUTCOME
from fedactors.run_files.records import Records

_BINS = 1_000
_CLIENTS = 500
_HOURS_SHOWN_FROM = 2 * 3600.0


def rounds(records: Records) -> Chart | None:
    """Return the outcomes of everybody asked, stacked by round."""
    x, width, counts = outcomes_per_round(records, _BINS)
    if not counts:
        return None
    many = width > 1
    made = blank(300, "round", "clients asked" + (", mean of a bar" if many else ""))
    tied(made, "round", (0.5, records.rounds + 0.5), offset=0.5)
    stacked(made, x, width * (1.0 if len(x) > 150 else 0.86), counts, [("round", "@x{0,0}")])
    _thousands(made.xaxis, made.yaxis)
    zoomable(made)
    happened = {name: count for name, count in totals(records).items() if count}
    note = f"Each bar is the mean of {width:,.0f} rounds." if many else ""
    text = "Everybody asked, by what became of them."
    return Chart("rounds", "Round by round", text, made, f"Outcomes over rounds: {listed(happened)}.", note)


def steps(records: Records) -> Chart | None:
    """Return the histogram of the share of the wanted local steps that was done."""
    counts = steps_done(records)
    if not counts:
        return None
    names = [*(f"{10 * tenth} to {10 * tenth + 9}" for tenth in range(10)), "all"]
    made = blank(280, "local steps done, % of those wanted (10 stands for 10 to 19)", "trips")
    stacked(made, np.arange(11.0), 0.86, counts, [("steps done (%)", "@name")], name=names)
    made.xaxis.ticker = list(range(11))
    made.xaxis.major_label_overrides = {bar: f"{10 * bar}" for bar in range(10)} | {10: "all"}
    _thousands(made.yaxis)
    whole = sum(float(values[10]) for values in counts.values())
    every_trip = sum(float(values.sum()) for values in counts.values())
    text = f"{share(whole, every_trip)} of the trips did all the steps they were asked for."
    return Chart("steps", "How far they got", text, made, f"Histogram of steps done. {text}")


def clients(records: Records) -> Chart | None:
    """Return what each device gave, most first, with Gini's coefficient."""
    given = contributions(records)
    if not given.any():
        return None
    rows = every(len(given), _CLIENTS)
    made = blank(280, "devices, from the most to the least heard", "local steps aggregated")
    made.x_range.range_padding = 0.01
    bars = made.vbar(
        x=rows + 1.0,
        top=given[rows],
        width=max(1.0, len(given) / len(rows)),
        color=OUTCOME["complete"],
        line_color=None,
    )
    made.add_tools(hover([("rank", "@x{0,0}"), ("local steps", "@top{0,0}")], [bars]))
    made.y_range.start = 0
    _thousands(made.xaxis, made.yaxis)
    unheard = len(given) - len(np.unique(records.orders["client"][heard(records)]))
    none = f"{unheard:,} of {len(given):,} devices were never heard" if unheard else "Every device was heard"
    text = f"{none}. Gini of their steps {gini(given):.2f}: 0 is equal shares, 1 is one device doing everything."
    note = (
        f"{len(rows):,} of {len(given):,} devices drawn, evenly spread over the ranks."
        if len(rows) < len(given)
        else ""
    )
    return Chart("clients", "Who did the work", text, made, f"Local steps by device. {text}", note)


def hours(records: Records) -> Chart | None:
    """Return outcomes by hour of the virtual day; none for runs too short to have hours."""
    counts = by_hour(records) if len(records.orders["client"]) else {}
    if not counts or virtual_span(records) < _HOURS_SHOWN_FROM:
        return None
    got = sum((counts[name] for name in HEARD_NAMES if name in counts), np.zeros(24))
    asked = np.sum(list(counts.values()), axis=0)
    part = [share(float(a), float(b)) if b else "nobody asked" for a, b in zip(got, asked, strict=True)]
    made = blank(260, "hour of the virtual day (0 is when the scenario begins)", "trips begun, mean of the days")
    stacked(made, np.arange(24.0), 0.86, counts, [("hour", "@x{0}"), ("heard", "@part")], part=part)
    made.xaxis.ticker = list(range(0, 24, 2))
    _thousands(made.yaxis)
    text = "When trips began, and what became of them: recorded days show through."
    best = int(np.argmax(got))
    return Chart("hours", "Hour by hour", text, made, f"Trips by hour of day; most were heard in hour {best}.")


def _thousands(*axes: Any) -> None:
    from bokeh.models import NumeralTickFormatter

    for axis in axes:
        axis.formatter = NumeralTickFormatter(format="0,0")

"""A page that shows how speed grows with actors, from the rows of `fedactors scale`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedactors.report.figure import Chart, blank, legend
from fedactors.report.html_page import Page, Section, save
from fedactors.report.palette import RUNS

PARTS = ("clock", "broadcast", "compute", "reduce", "evaluate")  # of a round's time


def write(rows: Sequence[Mapping[str, Any]], path: Path) -> Path:
    """Write the page to `path` and return it: speed and efficiency by actors, and where the time of a round goes."""
    against = "Speed per actor, against the fewest actors with as many clients."
    charts = (
        Chart("speed", "Speed", "", _speed(rows), "Local steps per second by actors."),
        Chart("efficiency", "Efficiency", against, _efficiency(rows), "Strong efficiency by actors."),
    )
    parts = Chart("parts", "Where the time of a round goes", "", _parts(rows), "Seconds of a round by part.")
    sections = [Section("speed-up", "More actors", charts, (), "two"), Section("rounds", "Rounds", (parts,))]
    page = Page("fedactors scale", "scaling", "", sections, source="the runs of `fedactors scale`")
    return save(page, path)


def _lines(made: Any, rows: Sequence[Mapping[str, Any]], key: str) -> None:
    """Draw `key` by actors, a line for each number of clients."""
    for number, clients in enumerate(sorted({row["clients"] for row in rows})):
        mine = [row for row in rows if row["clients"] == clients and row[key] is not None]
        if mine:
            actors, values = [row["actors"] for row in mine], [row[key] for row in mine]
            look = {"color": RUNS[number % len(RUNS)], "legend_label": f"{clients:,} clients"}
            made.line(actors, values, **look)
            made.scatter(actors, values, size=7, **look)
    if made.legend:
        legend(made, "bottom_right")


def _speed(rows: Sequence[Mapping[str, Any]]) -> Any:
    made = blank(300, "actors", "local steps per second", x_axis_type="log", y_axis_type="log")
    _lines(made, rows, "steps_per_second")
    return made


def _efficiency(rows: Sequence[Mapping[str, Any]]) -> Any:
    made = blank(260, "actors", "strong efficiency", x_axis_type="log")
    _lines(made, rows, "strong_efficiency")
    return made


def _parts(rows: Sequence[Mapping[str, Any]]) -> Any:
    names = [f"{row['clients']:,} / {row['actors']}" for row in rows]
    made = blank(300, "clients / actors", "seconds of a round", x_range=names)
    data = {"point": names, **{part: [row[part] for row in rows] for part in PARTS}}
    made.vbar_stack(PARTS, x="point", width=0.8, color=RUNS[: len(PARTS)], source=data, legend_label=list(PARTS))
    legend(made, "top_right")
    made.add_layout(made.legend[0], "right")
    return made

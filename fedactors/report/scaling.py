"""A page that shows how speed grows with actors, from the rows of `fedactors scale`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedactors.report.figure import blank
from fedactors.report.palette import RUNS
from fedactors.run_files.writing import write_page

PARTS = ("clock", "broadcast", "compute", "reduce", "evaluate")  # of a round's time


def write(rows: Sequence[Mapping[str, Any]], path: Path) -> Path:
    """Write the page to `path` and return it: speed and efficiency by actors, and where the time of a round goes."""
    from bokeh.embed import file_html
    from bokeh.layouts import column
    from bokeh.resources import INLINE

    page = column(_speed(rows), _efficiency(rows), _parts(rows), sizing_mode="stretch_width")
    return write_page(path, file_html(page, INLINE, "fedactors scale"))


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
        made.legend.location = "top_left"


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
    return made

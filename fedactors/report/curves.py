"""What was learned: accuracy and loss against rounds, virtual time, traffic and wall time, of one run or of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedactors.metric_names import VALIDATION
from fedactors.report.figure import Chart, blank, hover, legend, tied, zoomable
from fedactors.report.measures import every
from fedactors.report.palette import LIGHT, RUNS, run_line
from fedactors.report.progress_axes import ProgressAxis, axes, progress
from fedactors.run_files.records import AT_CLIENTS, Records

_POINTS = 2_000
_FEWEST = 500
_TIPS = 3  # lines whose values are shown together; of more, only that of the line below the pointer
_MARKS = 300


def learning(runs: Sequence[Records], names: Sequence[str]) -> list[Chart]:
    """Return the charts of accuracy and loss; none if nothing was ever evaluated."""
    charts = []
    if _any(runs, "accuracy"):
        charts.append(_accuracy(runs, names))
    if _any(runs, "loss") or _any(runs, "train_loss"):
        charts.append(_loss(runs, names))
    if len(runs) == 1 and _any(runs, "client_accuracy"):
        charts.append(_clients(runs))
    return charts + [_named(runs, names, column) for column in _measures(runs)]


def _measures(runs: Sequence[Records]) -> list[str]:
    """Return the measures that scenarios name and that have a value in any of the runs."""
    named = dict.fromkeys(name for records in runs for name in records.measures)
    return [name for name in named if any(_has(records, name) for records in runs)]


def _has(records: Records, column: str) -> bool:
    return column in records.metrics and bool(np.isfinite(records.metrics[column]).any())


def _named(runs: Sequence[Records], names: Sequence[str], column: str) -> Chart:
    """Return the chart of a measure that scenarios name."""
    shown = column.replace("_", " ")
    made = blank(280, "round", f"{shown} on the test set")
    ways = axes(runs)
    made.xaxis.tags = ["progress"]
    drawn = [k for k, records in enumerate(runs) if _has(records, column)]
    said = {names[k]: _line(made, runs[k], column, ways, _look(runs, k), names[k], len(runs)) for k in drawn}
    if len(runs) == 1:
        _validation(made, runs[0], column, ways)
    progressing(made, runs)
    last = "; ".join(f"{name} ends at {value:.3f}" for name, value in said.items())
    way = {True: "Higher is better.", False: "Lower is better.", None: ""}[
        runs[drawn[0]].rises(column) if drawn else None
    ]
    return Chart(column, shown.capitalize(), way, made, f"{shown} against progress: {last}.", _sampled(runs))


def _clients(runs: Sequence[Records]) -> Chart:
    """Return the chart of the accuracy at single clients: their mean, the worst tenth, and how far they lie apart."""
    from bokeh.models import NumeralTickFormatter

    (records,) = runs
    ways = axes(runs)
    made = blank(280, "round", "accuracy at clients")
    made.yaxis.formatter = NumeralTickFormatter(format="0%")
    made.xaxis.tags = ["progress"]
    mean = _line(made, records, "client_accuracy", ways, _look(runs, 0), "mean of the clients")
    worst = _line(made, records, "client_accuracy_worst", ways, _TRAIN, "worst tenth")
    for k, group in enumerate(records.groups[: len(RUNS)] if len(records.groups) > 1 else ()):
        look = {"line_color": RUNS[k], "line_width": 1.5}
        _line(made, records, AT_CLIENTS + group.name, ways, look, f"mean of {group.name}")
    legend(made, "bottom_right")
    made.legend.visible = True
    progressing(made, runs)
    variances = records.metrics["client_accuracy_variance"]
    spread = float(np.sqrt(variances[np.isfinite(variances)][-1]))
    text = f"Each client on data of its own; the last standard deviation between clients is {spread:.1%}."
    said = f"Accuracy at clients against progress: the mean ends at {mean:.1%}, the worst tenth at {worst:.1%}."
    return Chart("clients-accuracy", "Accuracy at clients", text, made, said, _sampled(runs))


def progressing(made: Any, runs: Sequence[Records]) -> None:
    """Let a chart be moved and zoomed along the axis of progress that the reader has chosen."""
    tied(made, "chosen", (0.0, float(max(records.rounds for records in runs))))
    zoomable(made)


def _any(runs: Sequence[Records], column: str) -> bool:
    return any(np.isfinite(records.metrics[column]).any() for records in runs)


def _accuracy(runs: Sequence[Records], names: Sequence[str]) -> Chart:
    from bokeh.models import NumeralTickFormatter

    made = blank(280, "round", "accuracy on the test set")
    ways = axes(runs)
    made.yaxis.formatter = NumeralTickFormatter(format="0%")
    made.xaxis.tags = ["progress"]
    called = ["test set"] if len(runs) == 1 and runs[0].validated else names
    said = [
        _line(made, records, "accuracy", ways, _look(runs, k), called[k], len(runs)) for k, records in enumerate(runs)
    ]
    for records in runs if len(runs) == 1 else ():
        _decisions(made, records, ways)
        _moves(made, records, ways)
        _validation(made, records, "accuracy", ways)
    progressing(made, runs)
    last = "; ".join(f"{name} ends at {value:.1%}" for name, value in zip(names, said, strict=True) if value == value)
    text = "Share of the test set that the global model gets right."
    return Chart("accuracy", "Accuracy", text, made, f"Accuracy against progress: {last}.", _sampled(runs))


def _loss_of(runs: Sequence[Records]) -> str:
    """Return what the axis of losses says: which loss it is, unless runs differ in that, or do not say it."""
    named = [str(records.summary.get("loss_function", "")) for records in runs]
    found = {name if ":" in name else name.replace("_", " ") for name in named}
    name = found.pop() if len(found) == 1 else ""
    return f"loss ({name})" if name else "loss"


def _loss(runs: Sequence[Records], names: Sequence[str]) -> Chart:
    made = blank(280, "round", _loss_of(runs))
    ways = axes(runs)
    made.xaxis.tags = ["progress"]
    alone = len(runs) == 1
    said = []
    for k, records in enumerate(runs):
        if alone:
            _line(made, records, "train_loss", ways, _TRAIN, "clients, while they train")
            _validation(made, records, "loss", ways)
        said.append(_line(made, records, "loss", ways, _look(runs, k), "test set" if alone else names[k], len(runs)))
    if alone:
        legend(made, "top_right")
        made.legend.visible = True
    progressing(made, runs)
    last = "; ".join(f"{name} ends at {value:.3f}" for name, value in zip(names, said, strict=True) if value == value)
    return Chart("loss", "Loss", "Lower is better.", made, f"Loss against progress: {last}.", _sampled(runs))


_ASIDE = {"line_color": RUNS[0], "line_width": 1.5, "line_dash": [1, 3]}
_TRAIN = {"line_color": LIGHT["text"], "line_width": 1.5, "line_dash": [4, 3], "tags": ["muted"]}


def _validation(made: Any, records: Records, measure: str, ways: list[ProgressAxis]) -> None:
    """Draw a measure of the samples for validation, where there are some, beside that of the test set."""
    if _has(records, VALIDATION + measure):
        _line(made, records, VALIDATION + measure, ways, _ASIDE, "validation")
        legend(made, "right")
        made.legend.visible = True


def _look(runs: Sequence[Records], k: int) -> dict[str, Any]:
    if len(runs) == 1:
        return {"line_color": LIGHT["ink"], "line_width": 2.2, "tags": ["ink"]}
    color, dash = run_line(k)
    return {"line_color": color, "line_width": 2, "line_dash": dash}


def _points(runs: int) -> int:
    """Return how many points of the line of each run are drawn: the more lines, the fewer."""
    return max(_FEWEST, _POINTS // runs)


def _line(
    made: Any,
    records: Records,
    column: str,
    ways: list[ProgressAxis],
    look: dict[str, Any],
    name: str,
    runs: int = 1,
) -> float:
    """Draw one figure of one run, of the `runs` that the chart shows; return its last value, NaN if it has none."""
    from bokeh.models import ColumnDataSource

    values = records.metrics[column]
    rows = np.flatnonzero(np.isfinite(values))
    if not len(rows):
        return float("nan")
    rows = rows[every(len(rows), _points(runs))]
    reached = progress(records)
    columns = {way.key: (reached[way.key][rows] / way.scale).astype(np.float32) for way in ways}
    data = {"x": columns["round"], "y": values[rows].astype(np.float32), **columns}
    source = ColumnDataSource(data, tags=["switch"])
    tags = look.get("tags", [])
    plain_look = {k: v for k, v in look.items() if k != "tags"}
    line = made.line("x", "y", source=source, legend_label=name, name=name, **plain_look)
    line.glyph.tags = tags
    if len(rows) == 1:
        made.scatter("x", "y", source=source, size=7, color=look["line_color"]).glyph.tags = tags
    form = "@y{0.0%}" if "accuracy" in column else "@y{0.000}"
    tips = [(way.label, f"@{way.key}{{0,0.[00]}}") for way in ways]
    shown = [("", "$name"), (column.replace("_", " "), form), *tips]
    mode = "vline" if runs <= _TIPS else "mouse"
    made.add_tools(hover(shown, [line], mode=mode, line_policy="nearest"))
    made.legend.visible = False
    return float(values[rows[-1]])


def _moves(made: Any, records: Records, ways: list[ProgressAxis]) -> None:
    """Mark the rounds in which devices arrived (up) or departed (down) along the foot of the chart."""
    for column, shape, color in (("arrived", "triangle", "#6a9f3c"), ("departed", "inverted_triangle", "#8e62a9")):
        rows = np.flatnonzero(records.plans[column][: records.rounds])
        if len(rows):
            _mark(made, records, rows[every(len(rows), _MARKS)], column, shape, color, ways)


def _mark(
    made: Any, records: Records, rows: Any, column: str, shape: str, color: str, ways: list[ProgressAxis]
) -> None:
    from bokeh.models import ColumnDataSource

    reached = progress(records)
    floor = float(np.nanmin(records.metrics["accuracy"]))
    columns = {way.key: reached[way.key][rows] / way.scale for way in ways}
    data = {"x": columns["round"], "y": np.full(len(rows), floor), "number": records.plans[column][rows], **columns}
    source = ColumnDataSource(data, tags=["switch"])
    drawn = made.scatter("x", "y", source=source, marker=shape, size=9, color=color, legend_label=f"devices {column}")
    made.add_tools(hover([(f"devices {column}", "@number"), ("round", "@round")], [drawn]))
    made.legend.visible = True
    legend(made, "right")
    for item in made.legend.items:
        item.visible = str(getattr(item.label, "value", "")).startswith("devices ")


def _decisions(made: Any, records: Records, ways: list[ProgressAxis]) -> None:
    """Mark where the server decided about an arrival or a departure, with the numbers behind it."""
    from bokeh.models import ColumnDataSource

    reached = progress(records)
    floor = float(np.nanmin(records.metrics["accuracy"]))
    for decision, shape in (("include", "circle_cross"), ("exclude", "x")):
        moves = [(row, move) for row, move in records.moves if move.get("decision") == decision][:_MARKS]
        if not moves:
            continue
        rows = [row for row, _ in moves]
        columns = {way.key: reached[way.key][rows] / way.scale for way in ways}
        said = [f"device {move.get('client')}: {move.get('event')}, {decision}d" for _, move in moves]
        numbers = [_numbers(move.get("numbers")) for _, move in moves]
        data = {"x": columns["round"], "y": np.full(len(rows), floor), "said": said, "numbers": numbers, **columns}
        source = ColumnDataSource(data, tags=["switch"])
        name = f"devices {decision}d"
        look = {"size": 11, "fill_alpha": 0.0, "line_color": "#c93a4e", "line_width": 2}
        drawn = made.scatter("x", "y", source=source, marker=shape, legend_label=name, **look)
        made.add_tools(hover([("", "@said"), ("round", "@round"), ("", "@numbers")], [drawn]))


def _numbers(found: Any) -> str:
    items = found.items() if isinstance(found, dict) else ()
    return ", ".join(f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in items)[
        :300
    ]


def _sampled(runs: Sequence[Records]) -> str:
    most = max(records.rounds for records in runs)
    points = _points(len(runs))
    return f"{points:,} of {most:,} rounds drawn, evenly spread." if most > points else ""

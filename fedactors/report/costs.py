"""What accuracy cost, how old updates were, and where real time went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedactors.report.figure import Chart, blank, hover, share
from fedactors.report.measures import heard
from fedactors.report.page_sections import Card, PageTable, TableCell
from fedactors.report.palette import OUTCOME
from fedactors.report.terminal_text import grams, joules, size, span
from fedactors.report.trace_events import busy
from fedactors.run_files.records import Records

_AGES = 40


def cards(records: Records) -> list[Card]:
    """Return energy and money, as far as they are counted."""
    summary, found = records.summary, []
    if "joules" in summary:
        wasted = share(float(summary.get("joules_wasted", 0)), float(summary["joules"]))
        found.append(Card("Energy", joules(float(summary["joules"])), f"of devices, {wasted} wasted"))
    if "co2_grams" in summary:
        found.append(Card("Carbon", grams(float(summary["co2_grams"])), "of CO2 for that energy"))
    if "epsilon" in summary:
        spent = float(summary["epsilon"])
        found.append(Card("Privacy", f"epsilon {spent:.3g}", f"at delta {float(summary.get('delta', 0)):g}"))
    if "cost" in summary:
        found.append(Card("Cost", f"{float(summary['cost']):.4g}", "of the machines' time"))
    return found


def by_stage(records: Records) -> PageTable | None:
    """Return what stages and groups consumed; none where that does not depend on their times."""
    parts, groups = (records.summary.get(key) or {} for key in ("joules_of_stages", "joules_of_groups"))
    whole = sum(parts.values())
    if not whole:
        return None
    rows = tuple(
        (TableCell(kind), TableCell(name), TableCell(joules(energy)), TableCell(share(energy, whole)))
        for kind, found in (("stage", parts), ("group", groups))
        for name, energy in found.items()
    )
    each = {"mean": 0.0, "max": 0.0, "gini": 0.0, **(records.summary.get("joules_of_device") or {})}
    note = f"A device: {joules(each['mean'])} on average, {joules(each['max'])} at most (Gini {each['gini']:.2f})."
    return PageTable(("", "", "energy", "share"), rows, (2, 3), "", note)


def milestones(records: Records) -> PageTable | None:
    """Return what it took to get to each accuracy; none if none was reached."""
    reached = [line for line in records.summary.get("to_accuracy") or [] if line]
    if not reached:
        return None
    columns = {name: head for name, head in _HEADS.items() if any(name in line for line in reached)}
    rows = tuple(tuple(_cell(line, name) for name in columns) for line in reached)
    numbers = tuple(range(len(columns)))
    return PageTable(tuple(columns.values()), rows, numbers, "", f"The first evaluation{_of(reached[0])} as much.")


def _of(line: Mapping[str, Any]) -> str:
    """Return of which samples the accuracies are, as a part of a sentence."""
    return " of the samples for validation that showed" if "validation_accuracy" in line else " that showed"


def _cell(line: Mapping[str, Any], name: str) -> TableCell:
    return TableCell() if line.get(name) is None else TableCell(_SHOWN[name](line))


_HEADS = {
    "accuracy": "accuracy", "round": "round", "virtual_seconds": "virtual time", "bytes_down": "traffic",
    "joules": "energy", "co2_grams": "CO2", "wall_seconds": "wall time", "cost": "cost",
}  # fmt: skip
_SHOWN: dict[str, Any] = {
    "accuracy": lambda line: f"{line['accuracy']:.0%}",
    "round": lambda line: f"{line['round']:,}",
    "virtual_seconds": lambda line: span(line["virtual_seconds"]),
    "bytes_down": lambda line: size(line["bytes_down"] + (line.get("bytes_up") or 0)),
    "joules": lambda line: joules(line["joules"]),
    "co2_grams": lambda line: grams(line["co2_grams"]),
    "wall_seconds": lambda line: span(line["wall_seconds"]),
    "cost": lambda line: f"{line['cost']:.4g}",
}


def staleness(records: Records) -> Chart | None:
    """Return how many versions old the models were that updates started from; none if all were new."""
    age = (records.orders["version"] - records.orders["base"])[heard(records)]
    if not len(age) or not age.max(initial=0):
        return None
    counts = np.bincount(np.minimum(age, _AGES))
    made = blank(260, f"versions since the trip began ({_AGES} stands for more, too)", "updates aggregated")
    bars = made.vbar(x=np.arange(len(counts)), top=counts, width=0.86, color=OUTCOME["complete"], line_color=None)
    made.add_tools(hover([("staleness", "@x"), ("updates", "@top{0,0}")], [bars]))
    made.y_range.start = 0
    text = f"Mean {age.mean():.1f}, median {np.median(age):.0f}, at most {age.max():,} versions."
    return Chart("staleness", "Staleness", text, made, f"Staleness of the updates aggregated. {text}")


def real_time(records: Records) -> PageTable | None:
    """Return how long each actor worked by the wall clock; none if nobody noted it."""
    rows = tuple(
        (TableCell(track), TableCell(what), TableCell(f"{seconds:,.2f} s"))
        for track, what, seconds in busy(records.path / "wall.parquet")
    )
    note = "`fedactors timeline RUN` shows when."
    return PageTable(("actor", "work", "in all"), rows, (2,), "", note) if rows else None

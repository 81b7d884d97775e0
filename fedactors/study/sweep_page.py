"""A sweep as text, and as one HTML page with its heat maps."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from fedactors.plain_text import aligned
from fedactors.report.figure import Chart
from fedactors.report.heat import heat
from fedactors.report.html_page import Page, Section, save
from fedactors.report.page_sections import PageTable, TableCell
from fedactors.report.variant_names import Label, variant_of
from fedactors.study import study_sections
from fedactors.study.answer import Beside, best_variant
from fedactors.study.comparison_tables import averaged, counted, ranked_by, written
from fedactors.study.findings import sentences
from fedactors.study.heat_map import HeatMap
from fedactors.study.run_figures import learned, measure_of, tests_mixed, unlike_programs, validated
from fedactors.study.sweep import CONFIDENCE, Swept

NOTE = (
    "What holds, by differences in pairs (same seed, same place; 95% confidence over seeds, Student's t; of many"
    " differences, one in twenty leaves out 0 by luck):"
)


def text(found: Swept) -> str:
    """Return a line for each place, and below which is best."""
    lines = aligned([_heads(found), *_lines(found)])
    failed = [f"Not finished: {row.failure.splitlines()[0]} ({row.folder})" for row in found.rows if row.failure]
    of = "validation accuracy" if validated(found.rows) else "accuracy"
    target = [] if found.target is None else [f"Target: {of} {found.target:g}."]
    held = sentences(found)
    averages = [averaged(found.window)] if learned(found.measure) else []
    by = _ranked_by(found)
    told = [*best(found), *averages, *by, *(target if found.measure.endswith("_to") else []), *failed]
    below = ["", NOTE, *held] if held else []
    return "\n".join([title(found), answer(found), "", *lines, "", *told, *below]).rstrip()


def _ranked_by(found: Swept) -> list[str]:
    """Return by which samples places are ranked, and whether unlike programs have computed their figures."""
    rows = found.rows
    by = ranked_by(found.measure, len(found.places()), validated=validated(rows), mixed=tests_mixed(rows))
    return [*by, *(f"Note: {said}." for said in unlike_programs(rows))]


def answer(found: Swept) -> str:
    """Return which place is best, and how sure that is, against the second best."""
    test = None if found.on_test is None else Beside(found.titled(found.on_test), found.by_seed(found.on_test))
    values = found.by_seed(found.measure)
    return best_variant(values, None, found.titled(found.measure), found.rises(), CONFIDENCE, test)


def best(found: Swept) -> list[str]:
    """Return which place is best, and which is for each label of the axis `best_per`, as lines.

    There are none if the measure does not say what is better.
    """
    return [line for within in ({}, *found.each()) for line in _best(found, within)]


def _best(found: Swept, within: Mapping[str, Label]) -> list[str]:
    if (place := found.best(within)) is None:
        return []
    at, value = place
    words = " ".join(["Best", *(f"of {name} = {label}" for name, label in within.items())])
    where = ", ".join(f"{name} = {label}" for name, label in at.items() if name not in within)
    runs = len(found.rows) // len(found.places())
    few = "" if value.n == runs else f" ({value.n} of {runs} seeds)"
    return [f"{words}: {where} with {measure_of(found.measure).show(value.mean)}{few}{_on_test(found, at)}."]


def _on_test(found: Swept, at: Mapping[str, Label]) -> str:
    """Return the test samples' value at a place, where places are ranked by samples for validation."""
    value = None if found.on_test is None else found.mean(found.on_test, at)
    if found.on_test is None or value is None:
        return ""
    test = found.titled(found.on_test)
    return f" of validation, {test.name} {test.show(value.mean)}"


def title(found: Swept) -> str:
    """Return what was swept, in a line."""
    places, runs = counted(found.places(), "place"), counted(found.rows, "run")
    return f"{found.name}: {places}, {runs}, mean {found.titled(found.measure).name}"


def _heads(found: Swept) -> list[str]:
    return [*(axis.name for axis in found.axes), *(found.titled(name).name for name in found.columns)]


def _lines(found: Swept) -> list[list[str]]:
    places = found.places()
    runs = len(found.rows) // len(places)
    lines = []
    for at, value in places:
        further = (written(found.mean(name, at), measure_of(name), runs) for name in found.columns[1:])
        lines.append([*map(str, at.values()), written(value, measure_of(found.measure), runs), *further])
    return lines


def write(found: Swept, path: Path) -> Path:
    """Write the page and return its path. Raises RunFolderError if it cannot be written."""
    maps = found.maps()
    known = np.concatenate([one.values.ravel() for one in maps])
    known = known[np.isfinite(known)]
    limits = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    charts = tuple(_chart(found, one, k, limits) for k, one in enumerate(maps))
    heads = tuple(_heads(found))
    right = tuple(range(len(found.axes), len(heads)))
    by = " ".join(_ranked_by(found))
    sheet = PageTable(heads, tuple(tuple(map(TableCell, line)) for line in _lines(found)), right, "", by)
    held = PageTable(("what holds",), tuple((TableCell(said),) for said in sentences(found)), (), "", NOTE)
    first = variant_of(found.rows[0].labels) if found.rows else ""
    sections = [
        *([Section("findings", "What holds", (), (held,))] if held.rows else []),
        Section("maps", found.titled(found.measure).name.capitalize(), charts, (), "two" if len(charts) > 1 else ""),
        Section("figures", "Place by place", (), (sheet,)),
        *study_sections.participation(found.rows),
        *study_sections.settings(found.rows, first),
    ]
    lead = f"{title(found).partition(': ')[2]}."
    scenario = study_sections.scenario_of(found.rows, first)
    return save(Page(found.name, "sweep", lead, sections, scenario=scenario, answer=answer(found)), path)


def _chart(found: Swept, one: HeatMap, number: int, limits: tuple[float, float]) -> Chart:
    name = ", ".join(str(label) if axis == "variant" else f"{axis} = {label}" for axis, label in one.at.items())
    ticks = [str(label) for label in one.across.values], [str(label) for label in one.up.values]
    shown = found.titled(found.measure)
    return heat(
        f"map-{number}",
        name or shown.name.capitalize(),
        (one.across.name, one.up.name),
        ticks,
        one.values,
        limits,
        shown.show,
    )

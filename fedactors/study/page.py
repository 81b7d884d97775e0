"""A comparison as one HTML page, in the look of the reports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fedactors.report import bands
from fedactors.report.html_page import Page, Section, save
from fedactors.report.page_sections import PageTable, TableCell
from fedactors.report.palette import run_line
from fedactors.report.progress_axes import axes
from fedactors.study import comparison_tables, study_sections
from fedactors.study.comparison import Comparison
from fedactors.study.run_figures import learned, measure_of
from fedactors.study.statistics import share_interval


def write(comparison: Comparison, path: Path) -> Path:
    """Write the page and return its path. Raises RunFolderError if it cannot be written."""
    records = {name: [one.records for one in rows if not one.failure] for name, rows in comparison.variants.items()}
    shown = comparison_tables.drawn(comparison)
    drawn = bands.accuracy(records, lambda values: _ends(values, comparison.confidence), *shown)
    first = comparison_tables.columns(comparison)[0]
    measure = first if learned(first) else "accuracy"
    name = measure_of(measure).name
    apart = bands.differences(_apart(comparison, measure), comparison.baseline, name, list(comparison.variants))
    charts = tuple(chart for chart in (drawn, apart) if chart is not None)
    across = axes([one for runs in records.values() for one in runs])
    page = Page(
        title=comparison.name,
        kind="comparison",
        lead=comparison_tables.title(comparison).partition(": ")[2] + ".",
        answer=" ".join([comparison_tables.answer(comparison), *comparison_tables.cautions(comparison)]),
        sections=[
            Section("figures", "Side by side", (), (_sheet(comparison),)),
            *([Section("learning", "Learning", charts, (), "two", tuple(across))] if charts else []),
            *study_sections.participation(comparison.rows),
            *study_sections.settings(comparison.rows, comparison.baseline),
        ],
        scenario=study_sections.scenario_of(comparison.rows, comparison.baseline),
    )
    return save(page, path)


def _ends(values: Sequence[float], confidence: float) -> tuple[float, float]:
    """Return the ends of the interval of shares; NaN where there is none."""
    found = share_interval(values, confidence)
    if found is None or found.low is None or found.high is None:
        return float("nan"), float("nan")
    return found.low, found.high


def _apart(comparison: Comparison, measure: str) -> list[tuple[str, float, float | None]]:
    return [
        (one.variant, one.difference.mean, one.difference.half)
        for one in comparison.estimates()
        if one.measure == measure and one.difference is not None
    ]


def _sheet(comparison: Comparison) -> PageTable:
    rows = tuple(
        (_named(line[0], k), *map(TableCell, line[1:])) for k, line in enumerate(comparison_tables.lines(comparison))
    )
    heads = ("variant", *comparison_tables.heads(comparison)[1:])
    return PageTable(heads, rows, tuple(range(1, len(heads))), "", " ".join(comparison_tables.notes(comparison)))


def _named(variant: str, k: int) -> TableCell:
    """Return the name of the `k`-th variant beside the colour of its line."""
    color, dash = run_line(k)
    return TableCell(variant, color, dash=dash)

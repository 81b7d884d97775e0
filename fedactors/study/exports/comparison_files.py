"""A comparison as CSV for programs, and as a LaTeX table for papers."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import Any

from fedactors.study.compared import Compared
from fedactors.study.comparison_tables import cautions, heads, lines, notes, title
from fedactors.study.run_figures import MEASURES, StudyRow, figures, further, validated
from fedactors.study.statistics import Interval


def as_csv(comparison: Compared) -> str:
    """Return a line for each variant and measure: means, intervals and differences, unrounded."""
    head = [
        "variant",
        "measure",
        "n",
        "mean",
        "low",
        "high",
        "difference_n",
        "difference",
        "difference_low",
        "difference_high",
    ]
    body = [[one.variant, one.measure, *_ends(one.value), *_ends(one.difference)] for one in comparison.estimates()]
    return sheet([head, *body])


def _ends(value: Interval | None) -> list[Any]:
    return [0, None, None, None] if value is None else [value.n, value.mean, value.low, value.high]


def runs_csv(rows: Sequence[StudyRow], target: float | None, window: int | None) -> str:
    """Return a line for each run: where it stands, its figures, its folder, and why it failed if it did."""
    axes = list(dict.fromkeys(axis for one in rows for axis in one.labels))
    names = dict.fromkeys((*MEASURES, *(name for one in rows for name in further(one.records))))
    by = validated(rows)
    body = []
    for one in rows:
        values = figures(one, target, window, by_validation=by)
        body.append([*map(one.labels.get, axes), one.seed, *map(values.get, names), one.folder, one.failure])
    return sheet([[*axes, "seed", *names, "folder", "failure"], *body])


def sheet(rows: Sequence[Sequence[Any]]) -> str:
    """Return rows as CSV."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    return file.getvalue()


def latex(comparison: Compared) -> str:
    r"""Return a `tabular` for `booktabs`; a difference in bold leaves out 0."""
    first, *rest = [heads(comparison), *lines(comparison)]
    said = [f"% {line}" for line in [title(comparison), *cautions(comparison), *notes(comparison)]]
    begin = [rf"\begin{{tabular}}{{l{'r' * (len(first) - 1)}}}", r"\toprule", _latex_line(first), r"\midrule"]
    return "\n".join([*said, *begin, *map(_latex_line, rest), r"\bottomrule", r"\end{tabular}", ""])


def _latex_line(cells: Sequence[str]) -> str:
    return " & ".join(map(_latex_cell, cells)) + r" \\"


def _latex_cell(text: str) -> str:
    bold, text = text.endswith(" *"), text.removesuffix(" *")
    escaped = re.sub(r"([#$%&_{}])", r"\\\1", text.replace("\\", r"\textbackslash "))
    escaped = escaped.replace("~", r"\textasciitilde{}").replace("^", r"\textasciicircum{}").replace("±", r"$\pm$")
    escaped = re.sub(r"(?<![\w.])-(?=\d)", "$-$", escaped)
    return rf"\textbf{{{escaped}}}" if bold else escaped

"""What a sweep has found, in sentences: each axis by differences in pairs, with their intervals over seeds.

On an axis every label is compared with the first, and of up to three labels every pair is compared. For a seed, the
measure is averaged over the places of the other axes, at both labels alike, so that one difference for each seed is
left; Student's t over seeds says whether its interval leaves out 0. Runs that are the same at both labels say nothing
about the axis and are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import mean
from typing import NamedTuple

from fedactors.study.answer import comparative
from fedactors.study.run_figures import Measure, StudyRow, measure_of
from fedactors.study.statistics import Interval, interval
from fedactors.study.study_cells import Label, StudyAxis
from fedactors.study.sweep import Swept

TOO_CLOSE = "too close to tell"
Place = tuple[Label, int, tuple[tuple[str, Label], ...]]  # label on the axis, seed, labels on the others
_ALL_PAIRS = 3  # labels


class Finding(NamedTuple):
    """How a label of an axis differs from another one, where `at` holds."""

    axis: str
    at: Mapping[str, Label]
    label: Label
    baseline: Label
    difference: Interval
    pairs: int  # of runs, with the same seed at the same place
    of: int  # pairs that there are, also where a run has no figure


def findings(found: Swept) -> list[Finding]:
    """Return the differences on each axis: over all places, and at each label of the last axis.

    Those of the last axis are over all places, and at each label of the first.
    """
    seen = _measured(found)
    first, last = found.axes[0], found.axes[-1]
    return [
        finding
        for one in found.axes
        for beside in [first if one is last else last]
        for at in ({}, *({beside.name: label} for label in beside.values if beside is not one))
        for finding in _on(one, at, found.rows, seen)
    ]


def sentences(found: Swept) -> list[str]:
    """Return a sentence for each axis and place: which labels are better, worse, or too close to tell."""
    said: dict[tuple[str, Label, tuple[tuple[str, Label], ...]], list[Finding]] = {}
    for one in findings(found):
        if one.difference.half is not None:
            said.setdefault((one.axis, one.baseline, tuple(one.at.items())), []).append(one)
    return [_sentence(group, measure_of(found.measure), found.rises()) for group in said.values()]


def _sentence(group: Sequence[Finding], measure: Measure, rises: bool | None) -> str:
    first = group[0]
    where = ", ".join(f"{_short(name)} {label}" for name, label in first.at.items())
    parts = [f"{one.label} {_verdict(one, measure, rises)}" for one in group]
    return f"{_short(first.axis)}, {where or 'everywhere'}: against {first.baseline}, {'; '.join(parts)}."


def _short(axis: str) -> str:
    return axis.removesuffix(".name").rpartition(".")[2]


def _verdict(finding: Finding, measure: Measure, rises: bool | None) -> str:
    value = finding.difference
    few = [] if finding.pairs == finding.of else [f"{finding.pairs} of {finding.of} pairs"]
    if value.mean == 0 and value.half == 0:
        return "makes no difference" + "".join(f" ({said})" for said in few)
    sign = "+" if value.mean >= 0 else ""
    shown = "; ".join([f"{sign}{measure.show(value.mean)} ± {measure.show(value.half or 0.0)}", *few])
    word = comparative(value.mean, rises) if value.apart else TOO_CLOSE
    return f"is {word} ({shown})"


def _measured(found: Swept) -> dict[int, float]:
    """Return the measure of each row that has it, by its position."""
    values = [one.get(found.measure) for one in found.figures]
    return {k: value for k, value in enumerate(values) if value is not None}


def _on(one: StudyAxis, at: Mapping[str, Label], rows: Sequence[StudyRow], seen: Mapping[int, float]) -> list[Finding]:
    """Return how labels of an axis differ from one another, over the rows at a place."""
    there = {
        (row.labels[one.name], row.seed, _elsewhere(row, one.name)): k
        for k, row in enumerate(rows)
        if all(row.labels.get(name) == label for name, label in at.items())
    }
    found = []
    for baseline, label in _pairs([*one.values]):
        pairs = _paired(there, baseline, label, rows)
        apart: dict[int, list[float]] = {}
        for mine, base in pairs:
            if mine in seen and base in seen:
                apart.setdefault(rows[mine].seed, []).append(seen[mine] - seen[base])
        value = interval([mean(values) for values in apart.values()])
        if value is not None:
            found.append(Finding(one.name, at, label, baseline, value, sum(map(len, apart.values())), len(pairs)))
    return found


def _paired(
    there: Mapping[Place, int], baseline: Label, label: Label, rows: Sequence[StudyRow]
) -> list[tuple[int, int]]:
    """Return the positions of runs at a label and at a baseline, with one seed at one place; of runs that differ."""
    pairs = [(k, there.get((baseline, seed, place))) for (mine, seed, place), k in there.items() if mine == label]
    return [(k, base) for k, base in pairs if base is not None and rows[k].folder != rows[base].folder]


def _pairs(labels: Sequence[Label]) -> list[tuple[Label, Label]]:
    """Return which labels are compared, as (baseline, label)."""
    pairs = list(combinations(labels, 2))
    return pairs if len(labels) <= _ALL_PAIRS else pairs[: len(labels) - 1]


def _elsewhere(row: StudyRow, axis: str) -> tuple[tuple[str, Label], ...]:
    return tuple((name, label) for name, label in row.labels.items() if name != axis)

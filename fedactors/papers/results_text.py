"""Results and claims as plain text and as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedactors.papers.experiment import Experiment, Measures, ResultTable
from fedactors.papers.verdicts import Claim, SeedMean

_FORMATS = {"t90": ".0f", "t50": ".0f", "xi2": ".3g", "g2": ".3g", "wall": ".1f"}  # others: .3f
_HEADS = {"t90": "T90", "t50": "T_0.5", "xi2": "xi^2", "g2": "G^2", "last5": "last 5"}
_HEADS |= {"at3": "round 3", "at5": "round 5", "at10": "round 10"}


def lines(experiment: Experiment, table: ResultTable, claims: Sequence[Claim]) -> list[str]:
    """Return the report: means over repeats, the paper's numbers, and verdicts (in brackets: reported only)."""
    said = [f"  {_verdict(claim):<19} {claim.text}: {claim.ours}" for claim in claims]
    note = [f"paper: {experiment.reported}"] if experiment.reported else []
    return [experiment.title, "", *(experiment.beside(table) or _body(experiment, table)), "", *note, *said]


def _body(experiment: Experiment, table: ResultTable) -> list[str]:
    groups = grouped(table)
    heads = [
        " ".join(label if isinstance(label, str) else f"{axis}={label}" for axis, label in at.items())
        for at, _ in groups
    ]
    width = max(len(head) for head in heads)
    body = [f"{'':{width}}  " + "  ".join(f"{_HEADS.get(column, column):>8}" for column in experiment.columns)]
    for head, (_, found) in zip(heads, groups, strict=True):
        body.append(f"{head:{width}}  " + "  ".join(f"{shown(found, c):>8}" for c in experiment.columns))
    return body


def data(experiment: Experiment, table: ResultTable, claims: Sequence[Claim]) -> dict[str, Any]:
    """Return the report as plain data."""
    return {
        "title": experiment.title,
        "reported": experiment.reported,
        "runs": [{**at, **_numbers(found, experiment.columns)} for at, found in table.rows],
        "beside": experiment.beside(table),
        "claims": [claim_data(claim) for claim in claims],
        "wall_seconds": round(sum(found.wall or 0.0 for _, found in table.rows), 1),
    }


def claim_data(claim: Claim) -> dict[str, Any]:
    """Return a claim as plain data."""
    named = {name: value._asdict() if isinstance(value, SeedMean) else value for name, value in claim._asdict().items()}
    return {**named, "verdict": claim.verdict.value}


def _numbers(found: Measures, columns: Sequence[str]) -> dict[str, Any]:
    """Return the measures of a run but for its whole curve and its folder."""
    kept = {name: value for name, value in found._asdict().items() if name not in ("curve", "folder")}
    return {**kept, "further": dict(found.further), **{column: found.figure(column) for column in columns}}


def grouped(table: ResultTable) -> list[tuple[dict[str, Any], list[Measures]]]:
    """Return the repeats at each place of the grid, in order."""
    groups: dict[tuple[Any, ...], list[Measures]] = {}
    for at, found in table.rows:
        groups.setdefault(tuple((axis, label) for axis, label in at.items() if axis != "seed"), []).append(found)
    return [(dict(at), found) for at, found in groups.items()]


def shown(found: Sequence[Measures], column: str) -> str:
    """Return the mean of a measure over repeats; a dash if one has none."""
    values = [measures.figure(column) for measures in found]
    return "-" if None in values else format(sum(values) / len(values), _FORMATS.get(column, ".3f"))


def _verdict(claim: Claim) -> str:
    return claim.verdict.value if claim.asserted else f"({claim.verdict.value})"

"""What is printed of and claimed about table 3 of Ruan et al. (AISTATS 2021) where participation emerges."""

from __future__ import annotations

from collections.abc import Callable

from fedactors.papers.claims import at_least, observed
from fedactors.papers.experiment import Label, ResultTable
from fedactors.papers.figures import Figure
from fedactors.papers.flexible.flexible_measures import accuracy
from fedactors.papers.flexible.flexible_reported import TABLE_3
from fedactors.papers.verdicts import Claim

EMERGING = "emerging"
_WORTH = 2.0  # points: smaller rises of the paper, of one run each, are within its noise
_HALF = 0.5


def halves_of(data: str, *kinds: str) -> Callable[[ResultTable], list[Claim]]:
    """Return the maker of the claims: C gains at least half of what the paper prints, where that is 2 points or more.

    They are asserted of the `kinds` of data. The same of B over A is reported, and that of sampled participation.
    """

    def claims(table: ResultTable) -> list[Claim]:
        alone = dict.fromkeys(at["data"] for at, _ in table.rows if at["T"] == 1)
        found = [_same(table, kind) for kind in alone]
        for kind, source, count, paper in _places(table, data):
            rises = _rises(table, kind, source, count)
            for name, ours, theirs in zip(("B - A", "C - B"), rises, paper, strict=True):
                if theirs < _WORTH:
                    continue
                text = f"{kind}, |T| = {count}, {source}: {name} is at least half of the paper's {theirs:g} points"
                held = kind in kinds and source == EMERGING and name == "C - B"
                found.append(at_least(text, ours, _HALF * theirs, asserted=held))
        return found

    return claims


def _same(table: ResultTable, kind: Label) -> Claim:
    """Claim that the schemes are one where every device completes its work."""
    at = {"data": kind, "source": EMERGING, "T": 1}
    behind = [accuracy(table, scheme=scheme, **at) for scheme in "ABC"]
    curves = [[run.curve for run in table.runs(scheme=scheme, **at)] for scheme in "ABC"]
    return observed(f"{kind}: one trace, all schemes are equal", "all curves", curves.count(curves[0]) == 3, behind)


def sources_of(data: str) -> Callable[[ResultTable], list[str]]:
    """Return the maker of table 3: the paper's rises, those from sampled and those from emerging participation."""

    def beside(table: ResultTable) -> list[str]:
        lines = [f"{data}, points of accuracy: B - A, C - B", f"{'':27}{'paper':>14}  {'ours':>14}    A / B / C"]
        for kind, source, count, paper in _places(table, data):
            rises = "".join(f"{rise:7.1f}" for rise in _rises(table, kind, source, count))
            levels = " / ".join(f"{level:.1f}" for level in _levels(table, kind, source, count))
            lines.append(f"{kind:<12}|T| = {count}  {source:<8}{paper[0]:7.1f}{paper[1]:7.1f}  {rises}    {levels}")
        return lines

    return beside


def _places(table: ResultTable, data: str) -> list[tuple[Label, Label, int, tuple[float, float]]]:
    """Return each (data, source, |T|) of the table with the rises that the paper prints there."""
    found = dict.fromkeys((at["data"], int(at["T"]), at["source"]) for at, _ in table.rows)
    return [
        (kind, source, count, TABLE_3[data, "NIID" if str(kind).startswith("NIID") else "IID"][count - 1])
        for kind, count, source in sorted(found, key=lambda place: (str(place[0]), place[1], str(place[2])))
    ]


def _levels(table: ResultTable, kind: Label, source: Label, count: int) -> list[Figure]:
    return [accuracy(table, data=kind, source=source, T=count, scheme=scheme) * 100 for scheme in "ABC"]


def _rises(table: ResultTable, kind: Label, source: Label, count: int) -> tuple[Figure, Figure]:
    a, b, c = _levels(table, kind, source, count)
    return b - a, c - b

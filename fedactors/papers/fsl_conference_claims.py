"""What the FSL conference paper claims of its figures, at their own size: directions without margins.

Where the paper says "similar" or "about", accuracies are within two points, as in the journal version.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from fedactors.papers import fsl_conference
from fedactors.papers.claims import less, more, narrow, rising
from fedactors.papers.experiment import Label, Measures, ResultTable
from fedactors.papers.figures import Figure
from fedactors.papers.fsl_full_claims import ALIKE
from fedactors.papers.fsl_journal_claims import acc
from fedactors.papers.verdicts import Claim


def fig1(table: ResultTable) -> list[Claim]:
    """Figure 1 of the conference paper: FSL is far above FL, DSL about DS; few passes of the server are enough."""
    at = {name: acc(table, algorithm=name) for name in ("FL", "DS", "FSL", "DSL")}
    return [
        more("FSL is more accurate than FL", at["FSL"], at["FL"]),
        narrow("DS and DSL are alike", [at["DS"], at["DSL"]], ALIKE),
        *passes(table),
    ]


def passes(table: ResultTable) -> list[Claim]:
    """Figure 6 of the conference paper: one pass of the server is as good as five."""
    axes = [axis for at, _ in table.rows for axis in at if axis.startswith("eta_0 ")]
    return [
        narrow(f"{axis}: E_s = 1 is as good as 5", [acc(table, **{axis: count}) for count in (1, 5)], ALIKE)
        for axis in dict.fromkeys(axes)
    ]


def fig2(table: ResultTable) -> list[Claim]:
    """Figure 2 of the conference paper: each method beats FL with few samples, and more of them help less and less."""
    plain, sizes = acc(table, method="FL"), sorted(table.labels("n0"), key=float)
    claims = []
    for name in ("DS", "FSL", "DSL"):
        at = [acc(table, n0=n0, algorithm=name) for n0 in sizes]
        claims += [
            more(f"n_0 = {n0}: {name} is more accurate than FL", a, plain) for n0, a in zip(sizes, at, strict=True)
        ]
        claims += _diminishing(name, at)
    return claims


def _diminishing(name: str, at: Sequence[Figure]) -> Iterator[Claim]:
    """Yield the claim that the last samples gain less than the first; nothing of accuracies `at` one or two sizes."""
    if len(at) > 2:
        yield less(f"{name}: the last samples help less than the first", at[-1] - at[-2], at[1] - at[0])


def fig3(table: ResultTable) -> list[Claim]:
    """Figure 3 of the conference paper, for either N: as the reduced one; FSL starts faster than DS, and is steadier.

    The paper says the same of N = 10 and of N = 100, and prints no number that would compare the two. T90 is a share of
    an algorithm's own end, and FSL ends higher: who learns faster at the beginning, the first rounds tell.
    """
    start = {name: table.figure(_first_tenth, algorithm=name) for name in ("DS", "FSL")}
    sd20 = {name: table.mean("sd20", algorithm=name) for name in ("DS", "FSL")}
    return [
        *fsl_conference.fig3(table),
        more("FSL is ahead of DS at the beginning (accuracy over a tenth of the rounds)", start["FSL"], start["DS"]),
        less("FSL is steadier than DS (sd20)", sd20["FSL"], sd20["DS"]),
    ]


def _first_tenth(run: Measures) -> float | None:
    """Return the mean accuracy of a run in the first tenth of its rounds; None if it was not evaluated then."""
    early = [point.accuracy for point in run.curve if 10 * point.round <= run.rounds]
    return fmean(early) if early else None


def fig4(table: ResultTable) -> list[Claim]:
    """Figure 4 of the conference paper: FL suffers from small C, FSL gains most there; at C = 5 FSL is about DS."""
    counts = sorted(table.labels("C"), key=float)
    at = {(name, c): acc(table, C=c, algorithm=name) for name in ("FL", "DS", "FSL") for c in counts}
    return [
        rising("FL becomes more accurate with C", [at["FL", c] for c in counts]),
        rising("the gain of FSL over FL grows as C falls", [at["FSL", c] - at["FL", c] for c in reversed(counts)]),
        *(more(f"C = {c}: FSL is more accurate than DS", at["FSL", c], at["DS", c]) for c in counts[:-1]),
        narrow(f"C = {counts[-1]}: FSL and DS are alike", [at["FSL", counts[-1]], at["DS", counts[-1]]], ALIKE),
        less(
            f"FSL gains less over DS at C = {counts[-1]} than at {counts[0]}",
            at["FSL", counts[-1]] - at["DS", counts[-1]],
            at["FSL", counts[0]] - at["DS", counts[0]],
        ),
        less(
            f"C = {counts[-1]}: FSL is behind DS (the paper: may be, slightly)",
            at["FSL", counts[-1]],
            at["DS", counts[-1]],
            asserted=False,
        ),
    ]


def fig5(table: ResultTable) -> list[Claim]:
    """Figure 5 of the conference paper: all grow with n_0, mostly early; FSL and DSL are alike."""
    sizes: Sequence[Label] = sorted(table.labels("n0"), key=float)
    claims = []
    for name in ("DS", "FSL", "DSL"):
        at = [acc(table, n0=n0, algorithm=name) for n0 in sizes]
        if len(sizes) > 1:
            claims.append(more(f"{name}: n_0 = {sizes[-1]} is more accurate than {sizes[0]}", at[-1], at[0]))
        claims += _diminishing(name, at)
    late = [acc(table, n0=sizes[-1], algorithm=name) for name in ("FSL", "DSL")]
    return [*claims, narrow(f"n_0 = {sizes[-1]}: FSL and DSL are alike", late, ALIKE)]

"""What is printed of and claimed about the experiments of Ruan et al. (AISTATS 2021), see `flexible`."""

from __future__ import annotations

from collections.abc import Callable

from fedactors.papers.claims import at_least, at_most, counted, less, more, observed, printed
from fedactors.papers.experiment import Label, ResultTable
from fedactors.papers.figures import Figure
from fedactors.papers.flexible.flexible_measures import accuracy, apart, crossings, gains, rebound, shown
from fedactors.papers.flexible.flexible_reported import TABLE_3, TABLE_4, TABLE_5
from fedactors.papers.verdicts import Claim

TableText = Callable[[ResultTable], list[str]]
_NOISE = 3.0  # points: the paper's gaps of one trace, which are 0 by its definitions, are up to .7, of one run each
_SHARE = 0.25  # its gaps for 4 to 8 traces vary by a quarter from one number of traces to the next
_ROUNDS = 3.0  # of a rebound: accuracies of single rounds go up and down
_REBOUND = 0.5  # its counts of one run each vary by half from one tau_0 to the next
_MOST = 0.5  # of the repeats: then the median is a number, as the paper prints one
_LATE = 30  # rounds before an arrival that is late
REBOOTS = ("fast", "vanilla")


def table3_of(data: str) -> TableText:
    """Return what makes the lines of table 3 for a data set."""

    def beside(table: ResultTable) -> list[str]:
        lines = [f"{data}, points of accuracy{'':22}paper: B - A  C - B   ours: B - A  C - B    accuracy A / B / C"]
        for kind in table.labels("data"):
            reported = TABLE_3.get((data, "IID" if kind == "(0,0)" else str(kind)))
            for count in _counts(table, kind):
                a, b, c = (100 * accuracy(table, data=kind, T=count, scheme=scheme) for scheme in "ABC")
                paper = "{:13.1f}{:7.1f}".format(*reported[count - 1]) if reported else f"{'-':>13}{'-':>7}"
                lines.append(
                    f"  {kind:<6} |T| = {count}{'':31}{paper}{b - a:13.1f}{c - b:7.1f}     {a:.1f} / {b:.1f} / {c:.1f}"
                )
        return lines

    return beside


def table4_of(data: str) -> TableText:
    """Return what makes the lines of table 4 for a data set: medians of rebounds."""

    def beside(table: ResultTable) -> list[str]:
        lines = [
            f"{data}, rounds until the accuracy is back, fast / vanilla reboot: medians",
            f"{'':12}{'paper':>9}     ours",
        ]
        for tau in (int(label) for label in table.labels("tau")):
            ours = (shown(rebound(run, tau) for run in table.runs(tau=tau, reboot=name)) for name in REBOOTS)
            paper = TABLE_4[data].get(tau)
            said = f"{paper[0]} / {paper[1]}" if paper else "-"
            lines.append(f"  tau_0 = {tau:<3}{said:>8}     {' / '.join(ours)}")
        return lines

    return beside


def table5_beside(table: ResultTable) -> list[str]:
    """Return table 5 with our medians of crossings."""
    lines = ["rounds after a departure until excluding is no worse than including: medians", f"{'':24}paper     ours"]
    for a in (float(label) for label in table.labels("a")):
        for tau in (int(label) for label in table.labels("tau")):
            lines.append(
                f"  ({a:g}, {a:g}) tau_0 = {tau:<6}{TABLE_5[a].get(tau, '-'):>5}    {shown(crossings(table, tau, a))}"
            )
    return lines


def _counts(table: ResultTable, kind: Label) -> list[int]:
    return sorted({int(at["T"]) for at, _ in table.rows if at["data"] == kind})


def table3_claims(table: ResultTable) -> list[Claim]:
    """Complete devices only lose much where many do less; scaling up gains a little; one trace makes no difference."""
    claims = []
    for kind in table.labels("data"):
        at = {
            (scheme, count): accuracy(table, data=kind, T=count, scheme=scheme)
            for scheme in "ABC"
            for count in _counts(table, kind)
        }
        if ("A", 1) in at:
            claims.append(all_equal(table, f"{kind}: one trace, all schemes are equal", data=kind, T=1))
        if kind == "NIID" and ("A", 8) in at:
            gain = {count: at["B", count] - at["A", count] for count in (3, 8)}
            claims += [
                more(f"{kind}, |T| = 8: B is more accurate than A", at["B", 8], at["A", 8], 0.1),
                at_least(f"{kind}, |T| = 8: C is no less accurate than B", at["C", 8], at["B", 8]),
                more(f"{kind}: B gains more over A for 8 traces than for 3", gain[8], gain[3]),
            ]
    return claims


def all_equal(table: ResultTable, text: str, **labels: Label) -> Claim:
    """Claim that the schemes are one where every device completes its work; what is no number is not compared."""
    at = [{**labels, "scheme": scheme} for scheme in "ABC"]
    curves = [[run.curve for run in table.runs(**place)] for place in at]
    sums = [table.figure(lambda run: sum(point.accuracy + point.loss for point in run.curve), **one) for one in at]
    behind = [*(accuracy(table, **place) for place in at), *sums]
    ours = "accuracy and loss of every round, to six digits"  # as results of cells keep them
    return observed(text, ours, curves.count(curves[0]) == 3, behind)


def gaps_of(data: str) -> Callable[[ResultTable], list[Claim]]:
    """Return the maker of the claims of table 3 at full size: its own, and each gap that the paper prints."""

    def claims(table: ResultTable) -> list[Claim]:
        found = table3_claims(table)
        for kind in table.labels("data"):
            theirs = TABLE_3[data, "IID" if kind == "(0,0)" else str(kind)]
            for count in _counts(table, kind):
                a, b, c = (accuracy(table, data=kind, T=count, scheme=scheme) * 100 for scheme in "ABC")
                for name, ours, gap in zip(("B - A", "C - B"), (b - a, c - b), theirs[count - 1], strict=True):
                    within = max(_NOISE, _SHARE * abs(gap))
                    found.append(printed(f"{kind}, |T| = {count}: {name}, points", ours, gap, within, 1))
        return found

    return claims


def schemes_claims(table: ResultTable) -> list[Claim]:
    """Half the digits lie at devices that do about half the work."""
    a, b, c = (accuracy(table, scheme=scheme) for scheme in "ABC")
    ahead = sum(gain is not None and gain > 0 for gain in (c - b).values)
    return [
        more("C is more accurate than B", c, b, 0.05),
        more("B is more accurate than A", b, a, 0.05),
        counted("C is more accurate than B in most repeats", ahead, len(c.values), _MOST, [b, c]),
    ]


def table4_claims(table: ResultTable) -> list[Claim]:
    """Look whether a raised weight helps for a while, more so for late arrivals."""
    at = {(tau, j): gains(table, tau + j, "accuracy", tau=tau) for tau in (10, 30, 70) for j in (5, 10)}
    claims = [
        more(f"tau_0 = {tau}: fast is more accurate than vanilla {j} rounds later", at[tau, j], 0.0, 0.02)
        for tau in (30, 70)
        for j in (5, 10)
    ]
    return [
        *claims,
        *(
            less(f"tau_0 = {tau}: fast has less loss {j} rounds later", gains(table, tau + j, "loss", tau=tau), 0.0)
            for tau in (30, 70)
            for j in (1, 5, 10, 30)
        ),
        more("fast gains more after round 70 than after 10 (5 rounds later)", at[70, 5], at[10, 5]),
        *rebounds(table, asserted=False),
    ]


def rebounds(table: ResultTable, *, asserted: bool = True) -> list[Claim]:
    """Look whether a raised weight is no slower to get the accuracy back; asserted of late arrivals at most.

    The paper says "consistently faster", and prints 4 rounds against 3, and ties, for arrivals at round 10.
    """
    claims = []
    for tau in (int(label) for label in table.labels("tau")):
        fast, vanilla = (_back(table, tau, name) for name in REBOOTS)
        text = f"tau_0 = {tau}: fast is back no later than vanilla (rounds)"
        claims.append(at_most(text, fast, vanilla, asserted=asserted and tau >= _LATE))
    return claims


def _back(table: ResultTable, tau: int, reboot: str) -> Figure:
    """Return `rebound` of each repeat."""
    return table.figure(lambda run: rebound(run, tau), tau=tau, reboot=reboot)


def limited(table: ResultTable) -> list[Claim]:
    """Corollary 4.0.2: an extra update helps where the model is near its old optimum, as it is late in the training."""
    early, late = (gains(table, tau + 1, "accuracy", tau=tau) for tau in (10, 70))
    return [more("fast gains less one round after an arrival at round 10 than at 70", late, early)]


def table4_reduced(table: ResultTable) -> list[Claim]:
    """As `table4_claims`, and what limits fast reboot."""
    return [*table4_claims(table), *limited(table)]


def rebounds_of(data: str) -> Callable[[ResultTable], list[Claim]]:
    """Return the maker of the claims of table 4 at full size: its own, and each number that the paper prints."""

    def claims(table: ResultTable) -> list[Claim]:
        found = rebounds(table)
        for tau in (int(label) for label in table.labels("tau")):
            for name, rounds in zip(REBOOTS, TABLE_4[data].get(tau, ()), strict=False):
                ours, within = _back(table, tau, name), max(_ROUNDS, _REBOUND * rounds)
                found.append(printed(f"tau_0 = {tau}: {name} reboot, rounds until it is back", ours, rounds, within, 1))
        return found

    return claims


def fig5_claims(table: ResultTable) -> list[Claim]:
    """After each arrival a raised weight is ahead for a while; both end alike."""
    claims = []
    for tau in (100, 150, 200):
        points = (gains(table, tau + 5, "accuracy") + gains(table, tau + 10, "accuracy")) * (1 / 3)
        points += gains(table, tau + 20, "accuracy") * (1 / 3)
        claims.append(more(f"after round {tau}: fast is ahead (5, 10, 20 rounds later)", points, 0.0))
    end = abs(gains(table, 300, "accuracy"))
    return [*claims, less("both end about equal", end, 0.03, asserted=False)]


def table5_claims(table: ResultTable) -> list[Claim]:
    """Excluding first costs, then pays; the later the departure and the more different the devices, the later."""
    claims, at = [], {}
    for a in (float(label) for label in table.labels("a")):
        for tau in (int(label) for label in table.labels("tau")):
            found = crossings(table, tau, a)
            first, end = (apart(table, tau, j, a) for j in (1, 120))
            at[a, tau] = Figure(tuple(found), first.faults)
            crossed = sum(one is not None for one in found)
            where = f"({a:g}, {a:g}), tau_0 = {tau}"
            claims += [
                more(f"{where}: excluding costs in the first round", first, 0.0),
                less(f"{where}: excluding pays 120 rounds later", end, 0.0),
                counted(f"{where}: losses cross in most repeats", crossed, len(found), _MOST, [first, end]),
            ]
        text = f"({a:g}, {a:g}): the crossing is later for tau_0 = 50 than for 10"
        claims.append(less(text, at[a, 10], at[a, 50]))
    if {0.1, 1.0} <= {a for a, _ in at}:
        text = "tau_0 = 50: the crossing is later for (1, 1) than for (.1, .1)"
        claims.append(less(text, at[0.1, 50], at[1.0, 50]))
    return claims

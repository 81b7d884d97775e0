"""What the FSL journal paper claims of its figures, at their own size: directions without margins.

Where it says "similar", "comparable" or "about equal", accuracies are within two points (`ALIKE`); the means of
three runs that Table I prints differ by .2 to .7 points where the text says "slightly". Where a gain of rounds
"diminishes" it is less than the rounds over which T90 averages accuracies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fedactors.papers.claims import at_least, less, more, narrow, reported, rising
from fedactors.papers.experiment import Label, ResultTable
from fedactors.papers.figures import Figure, highest, share_of
from fedactors.papers.fsl_journal_claims import acc
from fedactors.papers.verdicts import Claim
from fedactors.simulation.record.learning_curve import WINDOW

ALIKE = 0.02  # of accuracies
_MOST = 0.75  # "in most cases"
_FAR = 0.3  # of G^2: "much smaller"
Claims = Callable[[ResultTable], list[Claim]]


def fig6(all_labels: int) -> Claims:
    """Return the claims of figure 6: FSL is the most accurate, rises earliest and swings least; IID, all end alike."""
    return lambda table: _ordered(table, all_labels)


def _ordered(table: ResultTable, all_labels: int) -> list[Claim]:
    few = _non_iid(table, all_labels)
    claims = [claim for c in few for claim in order(table, c)]
    iid = [acc(table, C=all_labels, algorithm=name) for name in ("FL", "DS", "FSL")]
    gains = [acc(table, C=c, algorithm="FSL") - acc(table, C=c, algorithm="FL") for c in reversed(few)]
    return [
        *claims,
        rising("the gain of FSL over FL grows as C falls", gains),
        narrow(f"C = {all_labels}, IID: all end alike", iid, ALIKE),
    ]


def _non_iid(table: ResultTable, all_labels: int) -> list[Label]:
    """Return the values of C that are not all labels, ascending."""
    return sorted((c for c in table.labels("C") if c != all_labels), key=float)


def order(table: ResultTable, c: Label) -> Iterator[Claim]:
    """Yield how FL, DS and FSL compare at one C where clients are non-IID."""
    at = {name: acc(table, C=c, algorithm=name) for name in ("FL", "DS", "FSL")}
    sd20 = {name: table.mean("sd20", C=c, algorithm=name) for name in ("FL", "DS", "FSL")}
    yield more(f"C = {c}: FSL is more accurate than DS", at["FSL"], at["DS"])
    yield more(f"C = {c}: DS is more accurate than FL", at["DS"], at["FL"])
    yield earlier(table, c)
    yield less(f"C = {c}: FSL is steadier than DS (sd20)", sd20["FSL"], sd20["DS"])
    yield less(f"C = {c}: FSL is steadier than FL (sd20)", sd20["FSL"], sd20["FL"])


def earlier(table: ResultTable, c: Label) -> Claim:
    """Claim that FSL reaches nine tenths of its final accuracy before DS does, at one C."""
    fsl, ds = (table.mean("t90", C=c, algorithm=name) for name in ("FSL", "DS"))
    return less(f"C = {c}: FSL rises earlier than DS (T90)", fsl, ds)


def fig1(all_labels: int, shared: float) -> Claims:
    """Return the claims of figure 1: as figure 6; FSL is consistent over gamma, and beats DS with its objective.

    `shared` is gamma = N n_0 / n.
    """
    return lambda table: [
        *_ordered(table, all_labels),
        *(
            narrow(f"C = {c}: FSL is alike for gamma from 0.5 to 1.5", [acc(table, C=c, gamma=g) for g in _FLAT], ALIKE)
            for c in table.labels("C")
        ),
        *(
            more(
                f"C = {c}: {_same_objective(shared)} is more accurate than DS",
                acc(table, C=c, gamma=shared),
                acc(table, C=c, algorithm="DS"),
            )
            for c in _non_iid(table, all_labels)
        ),
        *(
            less(
                f"C = {c}: {_same_objective(shared)} rises earlier than DS (T90)",
                table.mean("t90", C=c, gamma=shared),
                table.mean("t90", C=c, algorithm="DS"),
            )
            for c in _non_iid(table, all_labels)
        ),
    ]


def _same_objective(gamma: float) -> str:
    return f"FSL with gamma = N n_0 / n = {gamma:g}, the loss that DS minimises,"


_FLAT = (0.5, 1.0, 1.5)


def fig2(smaller_is_better: bool, n0: int, shared: float) -> Claims:
    """Return the claims of figure 2: on CIFAR-10 a smaller gamma is better, on EMNIST a larger one.

    `shared` is gamma = N n_0 / n of one of the sizes, `n0`.
    """
    return lambda table: [
        *_gammas(table, smaller_is_better),
        *_sizes_and_rates(table),
        *(
            more(
                f"n_0 = {n0}, eta_l = {rate}: {_same_objective(shared)} is more accurate than DS",
                acc(table, n0=n0, eta_l=rate, gamma=shared),
                acc(table, n0=n0, eta_l=rate, gamma="DS"),
            )
            for rate in table.labels("eta_l")
        ),
    ]


def _gammas(table: ResultTable, smaller_is_better: bool) -> Iterator[Claim]:
    for n0 in table.labels("n0"):
        for rate in table.labels("eta_l"):
            at = {g: acc(table, n0=n0, eta_l=rate, gamma=g) for g in (*_FLAT, 2.0, "DS")}
            where = f"n_0 = {n0}, eta_l = {rate}"
            yield more(f"{where}: FSL (gamma = 1) is more accurate than DS", at[1.0], at["DS"])
            yield narrow(f"{where}: FSL is alike for gamma from 0.5 to 1.5", [at[g] for g in _FLAT], ALIKE)
            best, other = (0.5, 2.0) if smaller_is_better else (2.0, 0.5)
            yield more(f"{where}: gamma = {best:g} is more accurate than {other:g}", at[best], at[other])


def _sizes_and_rates(table: ResultTable) -> Iterator[Claim]:
    rates, sizes = sorted(table.labels("eta_l"), key=float), sorted(table.labels("n0"), key=float)
    for rate in rates:
        grown = [acc(table, n0=n0, eta_l=rate, gamma=1.0) for n0 in sizes]
        yield rising(f"eta_l = {rate}: FSL becomes more accurate with n_0", grown)
    for n0 in sizes:
        saved = {
            rate: table.mean("t90", n0=n0, eta_l=rate, gamma="DS") - table.mean("t90", n0=n0, eta_l=rate, gamma=1.0)
            for rate in rates
        }
        yield more(f"n_0 = {n0}: FSL saves rounds at the smallest rate (T90)", saved[rates[0]], 0.0)
        yield less(
            f"n_0 = {n0}: it saves fewer at the largest rate than at the smallest", saved[rates[-1]], saved[rates[0]]
        )
        yield narrow(f"n_0 = {n0}: at the largest rate FSL rises with DS (T90)", [saved[rates[-1]], 0.0], WINDOW)


def _best(table: ResultTable, c: Label, name: str) -> Figure:
    """Return the accuracy of an algorithm at its best rate."""
    return highest(acc(table, C=c, eta_l=rate, algorithm=name) for rate in table.labels("eta_l"))


def fig5_cifar(table: ResultTable) -> list[Claim]:
    """Figure 5 on CIFAR-10, each algorithm at its best rate: FSL > FSLsyn > SCAFFOLD and FedDyn, most for small C."""
    claims, gains = [], []
    for c in table.labels("C"):
        at = {name: _best(table, c, name) for name in ("FSL", "SCAFFOLD", "FedDyn", "FSLsyn")}
        claims += [
            more(f"C = {c}: {mine} is more accurate than {other}", at[mine], at[other])
            for mine, other in (("FSL", "SCAFFOLD"), ("FSL", "FedDyn"), ("FSLsyn", "SCAFFOLD"), ("FSLsyn", "FedDyn"))
        ]
        claims.append(more(f"C = {c}: FSL is more accurate than FSLsyn", at["FSL"], at["FSLsyn"]))
        gains.append(at["FSL"] - at["SCAFFOLD"])
    return [*claims, rising("the gain of FSL over SCAFFOLD grows as C falls", gains[::-1])]


def fig5_emnist(table: ResultTable) -> list[Claim]:
    """Figure 5 on EMNIST, each algorithm at its best rate: all are comparable."""
    names = ("FSL", "FSLsyn", "SCAFFOLD", "FedDyn")
    return [
        narrow(f"C = {c}: all are alike", [_best(table, c, name) for name in names], ALIKE) for c in table.labels("C")
    ]


def curves(table: ResultTable) -> list[Claim]:
    """Figures 10 and 11: FSL and FSLsyn end as high as SCAFFOLD in most cases, and rise faster in most cases."""
    places = [(c, rate) for c in table.labels("C") for rate in table.labels("eta_l")]
    claims = []
    for mine in ("FSL", "FSLsyn"):
        ends, rises = (
            [
                table.mean(measure, C=c, eta_l=rate, algorithm=mine)
                - table.mean(measure, C=c, eta_l=rate, algorithm="SCAFFOLD")
                for c, rate in places
            ]
            for measure in ("accuracy", "t90")
        )
        high, early = share_of(ends, lambda end: end >= -ALIKE), share_of(rises, lambda rise: rise < 0)
        claims += [
            at_least(f"{mine} ends as high as SCAFFOLD, in which share of the places", high, _MOST),
            at_least(f"{mine} rises earlier than SCAFFOLD (T90), in which share of the places", early, _MOST),
        ]
    return claims


def fig7(table: ResultTable) -> list[Claim]:
    """Figure 7: FSL beats DS and its non-incremental form for every C and S, which is slightly worse than DS."""
    return [
        claim
        for c in table.labels("C")
        for s in table.labels("S")
        for claim in _incremental(
            f"C = {c}, S = {s}", *(acc(table, C=c, S=s, algorithm=name) for name in ("FSL", "DS", "FSL-p"))
        )
    ]


def fig8(table: ResultTable) -> list[Claim]:
    """Figure 8: the same for every gamma."""
    ds = acc(table, algorithm="DS")
    return [
        claim
        for g in table.labels("gamma")
        for claim in _incremental(f"gamma = {g}", acc(table, gamma=g), ds, acc(table, **{"FSL-p gamma": g}))
    ]


def _incremental(where: str, fsl: Figure, ds: Figure, parallel: Figure) -> list[Claim]:
    return [
        more(f"{where}: FSL is more accurate than DS", fsl, ds),
        more(f"{where}: FSL is more accurate than FSL-p", fsl, parallel),
        *reported([more(f"{where}: DS is more accurate than FSL-p", ds, parallel)]),  # FSL-p has no printed formula
    ]


def fig9(all_labels: int, small: int, large: int) -> Claims:
    """Return the claims of figure 9: xi^2 is far below G^2 for non-IID clients, and falls with n_0; G^2 falls with C.

    `small` and `large` are n_0.
    """

    def claims(table: ResultTable) -> list[Claim]:
        found = []
        for c in _non_iid(table, all_labels):
            xi2 = {n0: table.mean("xi2", C=c, n0=n0) for n0 in (small, large)}
            found += [
                less(f"C = {c}: mean xi^2 is far below mean G^2", xi2[large], table.mean("g2", C=c, n0=large), _FAR),
                less(f"C = {c}: xi^2 is smaller with n_0 = {large} than with {small}", xi2[large], xi2[small]),
            ]
        spread = [table.mean("g2", C=c, n0=large) for c in sorted(table.labels("C"), key=float, reverse=True)]
        return [*found, rising("mean G^2 grows as C falls", spread)]

    return claims

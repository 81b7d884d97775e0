"""The server learning papers' experiments at their own size, and the reduced ones on the papers' own images.

Full runs take from 17 minutes (table I) to six hours (figure 1) of two cores each. Claims are the papers', without
margins; numbers that are printed are asserted within tolerances.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from fedactors.papers import fsl_conference_claims as conference
from fedactors.papers import fsl_full_claims as full
from fedactors.papers.claims import less, more, printed, reported
from fedactors.papers.experiment import Axes, Experiment, ResultTable
from fedactors.papers.fsl_axes import Axis, algorithms, classes, cohorts, own, rates, weighted
from fedactors.papers.fsl_conference import methods, passes
from fedactors.papers.fsl_journal_claims import acc
from fedactors.papers.verdicts import Claim, Floor

_STL = "server.data={{name: stl10, per_class: {0}}}"
_ROWS: Axis = {
    "FSLsyn 504": (_STL.format(56),),
    "FSLsyn 720": (_STL.format(80),),
    "FSL 250": ("server.data={name: clients, clients: 5, samples: 50}",),
    "FSL 500": ("server.data={name: clients, clients: 10, samples: 50}",),
}
_ALPHAS: Axis = {a: (f"server.algorithm={{name: feddyn, alpha: {a}}}",) for a in (0.01, 0.05, 0.1, 0.5)}
_TABLE_1: Sequence[Axes] = [  # gamma and alpha are tuned, as the paper does
    {"row": _ROWS, "gamma": weighted("fsl", (0.6, 0.8, 1.0, 1.2))},
    {"row": {"FedDyn": ("server.schedule.lr=0.05",)}, "alpha": _ALPHAS},
    {"row": {"FL": ("server.algorithm=fedavg", "server.participation=uniform")}},
]


_PRINTED = {  # T_0.5, accuracy
    "FedDyn": (502, 0.578),
    "FSLsyn 504": (339, 0.576),
    "FSLsyn 720": (333, 0.584),
    "FSL 250": (238, 0.585),
    "FSL 500": (203, 0.614),
}
_ACCURACY = 0.02  # of a mean of three runs, and rates are tuned on a grid
_SPEED = 0.25  # of T_0.5: where a curve is flat, two points of accuracy are a quarter of the rounds


def table1(table: ResultTable) -> list[Claim]:
    """T_0.5: FSL 500 < FSL 250 < FSLsyn 720 <= FSLsyn 504 < FedDyn; accuracies the other way, the last two close."""
    rows = [row for row in ("FSL 500", "FSL 250", "FSLsyn 720", "FSLsyn 504") if row in table.labels("row")]
    pairs = list(pairwise(rows))
    claims = [
        *(
            less(f"{a} is faster than {b} (T_0.5)", table.mean("t50", row=a), table.mean("t50", row=b))
            for a, b in [*pairs, *((row, "FedDyn") for row in rows[-1:])]
        ),
        *(more(f"{a} is more accurate than {b}", acc(table, row=a), acc(table, row=b)) for a, b in pairs),
    ]
    for row, (rounds, accuracy) in _PRINTED.items():
        if row not in table.labels("row"):
            continue
        claims += [
            printed(f"{row}: T_0.5", table.mean("t50", row=row), rounds, _SPEED * rounds, 0),
            printed(f"{row}: accuracy", acc(table, row=row), accuracy, _ACCURACY),
        ]
    return claims


_THREE = algorithms("FL", "DS", "FSL")
_LABELS = {"cifar": 10, "emnist": 45}
_OWN = {"cifar": (100, 200, 500), "emnist": (90, 225, 450)}  # n_0
_SHARED = {"cifar": (500, 0.1), "emnist": (225, 0.09375)}  # n_0, and N n_0 / n: so weighted, FSL has DS's objective
_GAMMAS = {data: (shared, 0.5, 1.0, 1.5, 2.0) for data, (_, shared) in _SHARED.items()}
_COLUMNS = ("accuracy", "t90", "t50", "sd20", "wall")
_LEARNT = {"cifar": (Floor(0.2),), "emnist": (Floor(0.2),)}  # chance is a tenth, and one of 45


def _full(
    title: str,
    file: str,
    grids: Sequence[Axes],
    seeds: Sequence[int] = (1, 2, 3),
    claims: Callable[[ResultTable], list[Claim]] = lambda table: [],
    reported: str = "",
) -> Experiment:
    return Experiment(
        title, f"papers/fsl/{file}.yaml", grids, seeds, claims, reported, _COLUMNS, floors=_LEARNT["cifar"]
    )


def _journal_grids(data: str) -> dict[int, tuple[str, Sequence[Axes]]]:
    """Return what the journal's figures 1, 2 and 5 to 9 vary on one data set, in words and as grids."""
    many = classes(1, 2, 5, 10) if data == "cifar" else classes(1, 2, 5, 10, 45)
    few = classes(1, 2, 5)
    gammas = _GAMMAS[data]
    unlike: Axis = {"FL": (*_THREE["FL"], "server.pretraining=null"), "DS": _THREE["DS"], "FSL": _THREE["FSL"]}
    sizes, pair = _OWN[data], (2, 4) if data == "cifar" else (5, 5)
    syn: Axis = {"FSLsyn": ("server.algorithm=fsl", _STL.format(56) if data == "cifar" else "server.data=glyphs")}
    state = {**algorithms("FSL", "SCAFFOLD", "FedDyn"), **syn}
    at = {"C": classes(pair[0]), "S": cohorts(pair[1])}
    return {
        1: (
            "labels per client; FSL and DS pretrained",
            [{"C": many, "algorithm": unlike}, {"C": many, "gamma": weighted("fsl", gammas)}],
        ),
        2: (
            "gamma, eta_l and n_0",
            [
                {
                    "n0": own(*sizes),
                    "eta_l": rates(0.01, 0.02, 0.05),
                    "gamma": {**weighted("fsl", gammas), "DS": _THREE["DS"]},
                }
            ],
        ),
        5: ("algorithms with client state", [{"C": few, "eta_l": rates(0.005, 0.01, 0.02, 0.05), "algorithm": state}]),
        6: ("labels per client; nobody pretrained", [{"C": many, "algorithm": _THREE}]),
        7: (
            "incremental against non-incremental",
            [{"C": few, "S": cohorts(2, 4, 6), "algorithm": algorithms("DS", "FSL", "FSL-p")}],
        ),
        8: (
            "the same over gamma",
            [
                {**at, "gamma": weighted("fsl", gammas)},
                {**at, "FSL-p gamma": weighted("fsl-p", gammas)},
                {**at, "algorithm": algorithms("DS")},
            ],
        ),
        9: ("dissimilarities", [{"C": many, "n0": own(*sizes[:2])}]),
    }


def _journal(data: str) -> dict[str, Experiment]:
    """Return the journal's figures 1, 2 and 5 to 9 on one data set."""
    name = "CIFAR-10" if data == "cifar" else "EMNIST"
    all_labels = _LABELS[data]
    claims = {
        1: full.fig1(all_labels, _SHARED[data][1]),
        2: full.fig2(data == "cifar", *_SHARED[data]),
        5: full.fig5_cifar if data == "cifar" else full.fig5_emnist,
        6: full.fig6(all_labels),
        7: full.fig7,
        8: full.fig8,
        9: full.fig9(all_labels, *_OWN[data][:2]),
    }
    return {
        f"fsl-fig{number}-{data}": Experiment(
            f"FSL journal, figure {number}, {name}: {what}",
            f"papers/fsl/fig{number}-{data}.yaml",
            grids,
            (1, 2, 3),
            claims[number],
            columns=("xi2", "g2", "accuracy") if number == 9 else _COLUMNS,
            floors=_LEARNT[data],
        )
        for number, (what, grids) in _journal_grids(data).items()
    }


def _conference() -> dict[str, Experiment]:
    """Return the conference paper's figures."""
    four = methods(0.02, "FL", "DS", "FSL", "DSL")
    learning = methods(0.02, "DS", "FSL", "DSL")
    unlike: Axis = {**four, "FL": (*four["FL"], "server.pretraining=null")}
    first = methods(0.03, "FL", "DS", "FSL", "DSL")
    e_s = {f"eta_0 {rate}": passes((1, 2, 3, 4, 5), rate=rate) for rate in (0.01, 0.02, 0.03)}
    seeds = (1, 2, 3, 4, 5)
    return {
        "fsl-conf-fig1": _full(
            "FSL conference, figure 1, EMNIST: eta_0 and E_s",
            "conf-fig1",
            [
                {"algorithm": {**first, "FL": (*first["FL"], "server.pretraining=null")}},
                *({name: axis} for name, axis in e_s.items()),
            ],
            seeds,
            conference.fig1,
        ),
        "fsl-conf-fig2": _full(
            "FSL conference, figure 2, EMNIST: n_0",
            "conf-fig2",
            [
                {"method": methods(0.03, "FL")},
                {"n0": own(94, 235, 376, 517), "algorithm": methods(0.03, "DS", "FSL", "DSL")},
            ],
            seeds,
            conference.fig2,
        ),
        "fsl-conf-fig3a": _full(
            "FSL conference, figure 3, CIFAR-10, N = 10",
            "conf-fig3a",
            [{"algorithm": four}],
            seeds,
            conference.fig3,
        ),
        "fsl-conf-fig3b": _full(
            "FSL conference, figure 3, CIFAR-10, N = 100",
            "conf-fig3b",
            [{"algorithm": four}],
            seeds,
            conference.fig3,
        ),
        "fsl-conf-fig4": _full(
            "FSL conference, figure 4, CIFAR-10: labels per client",
            "conf-fig4",
            [{"C": classes(1, 2, 5), "algorithm": unlike}],
            seeds,
            conference.fig4,
        ),
        "fsl-conf-fig5": _full(
            "FSL conference, figure 5, CIFAR-10: n_0",
            "conf-fig5",
            [{"n0": own(200, 400, 600, 800, 1000), "algorithm": learning}],
            seeds,
            conference.fig5,
        ),
        "fsl-conf-fig6": _full(
            "FSL conference, figure 6, CIFAR-10: passes of the server",
            "conf-fig6",
            [{name: axis} for name, axis in e_s.items()],
            seeds,
            conference.passes,
        ),
    }


FULL: dict[str, Experiment] = {
    **_journal("cifar"),
    **_journal("emnist"),
    "fsl-fig10": _full(
        "FSL journal, figure 10: curves of figure 5, CIFAR-10",
        "fig10",
        [
            {
                "C": classes(1, 2, 5),
                "eta_l": rates(0.01, 0.02, 0.05),
                "algorithm": {
                    **algorithms("FSL", "SCAFFOLD", "FedDyn"),
                    "FSLsyn": ("server.algorithm=fsl", _STL.format(56)),
                },
            }
        ],
        claims=full.curves,
    ),
    "fsl-fig11": _full(
        "FSL journal, figure 11: curves of figure 5, EMNIST",
        "fig11",
        [
            {
                "C": classes(1, 2, 5),
                "eta_l": rates(0.01, 0.02, 0.05),
                "algorithm": algorithms("FSL", "FSLsyn", "SCAFFOLD", "FedDyn"),
            }
        ],
        claims=full.curves,
    ),
    "fsl-table1": Experiment(
        "FSL journal, table I: CIFAR-10, 1,000 clients of 50 images, C = 2",
        "papers/fsl/table1.yaml",
        _TABLE_1,
        (1, 2, 3),
        table1,
        "T_0.5 / accuracy: FedDyn 502 / .578, FSLsyn 504: 339 / .576, 720: 333 / .584, FSL 250: 238 / .585, "
        "500: 203 / .614",
        _COLUMNS,
        tuned=("gamma", "alpha"),
        best_by="accuracy",
        floors=_LEARNT["cifar"],
    ),
    **_conference(),
}


def _images(table: ResultTable) -> list[Claim]:
    """Return the order of FL, DS and FSL at every C; asserted is that FSL rises earlier than DS at C = 1 and 2.

    That was found with one seed, and holds with two more. With so few images and a dense network the rest does not
    carry over to both data sets.
    """
    asserted = {claim.text: claim for claim in (full.earlier(table, c) for c in (1, 2))}
    order = reported([claim for c in table.labels("C") for claim in full.order(table, c)])
    return [asserted.get(claim.text, claim) for claim in order]


IMAGES: dict[str, Experiment] = {
    f"fsl-fig1-{data}": Experiment(
        f"FSL journal, figure 1, reduced, on {name}",
        f"papers/fsl/fig1-{data}-reduced.yaml",
        [{"C": classes(1, 2, 5), "algorithm": _THREE}],
        (1, 2, 3),
        _images,
        floors=_LEARNT[data],
    )
    for data, name in (("cifar", "CIFAR-10"), ("emnist", "EMNIST"))
}

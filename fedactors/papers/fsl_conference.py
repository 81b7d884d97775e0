"""Figures of the FSL conference paper: Mai, La and Zhang, Federated Learning with Server Learning for Non-IID Data.

The server has one free rate, eta_0, and models are averaged. Margins of the reduced claims were set beforehand with an
independent implementation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedactors.papers.claims import less, more, narrow, rising
from fedactors.papers.experiment import Experiment, Label, ResultTable
from fedactors.papers.fsl_axes import Axis, algorithms, classes, own
from fedactors.papers.fsl_journal_claims import acc
from fedactors.papers.verdicts import Claim, Floor

_SEEDS = (1, 2, 3)
_PASSES = (1, 2, 5, 10, 20)
_OWN = (50, 100, 200)


def methods(rate: float, *names: str) -> Axis:
    """Return the axis of FL, DS, FSL and DSL, as many as are named, with the server's rate eta_0."""
    options = {
        name: f"server.algorithm={{name: {name.lower()}, version: conference, server_lr: {rate}}}"
        for name in ("FSL", "DSL")
    }
    learning: Mapping[Label, Sequence[str]] = {
        name: (change, "server.participation=uniform") for name, change in options.items()
    }
    return {name: learning[name] if name in learning else algorithms(name)[name] for name in names}


def passes(epochs: Sequence[int], product: float | None = None, rate: float = 0.0) -> Axis:
    """Return the axis of the server's passes E_s; at a fixed `rate`, or at a fixed `product` of rate and passes."""
    return {
        count: (
            "server.algorithm={name: fsl, version: conference, "
            f"server_lr: {product / count if product else rate:g}, server_epochs: {count}}}",
        )
        for count in epochs
    }


def fig1(table: ResultTable) -> list[Claim]:
    """Compare FL, DS, FSL and DSL, and passes of the server."""
    scaled = [acc(table, scaled=count) for count in _PASSES]
    fixed = [acc(table, fixed=count) for count in (1, 5)]
    return [
        *sharing(table, 2),
        narrow("FSL is flat in E_s at a fixed product of rate and passes", scaled, 0.01),
        narrow("FSL with E_s = 5 is as good as with 1 at a fixed rate", fixed, 0.03),
        more("FSL is more accurate than FL", acc(table, algorithm="FSL"), acc(table, algorithm="FL"), 0.03),
    ]


def sharing(table: ResultTable, c: int) -> list[Claim]:
    """Compare methods with and without server learning at C labels per client."""
    at = {name: acc(table, C=c, algorithm=name) for name in ("DS", "FSL", "DSL")}
    dsl, ds = (table.mean("t90", C=c, algorithm=name) for name in ("DSL", "DS"))
    return [
        more(f"C = {c}: DSL is more accurate than DS", at["DSL"], at["DS"], 0.01),
        narrow(f"C = {c}: DSL and FSL are about equal", [at["DSL"], at["FSL"]], 0.02),
        less(f"C = {c}: DSL rises earlier than DS (T90)", dsl, ds, 0.7),
    ]


def fig2(table: ResultTable) -> list[Claim]:
    """Compare with FL at every n_0."""
    plain = acc(table, method="FL")
    return [
        *(
            more(f"n_0 = {n}: {name} is more accurate than FL", acc(table, n0=n, algorithm=name), plain)
            for n in _OWN
            for name in ("DS", "FSL", "DSL")
        ),
        *fig5(table),
    ]


def fig3(table: ResultTable) -> list[Claim]:
    """Compare all methods from a common pretrained start."""
    at = {name: acc(table, algorithm=name) for name in ("FL", "DS", "FSL")}
    sd20 = {name: table.mean("sd20", algorithm=name) for name in ("FL", "FSL", "DSL")}
    return [
        more("FSL is more accurate than FL", at["FSL"], at["FL"], 0.03),
        more("FSL is at least as accurate as DS", at["FSL"], at["DS"]),
        less("FSL is steadier than FL (sd20)", sd20["FSL"], sd20["FL"]),
        less("DSL is steadier than FL (sd20)", sd20["DSL"], sd20["FL"]),
        less("FSL rises earlier than FL (T90)", table.mean("t90", algorithm="FSL"), table.mean("t90", algorithm="FL")),
    ]


def fig4(table: ResultTable) -> list[Claim]:
    """Compare gains over labels per client."""
    gains = [acc(table, C=c, algorithm="FSL") - acc(table, C=c, algorithm="FL") for c in (5, 2, 1)]
    over_ds = {c: acc(table, C=c, algorithm="FSL") - acc(table, C=c, algorithm="DS") for c in (1, 5)}
    return [
        *sharing(table, 1),
        *sharing(table, 2),
        rising("FL becomes more accurate with C", [acc(table, C=c, algorithm="FL") for c in (1, 2, 5)]),
        rising("the gain of FSL grows as C falls: 5, 2, 1", gains),
        more("C = 1: FSL is more accurate than DS", over_ds[1], 0.0),
        less("FSL gains less over DS at C = 5 than at C = 1", over_ds[5], over_ds[1]),
        narrow("C = 5: FSL and DS are about equal", [acc(table, C=5, algorithm=name) for name in ("FSL", "DS")], 0.03),
    ]


def fig5(table: ResultTable) -> list[Claim]:
    """Compare sizes of the server's data."""
    return [
        rising(f"{name} becomes more accurate with n_0", [acc(table, n0=n, algorithm=name) for n in _OWN])
        for name in ("DS", "FSL", "DSL")
    ]


def fig6(table: ResultTable) -> list[Claim]:
    """Compare one pass of the server with five."""
    return [narrow("E_s = 1 is as good as 5", [acc(table, fixed=count) for count in (1, 5)], 0.03)]


_FOUR = methods(0.02, "FL", "DS", "FSL", "DSL")
_LEARNING = methods(0.02, "DS", "FSL", "DSL")


_LEARNT = (Floor(0.5),)  # half of the images; a tenth is chance
_WITH_SERVER = (Floor(0.79),)  # FL without a server that learns ends at .76, FSL above .80


def _reduced(
    number: int,
    what: str,
    grids: Sequence[Mapping[str, Axis]],
    claims: object,
    floors: Sequence[Floor] = _LEARNT,
) -> Experiment:
    assert callable(claims)
    title = f"FSL conference, figure {number}, reduced: {what}"
    return Experiment(title, f"papers/fsl/conf-fig{number}-reduced.yaml", grids, _SEEDS, claims, floors=floors)


REDUCED = {
    "fsl-conf-fig1": _reduced(
        1,
        "the server's passes; C = 2",
        [{"C": classes(2), "algorithm": _FOUR}, {"scaled": passes(_PASSES, 0.2)}, {"fixed": passes((1, 5), rate=0.02)}],
        fig1,
    ),
    "fsl-conf-fig2": _reduced(
        2,
        "the server's samples; C = 2",
        [{"method": methods(0.02, "FL")}, {"n0": own(*_OWN), "algorithm": _LEARNING}],
        fig2,
    ),
    "fsl-conf-fig3": _reduced(3, "from a common pretrained start; C = 2", [{"algorithm": _FOUR}], fig3),
    "fsl-conf-fig4": _reduced(4, "labels per client", [{"C": classes(1, 2, 5), "algorithm": _FOUR}], fig4),
    "fsl-conf-fig5": _reduced(5, "the server's samples; C = 2", [{"n0": own(*_OWN), "algorithm": _LEARNING}], fig5),
    "fsl-conf-fig6": _reduced(
        6, "passes of the server; C = 2", [{"fixed": passes((1, 5), rate=0.02)}], fig6, _WITH_SERVER
    ),
}

"""Tables 3, 4 and 5 and figures 3, 4 and 5 of Ruan et al., Towards Flexible Device Participation, AISTATS 2021.

Participation is sampled from laws with the paper's moments. Margins of the reduced claims were set beforehand with an
independent implementation.
"""

from __future__ import annotations

from dataclasses import replace

from fedactors.papers.claims import more, reported
from fedactors.papers.experiment import Axes, Experiment, ResultTable
from fedactors.papers.flexible import flexible_limits
from fedactors.papers.flexible.flexible_axes import (
    FOLDER,
    LEARNT,
    OPTIONS,
    REBOOT,
    SCHEMES,
    arrivals,
    departures,
    images,
    spreads,
    synthetic,
    traces,
)
from fedactors.papers.flexible.flexible_claims import (
    fig5_claims,
    gaps_of,
    rebounds_of,
    schemes_claims,
    table3_claims,
    table3_of,
    table4_of,
    table4_reduced,
    table5_beside,
    table5_claims,
)
from fedactors.papers.flexible.flexible_departures import crossings_of
from fedactors.papers.flexible.flexible_measures import accuracy
from fedactors.papers.fsl_axes import Axis
from fedactors.papers.verdicts import Claim, Floor

_GRIDS3: list[Axes] = [
    {"data": synthetic("NIID"), "T": traces(1, 3, 8), "scheme": SCHEMES},
    {"data": synthetic("(0,0)", "IID"), "T": traces(8), "scheme": SCHEMES},
]
_INACTIVE: Axis = {
    "some": ("population.devices.sampled=[T0, Thi, Tmi, Tlo]",),
    "none": ("population.devices.sampled=[T0, T30, T50, T90]",),
}
_EARLY: Axis = {flexible_limits.EARLY: (*_INACTIVE["none"], f"server.rounds={flexible_limits.EARLY}")}
_EIGHT, _SIX, _FIVE, _THREE = (tuple(range(1, n + 1)) for n in (8, 6, 5, 3))


def _table3_letters(table: ResultTable) -> list[Claim]:
    """As `table3_claims`; asserted of IID devices alone, and that B is ahead of A there.

    From one letter per device little is learnt in so few rounds: those claims are reported.
    """
    iid, niid = (replace(table, rows=[row for row in table.rows if row[0]["data"] == kind]) for kind in ("IID", "NIID"))
    a, b = (accuracy(table, data="IID", T=8, scheme=scheme) for scheme in "AB")
    return [
        *table3_claims(iid),
        more("IID, |T| = 8: B is more accurate than A", b, a),
        *reported(table3_claims(niid)),
    ]


_ALL_BUT_A = (Floor(0.0, where={"scheme": "A"}), *LEARNT)  # by how much A stays behind is what the table prints
REDUCED: dict[str, Experiment] = {
    "flexible-table3": Experiment(
        "Ruan et al., table 3 and figure 3, reduced: SYNTHETIC, 50 devices, one, three and all traces",
        f"{FOLDER}table3-synthetic-reduced.yaml", _GRIDS3, _FIVE, table3_claims, beside=table3_of("SYNTHETIC"),
        floors=_ALL_BUT_A,
    ),
    "flexible-table3-mnist": Experiment(
        "Ruan et al., table 3, reduced: MNIST, 14 x 14, half of ten devices on trace T90",
        f"{FOLDER}table3-mnist-reduced.yaml", [{"scheme": SCHEMES}], _FIVE, schemes_claims,
        "the whole table for MNIST: flexible-table3-mnist at full size",
        floors=_ALL_BUT_A,
    ),
    "flexible-table3-emnist": Experiment(
        "Ruan et al., table 3, reduced: EMNIST Balanced, 62 devices, softmax regression",
        f"{FOLDER}table3-emnist-reduced.yaml",
        [{"data": images(6200, 20), "T": traces(1, 3, 5, 8), "scheme": SCHEMES}], _THREE,
        _table3_letters, beside=table3_of("EMNIST"),
        floors=_ALL_BUT_A,
    ),
    "flexible-table4": Experiment(
        "Ruan et al., table 4 and figure 4 (left), reduced: one of ten devices arrives",
        f"{FOLDER}table4-reduced.yaml", [{"tau": arrivals(60, 10, 30, 50, 70), "reboot": REBOOT}], _EIGHT,
        table4_reduced, beside=table4_of("MNIST"),
        floors=LEARNT,
    ),
    "flexible-fig5": Experiment(
        "Ruan et al., figure 5, reduced: three devices arrive one after the other",
        f"{FOLDER}fig5-reduced.yaml", [{"reboot": REBOOT}], _EIGHT, fig5_claims,
        floors=LEARNT,
    ),
    "flexible-table5": Experiment(
        "Ruan et al., table 5 and figure 4 (right), reduced: one of thirty devices departs",
        f"{FOLDER}table5-reduced.yaml",
        [{"a": spreads(0.1, 0.5, 1.0), "tau": departures(120, 10, 20, 30, 40, 50), "option": OPTIONS}], _SIX,
        table5_claims, beside=table5_beside,
        floors=LEARNT,
    ),
    "flexible-rr5": Experiment(
        "Ruan et al., section 4, reduced: where the schemes end, on four quadratics",
        f"{FOLDER}rr5-reduced.yaml",
        [{"inactive": _INACTIVE, "scheme": SCHEMES}, {"early": _EARLY, "scheme": SCHEMES}], _THREE,
        flexible_limits.claims, beside=flexible_limits.beside, floors=flexible_limits.FLOORS,
        from_run=flexible_limits.distances,
    ),
}  # fmt: skip

_ALL = traces(1, 2, 3, 4, 5, 6, 7, 8)
FULL: dict[str, Experiment] = {
    "flexible-table3": Experiment(
        "Ruan et al., table 3 and figure 3: SYNTHETIC",
        f"{FOLDER}table3-synthetic.yaml",
        [{"data": synthetic("NIID", "(0,0)"), "T": _ALL, "scheme": SCHEMES}], _THREE,
        gaps_of("SYNTHETIC"), beside=table3_of("SYNTHETIC"),
        floors=_ALL_BUT_A,
    ),
    "flexible-table3-mnist": Experiment(
        "Ruan et al., table 3 and figure 3: MNIST", f"{FOLDER}table3-mnist.yaml",
        [{"data": images(60000, 10), "T": _ALL, "scheme": SCHEMES}], _THREE,
        gaps_of("MNIST"), beside=table3_of("MNIST"),
        floors=_ALL_BUT_A,
    ),
    "flexible-table3-emnist": Experiment(
        "Ruan et al., table 3: EMNIST", f"{FOLDER}table3-emnist.yaml",
        [{"data": images(12400, 10), "T": _ALL, "scheme": SCHEMES}], _THREE,
        gaps_of("EMNIST"), beside=table3_of("EMNIST"),
        floors=_ALL_BUT_A,
    ),
    "flexible-table4": Experiment(
        "Ruan et al., table 4: SYNTHETIC(1, 1)", f"{FOLDER}table4-synthetic.yaml",
        [{"tau": arrivals(100, 10, 30, 50, 70), "reboot": REBOOT}], _THREE,
        rebounds_of("SYNTHETIC"), beside=table4_of("SYNTHETIC"),
        floors=LEARNT,
    ),
    "flexible-table4-mnist": Experiment(
        "Ruan et al., table 4 and figure 4 (left): MNIST", f"{FOLDER}table4-mnist.yaml",
        [{"tau": arrivals(100, 10, 30, 50, 70), "reboot": REBOOT}], _THREE,
        rebounds_of("MNIST"), beside=table4_of("MNIST"),
        floors=LEARNT,
    ),
    "flexible-table4-emnist": Experiment(
        "Ruan et al., table 4: EMNIST", f"{FOLDER}table4-emnist.yaml",
        [{"tau": arrivals(100, 10, 30, 50, 70), "reboot": REBOOT}], _THREE,
        rebounds_of("EMNIST"), beside=table4_of("EMNIST"),
        floors=LEARNT,
    ),
    "flexible-fig5": Experiment(
        "Ruan et al., figure 5: three arrivals, MNIST", f"{FOLDER}fig5.yaml", [{"reboot": REBOOT}], _THREE,
        fig5_claims,
        floors=LEARNT,
    ),
    "flexible-table5": Experiment(
        "Ruan et al., table 5 and figure 4 (right): SYNTHETIC(a, a)", f"{FOLDER}table5.yaml",
        [{"a": spreads(0.1, 0.5, 1.0), "tau": departures(120, *range(10, 51, 5)), "option": OPTIONS}], _THREE,
        crossings_of, beside=table5_beside,
        floors=LEARNT,
    ),
}  # fmt: skip

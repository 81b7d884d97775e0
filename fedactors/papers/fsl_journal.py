"""Figures of the FSL journal paper: Mai, La and Zhang, Federated Learning with Server Learning, journal version.

Margins of the reduced claims were set beforehand with an independent implementation. What is reported and not asserted
is what that implementation found not to carry over to so small a problem.
"""

from __future__ import annotations

from fedactors.papers.experiment import Experiment
from fedactors.papers.fsl_axes import algorithms, classes, cohorts, own, rates, weighted
from fedactors.papers.fsl_journal_claims import (
    GAMMAS,
    OWN,
    RATES,
    SEEDS,
    against_state,
    fig1,
    fig2,
    fig6,
    fig7,
    fig8,
    fig9,
)
from fedactors.papers.verdicts import Floor

_THREE, _C = algorithms("FL", "DS", "FSL"), classes(1, 2, 5, 10)
_STATE = ("FL", "SCAFFOLD", "FedDyn", "FSL", "FSLsyn")
_FAST = ("accuracy", "t50", "sd20")
_LEARNT = (Floor(0.5),)  # half of the images; a tenth is chance

REDUCED = {
    "fsl-fig1": Experiment(
        "FSL journal, figure 1, reduced: labels per client, from a common pretrained start",
        "papers/fsl/fig1-reduced.yaml",
        [{"C": classes(1, 2), "algorithm": _THREE}],
        SEEDS,
        fig1,
        floors=_LEARNT,
    ),
    "fsl-fig2": Experiment(
        "FSL journal, figure 2, reduced: the server's weight gamma and samples n_0; C = 2",
        "papers/fsl/fig2-reduced.yaml",
        [
            {"gamma": weighted("fsl", (0.1, *GAMMAS))},
            {"n0": own(*OWN), "algorithm": algorithms("DS", "FSL")},
            {"eta_l": rates(*RATES), "algorithm": algorithms("DS", "FSL")},
        ],
        SEEDS,
        fig2,
        floors=_LEARNT,
    ),
    "fsl-fig5": Experiment(
        "FSL journal, figure 5, reduced: rates and labels per client against algorithms with client state",
        "papers/fsl/fig5-reduced.yaml",
        [{"C": classes(1, 2), "eta_l": rates(0.02, 0.05), "algorithm": algorithms(*_STATE)}],
        (1, 2),
        against_state,
        columns=_FAST,
        floors=_LEARNT,
    ),
    "fsl-fig6": Experiment(
        "FSL journal, figure 6, reduced: as figure 1, nobody pretrained",
        "papers/fsl/fig6-reduced.yaml",
        [{"C": _C, "algorithm": _THREE}],
        SEEDS,
        fig6,
        floors=_LEARNT,
    ),
    "fsl-fig7": Experiment(
        "FSL journal, figure 7, reduced: incremental against non-incremental server learning",
        "papers/fsl/fig7-reduced.yaml",
        [
            {"C": _C, "algorithm": algorithms("FSL", "FSL-p")},
            {"C": classes(2), "algorithm": algorithms("DS")},
            {"S": cohorts(2), "algorithm": algorithms("DS", "FSL", "FSL-p")},
        ],
        SEEDS,
        fig7,
        floors=_LEARNT,
    ),
    "fsl-fig8": Experiment(
        "FSL journal, figure 8, reduced: the same over gamma; C = 2",
        "papers/fsl/fig8-reduced.yaml",
        [
            {"gamma": weighted("fsl", GAMMAS)},
            {"FSL-p gamma": weighted("fsl-p", GAMMAS)},
            {"algorithm": algorithms("DS")},
        ],
        SEEDS,
        fig8,
        floors=_LEARNT,
    ),
    "fsl-fig9": Experiment(
        "FSL journal, figure 9, reduced: dissimilarity of server and clients, every 20 rounds",
        "papers/fsl/fig9-reduced.yaml",
        [{"C": _C, "n0": own(100, 20)}],
        SEEDS,
        fig9,
        columns=("xi2", "g2", "accuracy"),
        floors=_LEARNT,
    ),
    "fsl-table1": Experiment(
        "FSL journal, table I, reduced: C = 2",
        "papers/fsl/table1-reduced.yaml",
        [{"C": classes(2), "algorithm": algorithms(*_STATE, "FL sqrt(S)")}],
        (1, 2),
        against_state,
        columns=_FAST,
        reported="T_0.5 / accuracy on CIFAR-10: FedDyn 502 / .578, FSLsyn (504) 339 / .576, FSL (500) 203 / .614",
        floors=_LEARNT,
    ),
}
REDUCED["fsl-fig10"] = REDUCED["fsl-fig11"] = REDUCED["fsl-fig5"]

"""Table 5 of Ruan et al. (AISTATS 2021) at full size: what it says of departures, and each number that it prints."""

from __future__ import annotations

from fedactors.papers.claims import printed
from fedactors.papers.experiment import ResultTable
from fedactors.papers.figures import Figure
from fedactors.papers.flexible.flexible_claims import table5_claims
from fedactors.papers.flexible.flexible_measures import apart, crossings
from fedactors.papers.flexible.flexible_reported import TABLE_5
from fedactors.papers.verdicts import Claim

_ROUNDS = 3.0  # of a crossing: two curves that near each other touch a few rounds sooner or later
_CROSSING = 0.5  # the paper's counts, of one run each, vary by half and more from one tau_0 to the next


def crossings_of(table: ResultTable) -> list[Claim]:
    """Make the claims of table 5 at full size: its own, and each number of rounds that the paper prints."""
    found = table5_claims(table)
    for a in (float(label) for label in table.labels("a")):
        for tau in (int(label) for label in table.labels("tau")):
            rounds = TABLE_5[a][tau]
            ours = Figure(tuple(crossings(table, tau, a)), apart(table, tau, 1, a).faults)
            within = max(_ROUNDS, _CROSSING * rounds)
            text = f"({a:g}, {a:g}), tau_0 = {tau}: rounds until excluding is no worse"
            found.append(printed(text, ours, rounds, within, 1))
    return found

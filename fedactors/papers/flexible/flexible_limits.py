"""Where Schemes A, B and C of Ruan et al. (AISTATS 2021) end, on quadratics, whose limits are known in closed form.

With rates that go to 0 the model of scheme S ends at argmin sum_k p^k c_k F_k, where over the rounds

    A   c_k ~ E[1{k complete} / K], K the number of complete devices
    B   c_k ~ E[s_k]
    C   c_k ~ P(s_k > 0)

which is w* = argmin sum_k p^k F_k if all c_k are equal: for C, if nobody is ever inactive.
"""

from __future__ import annotations

from itertools import product
from math import nan, prod
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from fedactors.errors import ScenarioError
from fedactors.papers.claims import at_most, less, more
from fedactors.papers.experiment import ResultTable
from fedactors.papers.figures import Figure
from fedactors.papers.verdicts import Claim, Floor
from fedactors.scenario.model import Scenario
from fedactors.simulation.inspect.participation_laws import laws_of
from fedactors.simulation.resume import checkpoint

Float64 = NDArray[np.float64]

EARLY = 75  # rounds, an eighth of all
FLOORS = (
    Floor(0.15, rounds=EARLY, where={"early": EARLY}),
    Floor(0.15, rounds=200),
)  # chance is a tenth, and w* itself is right in .27 of the cases
DISTANCES = ("from_limit", "from_best", "limit_from_best")


def distances(run: Path) -> dict[str, float]:
    """Return how far the final model of a run is from its scheme's limit and from w*, and these from each other.

    Distances are Euclidean. Raises RunFolderError if the last checkpoint in the folder `run` cannot be read.
    """
    scenario = Scenario.load(run / "scenario.yaml")
    laws = laws_of(scenario)
    limit = minimiser(scenario, factors(scenario.server.participation.name, laws))
    best = minimiser(scenario, np.ones(len(laws)))
    saved = checkpoint.load(run).saved()
    assert saved is not None
    assert saved.version == scenario.server.rounds
    end = saved.state["x"].astype(np.float64)
    lengths = (float(np.linalg.norm(one)) for one in (end - limit, end - best, limit - best))
    return dict(zip(DISTANCES, lengths, strict=True))


def factors(scheme: str, laws: list[tuple[float, ...]]) -> Float64:
    """Return c_k, `(devices,)`, up to a common factor, from P(s_k = 0 ... E) of each device."""
    table = np.array(laws)
    if scheme == "B":
        return table @ np.arange(table.shape[1])
    if scheme == "C":
        return 1 - table[:, 0]
    shares = np.zeros(len(laws))
    for done in product((0, 1), repeat=len(laws)):
        chance = prod(one[-1] if complete else 1 - one[-1] for one, complete in zip(laws, done, strict=True))
        shares += chance * np.array(done) / max(1, sum(done))
    return shares


def minimiser(scenario: Scenario, weights: Float64) -> Float64:
    """Return argmin sum_k p^k c_k F_k, `(parameters,)`: least squares of all training data, each device's weighted c_k.

    p^k is the device's share of the samples, so that every sample of it weighs c_k.
    """
    data = scenario.task.load(scenario.seed, len(weights))
    if data.clients is None:
        raise ScenarioError(f"{scenario.source}: its data do not say which client holds a sample")
    each = np.repeat(weights, np.diff(data.clients))[:, None]
    x = np.column_stack([data.x, np.ones(len(data.x))]).astype(np.float64)
    found = np.linalg.solve(x.T @ (each * x), x.T @ (each * np.eye(data.classes)[data.y]))  # (inputs + 1, classes)
    return np.concatenate([found[:-1].T.ravel(), found[-1]])


def beside(table: ResultTable) -> list[str]:
    """Return the distances, medians over repeats."""
    lines = [f"{'distances, medians':28}limit - w*   model - limit   model - w*"]
    for inactive in table.labels("inactive"):
        for scheme in table.labels("scheme"):
            limit, best, apart = (_median(one) for one in _distances(table, inactive=inactive, scheme=scheme))
            where = f"inactive {inactive}, scheme {scheme}"
            lines.append(f"  {where:26}{apart:10.4f}{limit:16.4f}{best:13.4f}")
    return lines


def claims(table: ResultTable) -> list[Claim]:
    """Look whether each scheme ends at its own limit, and which limits are w*.

    A scheme has ended where it is nearer to its limit than a quarter of what lies between that limit and w*, and has
    not ended at w* where it is farther from w* than half of that.
    """
    found = []
    for inactive in table.labels("inactive"):
        at = {scheme: _distances(table, inactive=inactive, scheme=scheme) for scheme in "ABC"}
        for scheme in "AB" if inactive == "none" else "ABC":
            limit, best, apart = at[scheme]
            ended = less(f"inactive {inactive}, {scheme}: ends at its own limit", limit, apart, 0.25)
            found += [
                ended,
                more(f"inactive {inactive}, {scheme}: does not end at w*", best, apart * 0.5),
            ]
        if inactive == "none":
            found.append(less("inactive none, C: ends at w*", at["C"][1], at["B"][2], 0.05))
    return [*found, *rates(table)]


def rates(table: ResultTable) -> list[Claim]:
    """Table 1, devices that are never inactive: C nears w* as 1 / tau or faster; A and B stall away from it."""
    early, end = (
        {scheme: best * best for scheme in "ABC" for _, best, _ in [_distances(table, scheme=scheme, **at)]}
        for at in ({"early": EARLY}, {"inactive": "none"})
    )
    text = "C: the squared distance to w* falls as 1 / tau or faster, from round 75 to 600"
    stalls = "the squared distance to w* stalls: from round 75 to 600 it falls by less than half"
    return [
        at_most(text, end["C"] * 600, early["C"] * EARLY),
        *(more(f"{scheme}: {stalls}", end[scheme], 0.5 * early[scheme]) for scheme in "AB"),
    ]


def _distances(table: ResultTable, **labels: str | int | float) -> tuple[Figure, Figure, Figure]:
    """Return distances of each repeat: to its limit, to w*, and of these two."""
    limit, best, apart = (table.further(name, **labels) for name in DISTANCES)
    return limit, best, apart


def _median(found: Figure) -> float:
    return nan if found.missing else median(value for value in found.values if value is not None)

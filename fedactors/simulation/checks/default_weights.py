"""The weights of updates that are easily missed: those where a scenario names none, and those that count twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fedactors.algorithms.participation import ExampleWeights, SampleWeights, Scheme
from fedactors.plain_text import listed
from fedactors.scenario.model import Scenario

_FEDAVG = "samples"  # that of federated averaging by default


class DefaultWeights(NamedTuple):
    """The participation policy that updates have by default, and the timing or else the algorithm that it is of."""

    of: str
    participation: str


def default_weights(scenario: Scenario) -> DefaultWeights | None:
    """Return by which policy a scenario weighs updates; None if it names one, or if its aggregation has no weights."""
    return None if "participation" in scenario.server.model_fields_set else _usual_weights(scenario)


def _usual_weights(scenario: Scenario) -> DefaultWeights | None:
    """Return the same, also where a scenario names the policy that it would have by default, as recorded ones do."""
    server = scenario.server
    of, usual = server.timing.name, server.timing.weighting
    if usual is None:
        of, usual = server.algorithm.name, server.algorithm.weighting
    known = server.participation.name == usual and server.aggregation.name == "mean"
    return DefaultWeights(of, usual) if known else None


def weights_of_all(weights: Sequence[DefaultWeights | None]) -> list[str]:
    """Return a sentence about variants whose updates have other weights although none of them names any."""
    known = sorted(dict.fromkeys(filter(None, weights)), key=lambda one: one.participation)
    found: dict[str, list[str]] = {}
    for one in known:
        found.setdefault(one.participation, []).append(one.of)
    if len(found) < 2:
        return []
    told = "; ".join(f"{participation} with {listed(names)}" for participation, names in found.items())
    return [
        f"updates have unlike weights by default ({told}), which is compared, too, where clients have unlike numbers of"
        " samples: to compare the rules alone, give all the same, such as --set server.participation=uniform"
    ]


def weights_of_timing(scenario: Scenario) -> list[str]:
    """Return a sentence about a timing that weighs updates in another way by default than its algorithm does."""
    found, in_rounds = _usual_weights(scenario), scenario.server.algorithm.weighting
    if found is None or found.of == scenario.server.algorithm.name or found.participation == in_rounds:
        return []
    name = scenario.server.algorithm.name
    return [
        f"participation is by default {found.participation} under timing {found.of}, and {in_rounds} with {name} in"
        f" rounds: to compare the two, give both the same, such as --set server.participation={found.participation}"
    ]


def weights_drawn(scenario: Scenario) -> list[str]:
    """Return a sentence about a selection whose odds are the samples, by which updates are weighed as well."""
    selection, participation = scenario.server.selection, scenario.server.participation
    passes = isinstance(participation, ExampleWeights) and scenario.server.local.epochs is not None
    if not selection.draws_by_samples or not (passes or isinstance(participation, SampleWeights | Scheme)):
        return []
    return [
        f"selection {selection.name} draws by samples, and participation {participation.name} weighs by them again, so"
        " that a client counts about as its samples squared: papers that draw so take the plain mean,"
        " server.participation=uniform"
    ]


def weights_of_one(scenario: Scenario) -> str:
    """Return what a comparison with federated averaging has to name, too, as the end of a sentence; or nothing."""
    found = _usual_weights(scenario)
    if found is None or found.participation == _FEDAVG:
        return ""
    return f", and one server.participation for both (by default {found.participation}, fedavg's is {_FEDAVG})"

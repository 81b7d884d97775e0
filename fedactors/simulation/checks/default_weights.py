"""The weights of updates where a scenario names none: timings and algorithms differ in them, and so do comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fedactors.scenario.model import Scenario


class DefaultWeights(NamedTuple):
    """The participation policy that a scenario has by default, and what says so: "timing fedbuff"."""

    policy: str
    of: str


def default_weights(scenario: Scenario) -> DefaultWeights | None:
    """Return the weights of a scenario; None if they are not those that its timing, or else its algorithm, has."""
    server = scenario.server
    timing, algorithm = server.timing, server.algorithm
    if timing.weighting is None:
        found = DefaultWeights(algorithm.weighting, f"algorithm {algorithm.name}")
    else:
        found = DefaultWeights(timing.weighting, f"timing {timing.name}")
    return found if server.participation.name == found.policy else None


def weights_of_one(scenario: Scenario) -> list[str]:
    """Return a sentence about a scenario whose timing has other weights by default than its algorithm has."""
    found, algorithm = default_weights(scenario), scenario.server.algorithm
    if found is None or found.policy == algorithm.weighting:
        return []
    return weights_of_all([found, DefaultWeights(algorithm.weighting, f"algorithm {algorithm.name} in rounds")])


def weights_of_all(weights: Sequence[DefaultWeights | None]) -> list[str]:
    """Return a sentence about variants whose updates are weighted differently although none of them names weights."""
    found: dict[str, dict[str, None]] = {}
    for one in filter(None, weights):
        found.setdefault(one.policy, {})[one.of] = None
    if len(found) < 2:
        return []
    said = " and ".join(f"{policy} ({', '.join(of)})" for policy, of in found.items())
    return [
        f"participation is by default {said}: to compare the rules alone, give one to all: server.participation=uniform"
    ]

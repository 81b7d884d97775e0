"""Probability distributions of participation, for computing what a run with drawn participation is expected to give."""

from __future__ import annotations

from fedactors.clock.laws import law
from fedactors.scenario.model import Scenario


def laws_of(scenario: Scenario) -> list[tuple[float, ...]]:
    """Return P(s = 0 ... E) of each trace of a scenario with one group; device k uses trace k."""
    (group,), steps = scenario.population, scenario.server.local.steps
    assert group.sampled is not None
    assert steps is not None
    return [law(trace, steps) for trace in group.sampled.traces]

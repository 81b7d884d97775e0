"""From which laws the participation of a scenario's devices is drawn, for who computes what to expect of a run."""

from __future__ import annotations

from fedactors.clock.laws import law
from fedactors.scenario.model import Scenario


def laws_of(scenario: Scenario) -> list[tuple[float, ...]]:
    """Return P(s = 0 ... E) of each trace of a scenario of one group; a device takes a trace each, in order."""
    (group,), steps = scenario.population, scenario.server.local.steps
    assert group.sampled is not None
    assert steps is not None
    return [law(trace, steps) for trace in group.sampled.traces]

"""Scenarios whose every trip is played event by event, against the columns."""

from pathlib import Path

import pytest

from fedactors.clock.selections.base import Loss
from fedactors.scenario.model import Scenario
from fedactors.simulation.prepare import prepare

SCENARIOS = Path(__file__).parents[3] / "scenarios"


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("quickstart", ["server.rounds=12"]),
        ("quickstart", ["server.rounds=6", "server.quorum=20", "server.algorithm=scaffold"]),
        ("quickstart", ["server.rounds=6", "server.selection=oort", "server.deadline=8s"]),
        pytest.param("ruan-sampled", ["server.rounds=4"], marks=pytest.mark.slow),
    ],
)
def test_a_scenario_has_the_same_plans(name, overrides):
    plans = []
    for clock in ("columns", "events"):
        scenario = Scenario.load(SCENARIOS / f"{name}.yaml", [*overrides, f"clock={clock}"])
        made = prepare(scenario).clock()
        found = []
        for plan in made:
            found.append(plan)
            if made.steered:
                made.feedback(plan.version, {order.client: Loss(1.0, order.client + 1.0) for order in plan.heard()})
        plans.append(found)
    assert plans[0] == plans[1]

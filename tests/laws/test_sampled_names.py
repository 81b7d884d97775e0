"""Participation emerges in every scenario that comes with fedactors, but in those with `sampled` in their name."""

from pathlib import Path

import pytest

from fedactors.scenario.model import Scenario

SCENARIOS = Path(__file__).parents[2] / "scenarios"
FILES = sorted(SCENARIOS.rglob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SCENARIOS)))
def test_only_scenarios_that_say_so_draw_participation(path):
    scenario = Scenario.load(path)
    drawn = any(group.sampled for group in scenario.population)
    assert drawn == ("sampled" in scenario.name)

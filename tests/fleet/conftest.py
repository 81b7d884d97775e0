"""A scenario small enough for many fleets, with partial work and silence in it."""

from pathlib import Path

import pytest

from fedactors import Scenario

QUICKSTART = Path(__file__).parents[2] / "scenarios/quickstart.yaml"


@pytest.fixture
def scenario():
    return Scenario.load(QUICKSTART, ["server.rounds=8"])

"""A scenario small enough for many fleets, with partial work and silence in it."""

from pathlib import Path

import pytest

from fedactors import Scenario
from fedactors.fleet.pipeline import Pipeline

QUICKSTART = Path(__file__).parents[2] / "scenarios/quickstart.yaml"


@pytest.fixture
def scenario():
    return Scenario.load(QUICKSTART, ["server.rounds=8"])


@pytest.fixture
def pipelines(monkeypatch):
    """Hold on to the pipelines that runs make, to find their actors."""
    found, original = [], Pipeline.__init__

    def remember(self, *args, **kwargs):
        original(self, *args, **kwargs)
        found.append(self)

    monkeypatch.setattr(Pipeline, "__init__", remember)
    return found

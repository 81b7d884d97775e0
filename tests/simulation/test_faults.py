"""What goes wrong inside the clock comes out, and is never taken for an ordinary end."""

import pytest

import fedactors
from fedactors import Scenario
from fedactors.clock.synchronous import _Round
from fedactors.errors import ConservationError
from fedactors.simulation.replay import replay
from tests.fleet.conftest import QUICKSTART


@pytest.mark.parametrize("fault", [ConservationError("books do not balance"), ValueError("boom"), KeyboardInterrupt()])
def test_an_exception_in_a_round_ends_replays_and_runs(fault, tmp_path, monkeypatch):
    original = _Round._check

    def check(self, orders, reported):
        if self.version == 3:
            raise fault
        original(self, orders, reported)

    monkeypatch.setattr(_Round, "_check", check)
    scenario = Scenario.load(QUICKSTART, ["server.rounds=8"])
    with pytest.raises(type(fault)):
        replay(scenario)
    with pytest.raises(type(fault)):
        fedactors.run(scenario, tmp_path / "run", fleet="local")
    assert (tmp_path / "run/summary.json").exists()


def test_a_report_that_cannot_be_drawn_does_not_cost_the_run(tmp_path, monkeypatch):
    def broken(folder):
        raise ValueError("no picture")

    monkeypatch.setattr("fedactors.simulation.runner.write_report", broken)
    result = fedactors.run(Scenario.load(QUICKSTART, ["server.rounds=1"]), tmp_path / "run", fleet="local")
    assert result.summary["plans"] == 1

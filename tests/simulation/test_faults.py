"""What goes wrong inside the clock comes out, and is never taken for an ordinary end."""

import pytest

import fedactors
from fedactors import Scenario
from fedactors.clock.synchronous import _Round
from fedactors.errors import ConservationError
from fedactors.simulation.progress import Plain
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


@pytest.mark.parametrize(
    ("part", "said"), [("write_report", "the report could not be drawn"), ("write_windows", "could not be written")]
)
@pytest.mark.parametrize(("fault", "lines"), [(ValueError("odd"), True), (OSError("disk full"), False)])
def test_what_cannot_be_drawn_is_told_by_its_own_name_and_does_not_cost_the_run(
    part, said, fault, lines, tmp_path, monkeypatch, capsys
):
    def broken(*_):
        raise fault

    monkeypatch.setattr(f"fedactors.simulation.runner.{part}", broken)
    scenario = Scenario.load(QUICKSTART, ["server.rounds=1"])
    result = fedactors.run(scenario, tmp_path / "run", fleet="local", progress=Plain())
    assert result.summary["plans"] == 1
    notes = capsys.readouterr().err
    assert notes.count("could not be") == 1
    assert f"{said}: {type(fault).__name__}: {fault}" in notes
    assert ("in broken" in notes) == lines

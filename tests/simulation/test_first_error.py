"""The error that ends a run comes out of it, whatever else fails while its folder is closed."""

import json

import pytest

from fedactors.clock.synchronous import _Round
from fedactors.errors import ConservationError
from fedactors.fleet.pipeline import Pipeline
from fedactors.simulation import execution
from fedactors.simulation.runner import resume
from tests.noting import Noting
from tests.simulation.test_checkpoints import assert_same, run, scenario_of

SMALL = ("server.cohort=2", "task.model=logistic")
FAULTS = [ConservationError("books do not balance"), ValueError("boom"), KeyboardInterrupt()]


def failing(self):
    raise ValueError("boom")


@pytest.fixture(scope="module")
def scenario():
    return scenario_of(*SMALL)


@pytest.fixture(scope="module")
def whole(scenario, tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "run"
    run(scenario, path)
    return path


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_an_error_in_a_round_that_was_recorded_before_comes_out(fault, scenario, whole, tmp_path, monkeypatch):
    """The models of such rounds are not on the fleet: only those of the checkpoint are."""
    path = tmp_path / "run"
    run(scenario, path, stop_after=4)
    original = _Round._check

    def check(self, orders, reported):
        if self.version == 2:
            raise fault
        original(self, orders, reported)

    with monkeypatch.context() as patched:
        patched.setattr(_Round, "_check", check)
        with pytest.raises(type(fault)) as caught:
            resume(path, fleet="local", report=False)
    assert caught.value is fault
    resume(path, fleet="local", report=False)
    assert_same(path, whole)


def test_a_round_that_fails_between_training_and_its_record_is_played_again(scenario, whole, tmp_path, monkeypatch):
    """A checkpoint of that moment holds the model of before the round: the record and the model go together."""
    path = tmp_path / "run"
    original = execution.RunRecorder.enter

    def enter(self, plan, *more):
        if plan.version == 3:
            raise MemoryError
        original(self, plan, *more)

    with monkeypatch.context() as patched:
        patched.setattr(execution.RunRecorder, "enter", enter)
        with pytest.raises(MemoryError):
            run(scenario, path)
    assert json.loads((path / "summary.json").read_text())["plans"] == 3
    resume(path, fleet="local", report=False)
    assert_same(path, whole)


def test_whatever_fails_while_a_folder_is_closed_is_noted_beside_the_first_error(scenario, tmp_path, monkeypatch):
    def broken(self, version):
        raise RuntimeError("no tensors")

    noting = Noting()
    monkeypatch.setattr(execution.Execution, "_settle", failing)
    monkeypatch.setattr(Pipeline, "state", broken)
    with pytest.raises(ValueError, match="boom"):
        run(scenario, tmp_path / "run", progress=noting)
    assert any("not all could be saved: RuntimeError: no tensors" in said for said in noting.notes), noting.notes

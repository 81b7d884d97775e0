"""`check` says where decisions about departures have too few losses to go by."""

import pytest

from fedactors.algorithms.departure import Constants, excludes, fitted
from fedactors.scenario.model import Scenario
from fedactors.simulation.checks.meanings import meanings

BASE = {
    "name": "leaving",
    "task": {"dataset": "digits", "model": "logistic", "partition": "iid"},
    "population": [{"name": "devices", "count": 4, "depart": "100s"}],
}


@pytest.mark.parametrize(
    ("departures", "every", "said"), [("auto", 10, True), ("auto", 1, False), ("include", 10, False)]
)
def test_rare_evaluations_leave_auto_without_losses(departures, every, said):
    server = {
        "rounds": 20,
        "cohort": "all",
        "membership": {"name": "vanilla", "departures": departures},
        "evaluate_every": every,
    }
    notes = meanings(Scenario.model_validate({**BASE, "server": server}))
    assert len(notes) == said
    assert not said or "one in 10 rounds (evaluate_every: 10)" in notes[0]


def test_two_losses_include_whatever_excluding_would_gain():
    """V is 0 then, so that f0 is 0 at once, and no f1 is below it."""
    course = fitted([(10, 2.0), (20, 1.0)], local_steps=5.0)
    assert course.v == 0.0
    assert not excludes(Constants(5.0, 20, 10**6, d=100.0, v=course.v, vt=1e-9, gamma=course.gamma))

"""`check` answers in a few seconds whatever the scenario: what takes long is estimated, and named."""

import re
import sys
import time
from pathlib import Path

import pytest

from fedactors.cli.main import main
from fedactors.clock.synthetic_availability import affordable, drawing_seconds, whole, windows
from fedactors.scenario import Scenario
from fedactors.scenario.synthetic_behaviour import SyntheticBehaviour
from fedactors.simulation.checks import forecast  # noqa: F401 - imports torch, which is not timed
from fedactors.simulation.checks.budget import Budget
from fedactors.simulation.checks.check import check
from fedactors.simulation.replay import replay

QUICKSTART = Path(__file__).parents[2] / "scenarios/quickstart.yaml"
SECONDS = 5.0
LAYERS = f"task.model.hidden=[{', '.join(['1'] * 10_000)}]"
SHORT_WINDOWS = ("population.0.availability={name: synthetic, mean_on: 1s, mean_off: 1s}", "population.0.count=10")


def checked(*changes, fleet=None, seconds=SECONDS):
    """Return what `check` finds, in processor time of this thread within the budget and a second more."""
    scenario = Scenario.load(QUICKSTART, changes)
    began = time.process_time()
    found = check(scenario, fleet, seconds=seconds)
    assert time.process_time() - began < seconds + 1.0
    return found


def test_windows_of_a_second_are_drawn_for_a_part_of_the_time():
    found = checked(*SHORT_WINDOWS)
    (costly,) = found["costly"]
    assert costly.startswith("population.0.availability: 388,800 windows for each device take about 24 s to draw")
    assert "estimate from 4.4 h of them" in costly
    assert found["rounds"]["replayed"] == 20


@pytest.mark.slow
def test_the_estimate_is_near_what_it_estimates():
    changes = ("population.0.availability={name: synthetic, mean_on: 30s, mean_off: 30s}", "population.0.count=40")
    scenario = Scenario.load(QUICKSTART, changes)
    exact, estimate = check(scenario, seconds=60.0), check(scenario, seconds=1.0)
    assert (exact["costly"], len(estimate["costly"])) == ([], 1)
    assert estimate["rounds"]["heard"] == pytest.approx(exact["rounds"]["heard"], rel=0.1)


def test_a_stretch_fits_what_it_may_cost_and_is_whole_without_a_limit():
    law = SyntheticBehaviour(mean_on="1s", mean_off="1s")
    assert affordable(law, 10, None) == affordable(law, 10, 10**6) == whole(law)
    assert sum(affordable(law, 10, 1.0)) / sum(whole(law)) == pytest.approx(1 / drawing_seconds(law, 10), rel=0.01)
    stretch = affordable(law, 10, 0.1)
    made = windows(law, 10, 0, 0, stretch)
    assert made.off.max() <= stretch.end
    assert (made.counts > 0).all()


def test_a_deadline_of_a_year_costs_no_more_than_one_of_a_minute():
    found = checked("server.deadline=52 weeks", seconds=3.0)
    assert found["costly"] == []
    assert found["rounds"]["seconds"] > 150 * 86_400


@pytest.mark.slow
def test_ten_thousand_layers():
    found = checked(LAYERS, fleet="local", seconds=4.0)
    (costly,) = found["costly"]
    said = re.fullmatch(
        r"a local step of one client takes about (\S+) s: the forecast is an estimate from one step of one client",
        costly,
    )
    assert found["forecast"]["wall_seconds"] > 60
    alone = 1 / float(said[1])  # steps a second of clients that train one after another
    assert found["forecast"]["steps_per_second"] > 5 * alone, (
        "ten clients train together in calls that are hardly longer"
    )


def test_a_step_that_is_too_long_itself_is_estimated_from_operations():
    found = checked("task.model.hidden=[3000, 3000]", "server.deadline=1h", fleet="local", seconds=0.01)
    assert any(text.endswith("from the operations of its model") for text in found["costly"])


def test_rounds_that_take_long_are_cut_short():
    found = checked("server.rounds=100", seconds=0.001)
    assert 1 <= found["rounds"]["replayed"] < 20
    assert any(f"rests on the first {found['rounds']['replayed']}" in text for text in found["costly"])


@pytest.mark.parametrize(("there", "said"), [(True, ""), (False, "importing PyTorch, ")])
def test_what_takes_long_before_leaves_some_time_for_rounds_and_is_named(monkeypatch, there, said):
    """A model of the user's imports PyTorch, which may take as long as all of the budget."""
    spent = iter([0.0])
    monkeypatch.setattr("fedactors.simulation.checks.budget.time.process_time", lambda: next(spent, 9.0))
    with monkeypatch.context() as before:
        if not there:
            before.delitem(sys.modules, "torch")
        budget = Budget(5.0)
    budget.note_preparation()
    assert (budget.spent, budget.for_rounds) == (9.0, 0.5)
    assert budget.costly == [f"{said}reading recordings and preparing takes 9 s of processor time"]


def test_the_command_takes_a_budget_and_says_what_is_costly(capsys):
    changes = [part for change in SHORT_WINDOWS for part in ("--set", change)]
    assert main(["check", str(QUICKSTART), "--budget", "1s500ms", *changes]) == 0
    assert "  costly     population.0.availability: 388,800 windows" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["check", str(QUICKSTART), "--budget", "soon"])
    assert "argument --budget: 'soon' cannot be read" in capsys.readouterr().err


def test_a_run_draws_all_windows():
    """What is estimated for a forecast is never used by the clock of a run."""
    law = "population.0.availability={name: synthetic, mean_on: 5min, mean_off: 5min}"
    scenario = Scenario.load(QUICKSTART, (law, "server.rounds=5"))
    before = replay(scenario).summary["digests"]
    check(scenario, seconds=0.01)
    assert replay(scenario).summary["digests"] == before

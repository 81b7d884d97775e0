"""A run whose devices depart after an absence: it can be continued and audited, and both clocks give its Plans."""

import pytest

from fedactors import Scenario
from fedactors.simulation.inspect.audit import audit
from fedactors.simulation.replay import replay
from fedactors.simulation.runner import resume, run
from tests.clock.test_absence import WINDOWS

TEXT = """
name: absent
seed: 4
task: {dataset: digits, model: logistic, partition: {name: iid, samples: 100, test_samples: 10}}
population:
  - name: phones
    count: 3
    availability: {name: trace, path: w.csv, at_end: depart}
    compute: {per_sample: 5s}
    departs_after: 4h
server:
  rounds: 100
  until: 12h
  cohort: all
  among: members
  deadline: 30min
  local: {epochs: 2, batch: 10}
  participation: {name: C, weights: fixed}
  membership: {name: vanilla, departures: auto}
  algorithm: fsl
  data: {name: iid, samples: 30}
"""


@pytest.fixture
def scenario(tmp_path):
    (tmp_path / "w.csv").write_text(WINDOWS)
    (tmp_path / "absent.yaml").write_text(TEXT)
    return Scenario.load(tmp_path / "absent.yaml")


def test_a_run_with_absences_is_continued_and_audited(scenario, tmp_path):
    whole = run(scenario, tmp_path / "whole", fleet="local", report=False)
    run(scenario, tmp_path / "cut", fleet="local", report=False, stop_after=5)
    assert resume(tmp_path / "cut", fleet="local", report=False).summary["digests"] == whole.summary["digests"]
    assert audit(tmp_path / "whole")["sound"]
    assert audit(tmp_path / "cut")["sound"]
    moves = [move for row in whole.metrics for move in row.get("moves", [])]
    assert {(move["client"], move["event"]) for move in moves} >= {(2, "departure")}


def test_events_give_the_plans_of_columns(scenario, tmp_path):
    digests = [
        replay(made, tmp_path / clock).summary["digests"]["plans"]
        for clock in ("columns", "events")
        for made in [Scenario.load(tmp_path / "absent.yaml", [f"clock={clock}"])]
    ]
    assert digests[0] == digests[1]

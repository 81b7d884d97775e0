"""A run that is much shorter than its recordings says so, where hardly a device comes or goes."""

from dataclasses import replace

import pytest

from fedactors.cli.main import main
from fedactors.report.page_sections import lead
from fedactors.run_files.records import read
from fedactors.scenario.model import Scenario
from fedactors.simulation.checks.check import check
from fedactors.simulation.checks.remarks import remarks
from fedactors.simulation.prepare import prepare
from fedactors.simulation.replay import replay

SAID = (
    'population "phones": in 3.3 min of virtual time 13 devices are on and 6 off throughout, 1 come or go; their'
    " recordings span 7.0 d (more or longer rounds show more of them)"
)

DAY = 86_400 * 10**9
WEEK = [("0h", "24h")] * 13 + [("6d", "7d")] * 6 + [("0h", "1min")]


@pytest.fixture
def scenario(tmp_path):
    """Return a function that makes a scenario of twenty devices, each with one window in a week."""

    def of(rounds=20, windows=WEEK, availability=None):
        lines = [f"d{k:02},{on},{off},0h,7d" for k, (on, off) in enumerate(windows)]
        (tmp_path / "week.csv").write_text("\n".join(["device,on,off,first,last", *lines]))
        recorded = {"name": "trace", "path": str(tmp_path / "week.csv")}
        population = [{"name": "phones", "count": 20, "availability": availability or recorded}]
        server = {"rounds": rounds, "cohort": 5, "deadline": "10s", "close_early": False}
        task = {"dataset": "digits", "model": "logistic", "partition": "iid"}
        return Scenario.model_validate({"name": "brief", "task": task, "population": population, "server": server})

    return of


def test_a_run_of_minutes_in_a_week_of_recordings(scenario):
    assert remarks(prepare(scenario()), 200.0) == [SAID]


def test_a_day_is_long_enough_and_so_are_devices_that_come_and_go(scenario):
    prepared = prepare(scenario())
    assert remarks(prepared, 86_400.0) == []
    assert remarks(prepare(scenario(windows=[*WEEK[2:], *WEEK[-1:] * 2])), 200.0) == []  # three of twenty
    assert remarks(prepared, 0.0) == []


def test_made_up_windows_are_no_recordings(scenario):
    law = {"name": "synthetic", "mean_on": "5d", "mean_off": "5d"}
    assert remarks(prepare(scenario(availability=law)), 200.0) == []


def test_recordings_that_begin_again_at_another_time_of_day(scenario):
    """Two of twenty last for 7.5 days; whole days, and fewer than one, shift nothing."""
    prepared = prepare(scenario())
    period = prepared.population.availability.period
    period[:2], period[2] = 7.5 * DAY, 0.4 * DAY
    assert remarks(prepared, 7.4 * 86_400.0) == []
    (said,) = remarks(prepared, 8 * 86_400.0)
    assert said.startswith(
        'population "phones": recordings of 2 of 20 devices begin again after no whole number of days'
    )
    assert "(the first after 7.5 d)" in said
    for kept in ({"at_end": "loop_days"}, {"offset": "start"}):
        whole = scenario()
        trace = whole.population[0].availability.model_copy(update=kept)
        group = whole.population[0].model_copy(update={"availability": trace})
        other = replace(prepared, scenario=whole.model_copy(update={"population": [group]}))
        assert remarks(other, 8 * 86_400.0) == []


def test_check_replay_and_page_say_it(scenario, tmp_path):
    found = replay(scenario(), tmp_path / "run")
    assert found.summary["virtual_seconds"] == 200.0
    assert found.summary["remarks"] == [SAID]
    assert SAID[:-1] in lead(read(tmp_path / "run")).replace("Population", "population")
    assert SAID in check(scenario())["notes"]
    assert check(scenario(100_000))["notes"] == []  # 12 days, told from the first 20 rounds


def test_the_terminal_says_it(scenario, tmp_path, capsys):
    (tmp_path / "brief.yaml").write_text(scenario().model_dump_json())
    assert main(["replay", str(tmp_path / "brief.yaml"), "--out", str(tmp_path / "run")]) == 0
    assert f"  note       {SAID}\n" in capsys.readouterr().out

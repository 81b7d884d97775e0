"""Energy and carbon as the page and the terminal show them."""

from fedactors import Scenario
from fedactors.report import costs
from fedactors.report.terminal_text import grams, stage_shares
from fedactors.run_files.records import read
from fedactors.simulation.replay import replay
from tests.fleet.conftest import QUICKSTART

WATTS = "population.tablets.energy={down: 0.8 W, compute: 3 W, up: 1.2 W, carbon: 400 g/kWh}"


def test_a_run_shows_its_stages_groups_and_carbon(tmp_path):
    summary = replay(Scenario.load(QUICKSTART, ["server.rounds=2", WATTS]), tmp_path / "run").summary
    records = read(tmp_path / "run")
    table = costs.by_stage(records)
    assert [row[1].text for row in table.rows] == ["down", "compute", "up", "phones", "kiosks", "tablets"]
    assert [row[3].text for row in table.rows if row[0].text == "group"] == ["0%", "0%", "100%"]
    assert [card.name for card in costs.cards(records)] == ["Energy", "Carbon"]
    assert stage_shares(summary).startswith(" (down ")
    assert stage_shares({"joules": 1.0}) == ""


def test_without_watts_there_is_no_table(tmp_path):
    replay(Scenario.load(QUICKSTART, ["server.rounds=1"]), tmp_path / "run")
    assert costs.by_stage(read(tmp_path / "run")) is None


def test_masses_are_read():
    assert [grams(number) for number in (0.00214, 2.14, 1500.0, 3e6)] == ["2.14 mg", "2.14 g", "1.5 kg", "3 t"]

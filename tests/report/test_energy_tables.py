"""Energy and carbon as the page and the terminal show them."""

import zlib
from base64 import b64decode

import numpy as np
import pyarrow.parquet as pq

import fedactors
from fedactors import Scenario
from fedactors.report import costs
from fedactors.report.terminal_text import grams, stage_shares
from fedactors.report.timeline.device_timeline import timeline
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


def test_the_rows_of_devices_have_their_joules(tmp_path):
    """In whole units of which the highest device has at most a million; those without a price have none."""
    plain = fedactors.run(Scenario.load(QUICKSTART, ["server.rounds=1"]), tmp_path / "plain", fleet="local")
    assert timeline(read(plain.folder)).data["joules"] == 0
    changes = ["server.rounds=3", WATTS]
    run = fedactors.run(Scenario.load(QUICKSTART, changes), tmp_path / "run", fleet="local").folder
    drawn = timeline(read(run)).data
    (place,) = (at for at, (name, _) in enumerate(drawn["devices"]["columns"]) if name == "energy")
    values = np.frombuffer(zlib.decompress(b64decode(drawn["devices"]["blob"])), np.uint8)
    before = sum(4 * length for _, length in drawn["devices"]["columns"][:place])
    units = values[before : before + 400].reshape(4, 100).T.copy().view("<i4")[:, 0]
    joules = pq.read_table(run / "clients.parquet").column("joules").to_numpy()
    assert 100_000 < units.max() <= 1_000_000
    np.testing.assert_allclose(units * drawn["joules"], joules, atol=drawn["joules"])
    assert not units[:75].any()

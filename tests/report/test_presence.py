"""Windows as the clock has them, pauses and shares worked by hand, and all of it on the page."""

import asyncio
import json
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedactors.errors import RunFolderError
from fedactors.report import costs
from fedactors.report.html import write
from fedactors.report.timeline import presence_bands
from fedactors.report.timeline.presence_bands import WindowTable, by_hour
from fedactors.run_files.records import read
from fedactors.scenario.model import Scenario
from fedactors.simulation.prepare import prepare
from fedactors.simulation.replay import replay
from tests.report.chromium import BINARY, opened
from tests.report.conftest import made_up
from tests.report.test_html import charts_of, text_of

HOUR = 3600 * 10**9
PHONES = """
name: phones
seed: 3
task: {dataset: digits, model: logistic, partition: iid}
population:
  - name: phones
    count: 30
    availability: {name: synthetic, mean_on: 10min, mean_off: 20min}
    compute: {per_sample: 2s, spread: 0.5}
    energy: {per_step: 3 J}
server: {rounds: 20, cohort: 8, deadline: 20min, local: {epochs: 3, batch: 5}}
"""


@pytest.fixture(scope="module")
def phones(tmp_path_factory):
    path = tmp_path_factory.mktemp("phones") / "phones.yaml"
    path.write_text(PHONES)
    scenario = Scenario.load(path)
    return scenario, replay(scenario, tmp_path_factory.mktemp("phones") / "replay").folder


def test_windows_are_those_of_the_clock(phones):
    scenario, folder = phones
    windows, availability = presence_bands.read(folder), prepare(scenario).population.availability
    assert set(windows.sampled) == set(range(30))
    end = int(read(folder).plans["ready"].max())
    for client in (0, 7, 29):
        mine = windows.client == client
        on_time = availability.elapsed(client, end) - availability.elapsed(client, 0)
        assert (windows.off - windows.on)[mine].sum() == on_time, "none is missing"
        for on, off in zip(windows.on[mine].tolist(), windows.off[mine].tolist(), strict=True):
            assert availability.is_on(client, on)
            assert availability.is_on(client, off - 1)
            assert off == end or not availability.is_on(client, off)


def test_a_share_is_of_the_time_that_an_hour_went_by():
    """Of 26 hours, hours 0 and 1 went by twice. One device of two is on from 0:30 to 2:00, then from 24:00 on."""
    half = HOUR // 2
    windows = WindowTable(
        np.array([0, 0]), np.array([half, 24 * HOUR]), np.array([2 * HOUR, 99 * HOUR]), np.array([0, 1]), np.array([0])
    )
    shares = by_hour(windows, 26 * HOUR)
    assert shares[:3] == pytest.approx([(0.5 + 1) / 4, (1 + 1) / 4, 0])
    assert np.isnan(by_hour(windows, 2 * HOUR)[2:]).all()


def test_the_page_has_availability_energy_and_pauses(phones):
    page = write(phones[1])
    assert "available" in [item["target_id"] for item in charts_of(page)]
    text = text_of(page)
    assert "Bands tell when a device is on" in text
    assert "hatched: its trip pauses" in text
    assert "Energy" in text
    assert "of devices, " in text
    assert page.stat().st_size < 5_000_000


@pytest.mark.skipif(BINARY is None, reason="no chromium on this machine (Debian: apt install chromium)")
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_bands_and_pauses_are_drawn(phones, scheme):
    path = write(phones[1])

    async def go():
        async with opened(path, scheme) as (page, state):
            assert state == str(len(charts_of(path)))
            return page.trouble

    assert asyncio.run(go()) == []


def test_damaged_windows_are_named(tmp_path):
    folder = made_up(tmp_path / "run", rounds=5, cohort=4, devices=9)
    assert presence_bands.read(folder) is None
    (folder / "windows.parquet").write_bytes(b"PAR1 oops")
    with pytest.raises(RunFolderError, match=r"windows\.parquet: damaged"):
        write(folder)


def test_staleness_is_the_versions_since_a_trip_began(tmp_path):
    folder = made_up(tmp_path / "run", rounds=9, cohort=4, devices=9)
    assert costs.staleness(read(folder)) is None
    table = pq.read_table(folder / "orders.parquet")
    older = np.maximum(table["base"].to_numpy() - 2, 0)
    place = table.schema.get_field_index("base")
    pq.write_table(table.set_column(place, "base", pa.array(older)), folder / "orders.parquet")
    assert "at most 2 versions" in costs.staleness(read(folder)).text


def test_what_it_took_is_a_line_for_each_accuracy():
    lines = [
        {"accuracy": 0.5, "round": 3, "virtual_seconds": 120.0, "bytes_down": 1000, "bytes_up": 500, "joules": 2500.0},
        {"accuracy": 0.6, "round": 9, "virtual_seconds": 7200.0, "bytes_down": 9000, "bytes_up": 500, "joules": 9e6},
    ]
    sheet = costs.milestones(SimpleNamespace(summary={"to_accuracy": lines}))
    assert [[cell.text for cell in row] for row in sheet.rows] == [
        ["50%", "3", "2.0 min", "1.5 kB", "2.5 kJ"],
        ["60%", "9", "2.0 h", "9.5 kB", "9.0 MJ"],
    ]
    assert costs.milestones(SimpleNamespace(summary={})) is None


@pytest.mark.slow
def test_decisions_are_marked_with_their_numbers(tmp_path):
    folder = made_up(tmp_path / "run", rounds=20, cohort=4, devices=9)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    rows[4]["moves"] = [
        {"client": 3, "event": "departure", "after": 4, "decision": "exclude", "numbers": {"gamma": 0.25}},
        {"client": 5, "event": "arrival", "after": 4, "decision": "include", "numbers": {}},
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [(row, move["client"]) for row, move in read(folder).moves] == [(4, 3), (4, 5)]
    page = write(folder).read_text()
    assert "device 3: departure, excluded" in page
    assert "gamma 0.25" in page
    assert "devices included" in page


def test_real_time_is_told_by_actor(finished, replayed):
    assert "client host" in text_of(write(finished))
    assert costs.real_time(read(replayed)) is None

"""Joules and money: what a trip pays worked by hand, totals that agree, and results that do not depend on prices."""

import json

import pyarrow.parquet as pq
import pytest

import fedactors
from fedactors import Scenario
from fedactors.clock.energy.tariff import GroupTariff, Tariff
from fedactors.plan import Order, Orders, Outcome, Plan
from fedactors.scenario.costs.energy_options import Consumption
from fedactors.scenario.units import energy, show_energy
from fedactors.simulation.record.milestones import milestones
from fedactors.simulation.record.run_totals import RunTotals
from fedactors.simulation.replay import replay
from fedactors.simulation.runner import resume
from tests.fleet.conftest import QUICKSTART

CHANGES = ["server.rounds=4", "population.kiosks.energy={per_step: 2 J, per_byte: 30 nJ}"]
PRICE = "cluster.price_per_node_hour=3.6"


def order(client, outcome, steps, down, up):
    return Order(client, 0, 10, steps, outcome, 0, 1, 2, 3, down, up)


def test_a_trip_pays_for_steps_and_bytes_and_nobody_else_pays():
    """Client 0: 7 steps of 2 pJ and 500 bytes of 3 pJ: 1514. Client 1 pays nothing. Client 2, unheard: 4 * 5 = 20."""
    prices = ({"per_step": "2 pJ", "per_byte": "3 pJ"}, {}, {"per_step": "5 pJ"})
    tariff = Tariff([GroupTariff("one", 1, Consumption.model_validate(price)) for price in prices])
    orders = (
        order(0, Outcome.COMPLETE, 7, 400, 100),
        order(1, Outcome.PARTIAL, 9, 400, 100),
        order(2, Outcome.LATE, 4, 400, 100),
    )
    totals = RunTotals(ahead=3 * 1000, tariff=tariff)
    row = totals.add(Plan(0, 0, 3, 3, Orders.of(orders), 0))
    assert row["joules"] == pytest.approx(1534e-12)
    assert totals.summary()["joules"] == pytest.approx((1534 + 3 * 1000) * 1e-12)  # what was sent ahead, too
    assert totals.summary()["joules_wasted"] == pytest.approx(20e-12)


def test_a_run_counts_joules_of_the_group_that_has_a_price(tmp_path):
    scenario = Scenario.load(QUICKSTART, CHANGES)
    summary = replay(scenario, tmp_path / "replay").summary
    orders = pq.read_table(tmp_path / "replay/orders.parquet").to_pandas()
    kiosks = orders[(orders.client >= 60) & (orders.client < 75)]
    expected = 2.0 * kiosks.steps.sum() + 30e-9 * (kiosks.down + kiosks.up).sum()
    assert expected > 0
    assert summary["joules"] == pytest.approx(expected)
    rows = [json.loads(line) for line in (tmp_path / "replay/metrics.jsonl").read_text().splitlines()]
    assert sum(row["joules"] for row in rows) == pytest.approx(expected)


def test_without_prices_nothing_is_counted():
    assert "joules" not in replay(Scenario.load(QUICKSTART, CHANGES[:1])).summary


def test_a_price_changes_no_result_and_money_follows_the_wall_clock(tmp_path):
    free, paid = (
        fedactors.run(
            Scenario.load(QUICKSTART, [*CHANGES, *more]), tmp_path / name, fleet="local", report=False
        ).summary
        for name, more in (("free", []), ("paid", [PRICE]))
    )
    assert paid["digests"] == free["digests"]
    assert paid["cost"] == pytest.approx(paid["wall_seconds"] * 0.001, abs=1e-6)
    assert "cost" not in free


def test_an_accuracy_is_reached_once_and_what_was_spent_by_then_is_summed():
    rows = [
        {"round": 1, "accuracy": 0.2, "bytes_down": 5, "bytes_up": 1, "joules": 1.5},
        {"round": 2, "bytes_down": 5, "bytes_up": 1, "joules": 1.5},
        {"round": 3, "accuracy": 0.6, "bytes_down": 5, "bytes_up": 1, "joules": 1.5},
        {"round": 4, "accuracy": 0.4, "bytes_down": 5, "bytes_up": 1, "joules": 1.5},
        {"round": 5, "accuracy": 0.7, "bytes_down": 5, "bytes_up": 1, "joules": 1.5},
    ]
    found = [(line["accuracy"], line["round"], line["bytes_down"], line["joules"]) for line in milestones(rows)]
    assert found == [(0.3, 3, 15, 4.5), (0.4, 3, 15, 4.5), (0.5, 3, 15, 4.5), (0.6, 3, 15, 4.5), (0.7, 5, 25, 7.5)]


@pytest.mark.parametrize("text", ["2 J", "35 nJ", "1 pJ", "3 kJ", "7 mJ"])
def test_energies_read_back(text):
    assert show_energy(energy(text)) == text


@pytest.mark.parametrize(("text", "named"), [("2 MJ", '"MJ" is not an energy'), ("2", "no unit"), ("0.1 pJ", "whole")])
def test_energies_that_mean_nothing_are_refused(text, named):
    with pytest.raises(ValueError, match=named):
        energy(text)


def test_the_clients_table_says_what_each_consumed_and_what_that_emits(tmp_path):
    """Each by its own trips, worked out again from stages and orders; all together as in the summary; resumed too."""
    watts = "population.tablets.energy={compute: 3 W, up: 1.2 W, per_byte: 20 uJ, carbon: 400 g/kWh}"
    scenario = Scenario.load(QUICKSTART, [*CHANGES, watts, "cluster.checkpoint_every=1"])
    fedactors.run(scenario, tmp_path / "broken", fleet="local", report=False, stop_after=2)
    assert pq.read_table(tmp_path / "broken/clients.parquet").to_pandas().joules.sum() > 0  # of two rounds
    summary = resume(tmp_path / "broken", fleet="local", report=False).summary
    clients = pq.read_table(tmp_path / "broken/clients.parquet").to_pandas().set_index("client")
    orders = pq.read_table(tmp_path / "broken/orders.parquet").to_pandas()
    stages = pq.read_table(tmp_path / "broken/stages.parquet").to_pandas().groupby("client")[["compute", "up"]].sum()
    moved = (orders.down + orders.up).groupby(orders.client).sum()
    for client, joules in clients.joules.items():
        group = clients.group[client]
        expected = 0.0
        if group == "tablets" and client in stages.index:
            expected = 3 * stages.compute[client] / 1e9 + 1.2 * stages.up[client] / 1e9 + 20e-6 * moved[client]
        elif group == "kiosks":
            expected = 2 * orders.steps[orders.client == client].sum() + 30e-9 * moved.get(client, 0)
        assert joules == pytest.approx(expected)
        assert clients.co2_grams[client] == pytest.approx(joules / 3.6e6 * 400 if group == "tablets" else 0.0)
    assert clients.joules.sum() == pytest.approx(summary["joules"])
    assert clients.co2_grams.sum() == pytest.approx(summary["co2_grams"])
    fedactors.run(scenario, tmp_path / "whole", fleet="local", report=False)
    assert (tmp_path / "whole/clients.parquet").read_bytes() == (tmp_path / "broken/clients.parquet").read_bytes()


def test_notebooks_have_the_clients(tmp_path):
    scenario = Scenario.load(QUICKSTART, [*CHANGES, "population.phones.depart=30s"])
    clients = fedactors.run(scenario, tmp_path / "run", fleet="local", report=False).frames.clients
    assert list(clients.columns) == ["client", "group", "samples", "arrive", "depart", "joules"]
    assert set(clients.depart[clients.group == "phones"]) == {30.0}
    assert clients.depart[clients.group == "tablets"].isna().all()

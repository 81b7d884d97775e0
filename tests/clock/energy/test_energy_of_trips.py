"""What trips consume: worked by hand, conserved over stages and groups, and the same whatever plays the clock."""

from dataclasses import replace

import numpy as np
import pytest

from fedactors import Scenario
from fedactors.clock.energy.tariff import FEMTO, GroupTariff, Tariff, tariff_of
from fedactors.errors import ScenarioError
from fedactors.plan import SECOND, Orders, Outcome
from fedactors.scenario.costs.energy_options import Consumption
from fedactors.simulation.prepare import prepare
from fedactors.simulation.replay import replay
from tests.fleet.conftest import QUICKSTART

WATTS = {"down": "2 W", "compute": "3 W", "up": "5 W", "idle": "100 mW", "carbon": "360 g/kWh"}


def scenario(windows=None, folder=None, population=None, **server):
    """One device: a model of 2,440 bytes takes 1 s down and 2 s up, latency included; a step of ten samples 10 s."""
    group = {
        "name": "phone",
        "count": 1,
        "compute": {"per_sample": "1s"},
        "network": {"down": "2440 B/s", "up": "1220 B/s", "latency": 0},
        "energy": WATTS,
        **(population or {}),
    }
    if windows:
        (folder / "windows.csv").write_text("device,on_s,off_s\n" + windows, encoding="utf-8")
        group["availability"] = {"name": "trace", "path": "windows.csv", "at_end": "depart"}
    data = {
        "name": "watts",
        "task": {
            "dataset": "synthetic",
            "model": {"name": "logistic"},
            "partition": "natural",
        },
        "population": [group, {"name": "fast", "count": 1, "compute": {"per_sample": "1us"}}],
        "server": {"rounds": 1, "local": {"steps": 2, "batch": 10}, **server},
    }
    return Scenario.from_data(data, "watts.yaml", folder=folder)


def plan_of(made):
    """Return the only Plan, without the other device, which pays nothing."""
    plan = next(iter(prepare(made).clock()))
    return replace(plan, orders=plan.orders[:1], stages=type(plan.stages)(*(column[:1] for column in plan.stages)))


def test_a_trip_by_hand():
    """1 s at 2 W, 20 s at 3 W, 2 s at 5 W: 72 J; at 360 g/kWh, 7.2 mg. Nothing is idle."""
    made = scenario()
    assert prepare(made).model_bytes == 2440
    plan = plan_of(made)
    assert [column.tolist() for column in plan.stages] == [[SECOND], [20 * SECOND], [2 * SECOND], [0]]
    tariff = tariff_of(made)
    assert tariff.spent(plan).of == ((2 * FEMTO, 60 * FEMTO, 10 * FEMTO, 0, 0, 0), (0,) * 6)
    assert tariff.joules(plan).tolist() == [72.0]
    assert tariff.carbon(tariff.spent(plan)) == pytest.approx(0.0072)


def test_what_is_off_pays_nothing_and_what_waits_is_idle(tmp_path):
    """Off from 5 to 65: 20 s of steps take 80. A device that is too slow downloads, and waits to the end."""
    plan = plan_of(scenario("d,0,5\nd,65,1000\n", tmp_path))
    assert plan.orders[0].finished == 83 * SECOND
    assert [column.tolist() for column in plan.stages] == [[SECOND], [20 * SECOND], [2 * SECOND], [0]]
    slow = plan_of(scenario(deadline="12s"))
    assert slow.orders[0].outcome is Outcome.TOO_SLOW
    assert [column.tolist() for column in slow.stages] == [[SECOND], [0], [0], [11 * SECOND]]


def test_a_trip_that_is_cut_pays_until_then():
    """A naive device computes until the deadline: 1 s down and 19 s of steps, of which one of two is done."""
    plan = plan_of(scenario(deadline="20s", population={"deadline_aware": False}))
    assert plan.orders[0].outcome is Outcome.LATE
    assert [column.tolist() for column in plan.stages] == [[SECOND], [19 * SECOND], [0], [0]]


def test_sums_do_not_overflow():
    """A kilowatt for a year, a million times: 3e16 J, where 64 bits of femtojoules are 9,223 J."""
    price = Consumption.model_validate({"compute": "1 kW"})
    year = 365 * 86_400 * SECOND
    plan = plan_of(scenario())
    many = Orders(*(np.repeat(column, 1_000_000) for column in plan.orders.columns))
    stages = type(plan.stages)(*(np.repeat(column, 1_000_000) for column in ([0], [year], [0], [0])))
    spent = Tariff([GroupTariff("silo", 1, price)]).spent(replace(plan, orders=many, stages=stages))
    assert spent.total == 10**6 * 1000 * 365 * 86_400 * FEMTO


CHANGES = [
    "server.rounds=12",
    "population.phones.energy={down: 0.8 W, compute: 3 W, up: 1.2 W, idle: 0.1 W, carbon: 400 g/kWh}",
    "population.kiosks.energy={compute: 20 W, idle: 2 W, per_byte: 30 nJ, per_step: 1 mJ}",
]
TIMINGS = {
    "rounds": [],
    "quorum": ["server.cohort=30", "server.over_selection=10"],
    "fedbuff": ["server.cohort=all", "server.participation=uniform",
                "server.timing={name: fedbuff, concurrency: 20, buffer: 8}"],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("timing", TIMINGS)
def test_energies_add_up_and_are_the_same_event_by_event(timing):
    columns, events = (
        Scenario.load(QUICKSTART, [*CHANGES, *TIMINGS[timing], f"clock={clock}"]) for clock in ("columns", "events")
    )
    tariff = tariff_of(columns)
    plans = list(prepare(columns).clock())
    for plan, other in zip(plans, prepare(events).clock(), strict=True):
        assert plan.orders == other.orders
        assert all(np.array_equal(*pair) for pair in zip(plan.stages, other.stages, strict=True))
        asleep = (plan.orders.finished - plan.orders.started) - sum(plan.stages)
        assert (asleep >= 0).all(), "a device is never on for longer than its trip takes"
        each = [tariff.spent(replace(plan, orders=plan.orders.take(np.array([k])), stages=type(plan.stages)(
            *(column[[k]] for column in plan.stages)))).total for k in range(len(plan.orders))]  # fmt: skip
        assert sum(each) == tariff.spent(plan).total
        assert tariff.joules(plan) == pytest.approx(np.array(each) / FEMTO)
    total = sum(tariff.spent(plan).total for plan in plans)
    summary = replay(columns).summary
    assert summary["joules"] == total / FEMTO
    assert sum(summary["joules_of_stages"].values()) == pytest.approx(summary["joules"])
    assert sum(summary["joules_of_groups"].values()) == pytest.approx(summary["joules"])
    assert summary["joules_of_groups"]["tablets"] == 0
    assert summary["joules_of_device"]["mean"] * 100 == pytest.approx(summary["joules"])
    assert summary["co2_grams"] == pytest.approx(summary["joules_of_groups"]["phones"] / 3.6e6 * 400)
    assert {key: value for key, value in replay(events).summary.items() if key != "wall_seconds"} == {
        key: value for key, value in summary.items() if key != "wall_seconds"
    }


def test_the_battery_is_empty_when_its_trip_has_consumed_it():
    """A full battery of 14 J, without a charger: 1 s down at 2 W and 4 s of steps at 3 W, and the device goes off."""
    battery = {
        "name": "process",
        "behaviour": "battery",
        "arguments": {"capacity": "14 J", "charging": 0, "low": 0.0, "resume": 1.0},
    }
    made = scenario(population={"availability": battery}, deadline="1min")
    plan = plan_of(made)
    assert plan.orders[0].outcome is Outcome.OFFLINE
    assert [column.tolist() for column in plan.stages] == [[SECOND], [4 * SECOND], [0], [0]]
    assert tariff_of(made).joules(plan).tolist() == [14.0]


def test_two_sayings_about_watts_are_refused():
    battery = {"name": "process", "behaviour": "battery", "arguments": {"compute": 4}}
    with pytest.raises(ScenarioError, match=r"watts for compute in the arguments and others in the group's energy"):
        prepare(scenario(population={"availability": battery}))

"""No choice depends on what comes after it: another future leaves all choices before it alone."""

from itertools import takewhile

import numpy as np
import pytest

from fedactors import Scenario
from fedactors.clock.selections.availability_forecast import Forecaster
from fedactors.plan import SECOND
from fedactors.simulation.prepare import prepare
from fedactors.simulation.replay import heeding

DAY = 86_400
FORECASTING = ["refl", "availability"]


def windows(random, begin, end):
    """Return windows of one device in [begin, end), s: on for about three hours, off for about five."""
    found, time = [], begin
    while time < end:
        on = time + int(random.exponential(5 * 3600))
        off = min(end, on + 1 + int(random.exponential(3 * 3600)))
        if off > on:
            found.append((on, off))
        time = off + 1
    return found


def recordings(path, at, future, devices=25):
    """Write windows of devices that are alike until `at` (s), and go on by `future`."""
    lines = []
    for device in range(devices):
        known = windows(np.random.default_rng([7, device]), 0, 3 * DAY)
        until = [(on, off) for on, off in known if on < at]
        until = [(on, min(off, at) if future else off) for on, off in until]
        later = windows(np.random.default_rng([future, device]), at + 60, 4 * DAY) if future else [
            one for one in known if one[0] >= at
        ]  # fmt: skip
        lines += [f"d{device},{on},{off}" for on, off in until + later]
    path.write_text("\n".join(["device,on_s,off_s", *lines]) + "\n", encoding="utf-8")


def scenario(path, selection, **changes):
    data = {
        "name": "future",
        "task": {"dataset": {"name": "synthetic"}, "model": "logistic", "partition": "natural"},
        "population": [
            {
                "name": "phones",
                "count": 25,
                "availability": {"name": "trace", "path": path.name, "at_end": "depart", "offset": "none"},
                "compute": {"per_sample": "2s", "spread": 0.8},
                "deadline_aware": False,
            }
        ],
        "server": {
            "rounds": 400,
            "cohort": 3,
            "deadline": "30min",
            "selection": selection,
            "local": {"epochs": 1, "batch": 10},
        },
        **changes,
    }
    return Scenario.from_data(data, "future.yaml", folder=path.parent)


def choices(made, before):
    """Return who was asked when, in the rounds that open before a time, ns."""
    plans = takewhile(lambda plan: plan.opened < before, heeding(made.clock()))
    return [(plan.opened, plan.orders.client.tolist()) for plan in plans]


@pytest.fixture
def forecasts(monkeypatch):
    """Return a list to which every forecast is added, with the time at which it was made."""
    found, shares = [], Forecaster.shares

    def noted(self, clients, after, length):
        made = shares(self, clients, after, length)
        found.append((self._history.now, made.tolist()))
        return made

    monkeypatch.setattr(Forecaster, "shares", noted)
    return found


@pytest.mark.parametrize("selection", FORECASTING)
@pytest.mark.parametrize("at", [30 * 3600, 54 * 3600])
def test_another_future_changes_no_choice_before_it(tmp_path, forecasts, selection, at):
    """Nor does it change a forecast by a bit."""
    found = []
    for future in (1, 2):
        path = tmp_path / f"future{future}.csv"
        recordings(path, at, future)
        made = prepare(scenario(path, selection))
        forecasts.clear()
        chosen = choices(made, (at + 6 * 3600) * SECOND)
        known = ([one for one in seen if one[0] < at * SECOND] for seen in (chosen, forecasts))
        found.append((chosen, *known))
    (chosen, *before), (other, *as_before) = found
    assert len(before[1]) > 40
    assert before == as_before
    assert chosen != other, "the futures differ"


@pytest.mark.parametrize("selection", FORECASTING)
def test_the_past_decides(tmp_path, selection):
    """Whoever was seen less is asked more by REFL, and less by a server that wants devices to stay."""
    path = tmp_path / "past.csv"
    recordings(path, 3 * DAY, 0)
    by_lot = choices(prepare(scenario(path, "uniform")), 3 * DAY * SECOND)
    assert choices(prepare(scenario(path, selection)), 3 * DAY * SECOND) != by_lot


@pytest.mark.parametrize("selection", FORECASTING)
def test_events_and_columns_choose_the_same(tmp_path, selection):
    path = tmp_path / "same.csv"
    recordings(path, 3 * DAY, 0)
    columns, events = (
        choices(prepare(scenario(path, selection, clock=clock)), 2 * DAY * SECOND) for clock in ("columns", "events")
    )
    assert columns == events

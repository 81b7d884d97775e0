"""Synthetic availability: its parameters are what is measured, and one device does not depend on the others."""

import numpy as np
import pytest

from fedactors.clock.device_columns import build
from fedactors.clock.synthetic_availability import windows
from fedactors.plan import SECOND
from fedactors.scenario.loading import validate
from fedactors.scenario.synthetic_behaviour import SyntheticBehaviour
from fedactors.traces.describe import describe
from fedactors.traces.timeline import Timeline

HOUR, DAY = 3600 * SECOND, 86_400 * SECOND


def made(count=2000, seed=1, **options):
    law = SyntheticBehaviour.model_validate(options)
    table = windows(law, count, seed, 5)
    end = np.full(count, law.days * DAY)
    names = tuple(map(str, range(count)))
    return Timeline(names, table.starts, table.on, table.off, np.zeros(count, np.int64), end)  # checks the layout


@pytest.mark.parametrize("sigma", [None, 1.0])
def test_mean_times_are_those_asked_for(sigma):
    """On 1 of 5 hours; a window in each five hours."""
    timeline = made(mean_on="1h", mean_off="4h", sigma=sigma, days=14)
    found = describe(timeline)
    assert found.share == pytest.approx(0.2, rel=0.03)
    assert found.windows / 2000 / (14 * 24 / 5) == pytest.approx(1.0, rel=0.03)
    if sigma is None:
        assert found.lengths[0.5] / HOUR == pytest.approx(np.log(2), rel=0.05)
    else:
        assert found.lengths[0.5] / HOUR == pytest.approx(np.exp(-0.5), rel=0.05)


def started(timeline, weekday):
    """Return windows that begin in each hour of the day, on weekdays or on weekends."""
    begin = timeline.on[(timeline.on > 0) & ((timeline.on // DAY % 7 < 5) == weekday)]
    return np.bincount(begin % DAY // HOUR, minlength=24)


def test_nights_weekends_and_zones():
    """Short windows, long waits: what is counted is the rate itself."""
    rare = {"mean_on": "1s", "mean_off": "12h", "days": 14}
    night = started(made(night=4.0, **rare), True)
    by_night = np.r_[night[22:], night[:7]].mean()
    assert by_night / night[7:22].mean() == pytest.approx(4.0, rel=0.1)
    week = made(weekend=3.0, **rare)
    assert started(week, False).mean() / 2 / (started(week, True).mean() / 5) == pytest.approx(3.0, rel=0.1)
    tokyo = started(made(night=50.0, zones=[9], **rare), True)
    assert tokyo[13:22].sum() > 0.9 * tokyo.sum()  # 22:00 to 7:00 there


def test_devices_added_at_the_end_leave_the_others_as_they_were():
    few, many = made(10, night=3.0, zones=[0, 5]), made(40, night=3.0, zones=[0, 5])
    assert [list(few.windows(k)) for k in range(10)] == [list(many.windows(k)) for k in range(10)]
    assert list(made(10, seed=2).windows(0)) != list(made(10).windows(0))


def test_a_group_of_a_scenario_is_synthetic_and_loops():
    scenario = {
        "name": "made-up",
        "task": {"dataset": "digits", "model": "logistic", "partition": "iid"},
        "population": [
            {"name": "a", "count": 50, "availability": {"name": "synthetic", "night": 3, "days": 7}},
            {"name": "b", "count": 2},
        ],
        "server": {"rounds": 1},
    }
    people = build(validate(scenario, "s.yaml"), 1)
    a = people.availability
    assert all(a.is_on(device, t) == a.is_on(device, t + 7 * DAY) for device in range(50) for t in (0, HOUR, 30 * HOUR))
    assert 0 < sum(a.is_on(device, 0) for device in range(50)) < 50
    assert a.is_on(50, 0)

"""Hours of the day at which a battery is plugged in, also where midnight is one of them."""

import pytest

from fedactors.clock.behaviours.battery import Battery
from tests.clock.behaviours.test_behaviours import spans_on


def spans(plugged, days=3, **given):
    """Return when a device is on whose 7.2 kJ are spent at 1 W and charged at 10 W."""
    return spans_on(lambda: Battery(capacity="7.2 kJ", idle=1.0, plugged=plugged, low=0.2, resume=0.3, **given), days)


@pytest.mark.parametrize("hour", [1.0, 7.0, 12.5, 20.0, 23.0])
def test_midnight_is_hour_0_and_hour_24(hour):
    assert spans((hour, 0)) == spans((hour, 24))
    assert spans((0, hour)) == spans((24, hour))


@pytest.mark.parametrize("midnight", [0, 24])
def test_a_battery_that_is_plugged_in_until_midnight_runs_down_before(midnight):
    """At most 5,760 J above the bound: off within 1.6 h, and on again soon after 20 h, when it is plugged in: of the
    2,160 J of the upper bound 720 J at 10 W are charged in 72 s. Full at midnight, it lasts 5,760 s at 1 W."""
    (_, off), (on, again), *_ = spans((20, midnight))
    assert off <= 5760
    assert (on, again) == (pytest.approx(20 * 3600 + 72), pytest.approx(24 * 3600 + 5760))


def test_a_battery_that_is_plugged_in_all_day_never_runs_down():
    assert len(spans((0, 24))) == 1


@pytest.mark.parametrize("plugged", [(7, 7), (0, 0), (24, 0), (-1, 7), (22, 25), (float("nan"), 7)])
def test_hours_that_there_are_not_are_refused(plugged):
    with pytest.raises(ValueError, match=r"plugged.*two different hours from 0 to 24"):
        Battery(plugged=plugged)


def test_a_battery_resumes_above_the_level_at_which_it_stops():
    """At one level it would stop and resume for ever within an instant."""
    with pytest.raises(ValueError, match="0 <= low < resume <= 1"):
        Battery(low=0.3, resume=0.3)

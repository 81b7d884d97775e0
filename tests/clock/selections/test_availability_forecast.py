"""Forecasts from the past of each device, worked by hand."""

import numpy as np
import pytest

from fedactors.clock.selections.availability_forecast import Forecaster
from fedactors.durations import DURATIONS
from tests.clock.selections.pasts import seen

H = DURATIONS["h"]


def share(history, after, length, days=7, clients=1):
    every = np.arange(clients)
    found = Forecaster(history, days).shares(every, np.full(clients, after), np.full(clients, length))
    return found.tolist()


def test_the_same_hours_of_the_last_days():
    """Two days have passed, and 1 to 3 o'clock is asked for.

    Day 1: on from 2 to 6, half of the stretch. Day 0: on from 0 to 6, all of it. Overall 10 of 48 hours.
    (1/2 + 1 + 10/48) / 3.
    """
    history = seen([[(0, 6 * H), (26 * H, 30 * H)]], now=48 * H)
    assert share(history, 1 * H, 2 * H) == pytest.approx([(0.5 + 1 + 10 / 48) / 3])
    assert share(history, 1 * H, 2 * H, days=1) == pytest.approx([(0.5 + 10 / 48) / 2]), "one day back only"


def test_a_stretch_that_was_not_seen_whole_does_not_count():
    """After 30 hours the stretch from 5 to 8 o'clock of today is not over; yesterday's is: on 5 to 6, one hour of 3."""
    history = seen([[(0, 6 * H), (26 * H, 40 * H)]], now=30 * H)
    assert share(history, -1 * H, 3 * H) == pytest.approx([(1 / 3 + 10 / 30) / 2])


def test_a_device_counts_from_its_arrival():
    """It came after 20 hours: the stretch of day 0 is not its own, and overall it was on 4 of 28 hours."""
    history = seen([[(0, 6 * H), (26 * H, 30 * H)]], now=48 * H, arrive=20 * H)
    assert share(history, 1 * H, 2 * H) == pytest.approx([(0.5 + 4 / 28) / 2])


def test_without_a_past_all_are_alike():
    assert share(seen([[(0, H)], None], now=0), H, H, clients=2) == [0.5, 0.5]

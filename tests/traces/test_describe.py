"""Figures of a timeline, against counting second by second, and their text."""

import json

import numpy as np
import pytest
from hypothesis import given
from timelines import timelines

from fedactors.plan import SECOND
from fedactors.traces.describe import describe
from fedactors.traces.format_registry import read
from fedactors.traces.timeline import Repair, Timeline, build

HOUR = 3600 * SECOND


def test_figures_of_a_small_timeline():
    """Device a is seen 0..48 h and on 1:30-3:00 and 25:00-26:00; b is seen 12..24 h and never on."""
    timeline = build(
        [
            ("a", [(3 * HOUR // 2, 3 * HOUR), (25 * HOUR, 26 * HOUR)], 0, 48 * HOUR),
            ("b", [], 12 * HOUR, 24 * HOUR),
        ],
        [Repair("touching windows joined", 3, 'device "a", line 2')],
    )
    found = describe(timeline)
    assert (found.devices, found.never, found.windows) == (2, 1, 2)
    assert (found.begin, found.end, found.observed) == (0, 48 * HOUR, 30 * HOUR)
    assert found.share == pytest.approx(2.5 / 60)
    assert found.lengths[0.5] == HOUR
    assert found.lengths[1.0] == 1.5 * HOUR
    assert found.hourly[:4] == (0, pytest.approx(1.5 / 2), pytest.approx(1 / 2), 0)
    assert found.hourly[12] == 0
    text = found.text()
    assert text.splitlines()[:2] == [
        "2 devices, observed for 2 days in all, 1.2 days each on average",
        "on 4.2% of the time, in 2 windows; devices never on: 1",
    ]
    assert "on by hour of the day, highest 75.0% at 01:00, lowest 0.0%" in text
    assert "  ██▅▅" in text
    assert text.endswith('repaired:\n  3 x touching windows joined, first at device "a", line 2')
    assert json.loads(json.dumps(found.data()))["lengths"]["0.5"] == HOUR


def test_hours_that_nobody_observed_are_unknown():
    found = describe(build([("a", [(0, HOUR)], 0, 2 * HOUR)]))
    assert found.hourly == (1.0, 0.0, *[None] * 22)
    assert "██  ····" in found.text()


def test_nothing_at_all():
    assert describe(build([])).text().startswith("0 devices")
    assert describe(build([("a", [], 5, 5)])).share == 0


@given(timelines())
def test_any_timeline_can_be_described(timeline):
    found = describe(timeline)
    assert 0 <= found.share <= 1
    assert all(share is None or -1e-9 <= share <= 1 + 1e-9 for share in found.hourly)
    json.dumps(found.data(), allow_nan=False)
    assert found.text()


def test_hours_agree_with_counting_every_minute():
    rng = np.random.default_rng(1)
    edges = np.unique(rng.integers(0, 5 * 24 * 60, 40)) * 60 * SECOND
    windows = list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=False))
    found = describe(build([("a", windows, 0, 5 * 24 * HOUR)]))
    minutes = np.zeros(5 * 24 * 60)
    for on, off in windows:
        minutes[on // (60 * SECOND) : off // (60 * SECOND)] = 1
    assert found.hourly == pytest.approx(minutes.reshape(5, 24, 60).mean(axis=(0, 2)))


def test_a_fleet_whose_sums_exceed_an_int64():
    devices, year = 100_000, 365 * 24 * HOUR
    one = np.ones(devices, dtype=np.int64)
    timeline = Timeline(
        tuple(map(str, range(devices))), np.arange(devices + 1), 0 * one, year * one // 2, 0 * one, year * one
    )
    assert describe(timeline).share == pytest.approx(0.5)


def test_the_real_recording(recording):
    found = describe(read(recording("flash/state_traces_60.json"), when="charging"))
    assert found.share == pytest.approx(0.2105, abs=1e-4)
    assert (found.devices, found.never, found.windows) == (60, 2, 1298)
    night, noon = np.mean(found.hourly[0:5]), np.mean(found.hourly[10:15])
    assert night > noon
    assert all(len(line) <= 120 for line in found.text().splitlines())

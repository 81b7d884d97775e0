"""Differences from a baseline are drawn beside 0."""

import numpy as np
import pytest

from fedactors.report.bands import differences


@pytest.mark.parametrize(
    ("found", "low", "high"),
    [
        ([("a", 0.3, 0.05), ("b", 0.2, None)], 0, 0.35),
        ([("a", -0.3, 0.05)], -0.35, 0),
        ([("a", 0.1, 0.3)], -0.2, 0.4),
        ([("a", 0.0, None)], 0, 0),
    ],
)
def test_the_axis_of_differences_shows_0_and_all_whiskers(found, low, high):
    axis = differences(found, "base", "accuracy").model.x_range
    assert np.isfinite([axis.start, axis.end]).all()
    assert axis.start < low
    assert axis.end > high

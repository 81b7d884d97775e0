"""How figures of studies are written, whatever their size."""

from dataclasses import replace

import numpy as np
import pytest

from fedactors.study.run_figures import MEASURES, figures


@pytest.mark.parametrize(
    ("measure", "value", "said"),
    [
        ("accuracy", 0.8125, "0.812"),
        ("accuracy", 0.05, "0.050"),
        ("accuracy", -0.0125, "-0.013"),
        ("accuracy", 0.0, "0.000"),
        ("accuracy", 2e-17, "0.000"),
        ("loss", 1.1e-4, "0.00011"),
        ("loss", 123.45678, "123.457"),
        ("loss", 3e30, "3e+30"),
        ("loss", -1.23456e9, "-1.23e+09"),
        ("rounds", 1234.5, "1,234.5"),
        ("seconds", 0.0123, "12.3 ms"),
        ("seconds", -0.0123, "-12.3 ms"),
        ("seconds", 0.0, "0.0 s"),
        ("seconds", 0.05, "0.1 s"),
        ("seconds", 90.0, "90.0 s"),
        ("bytes", 1500.0, "1.5 kB"),
    ],
)
def test_figures_of_any_size_show_what_they_are(measure, value, said):
    assert MEASURES[measure].show(value) == said


def test_a_target_that_is_reached_exactly_by_a_flat_curve_is_reached(comparison):
    """Ten rounds at .1 and 30 at .7: a window of 20 rounds has the mean .7 from round 30 on."""
    one = comparison.rows[0]
    accuracy = np.array([0.1] * 10 + [0.7] * 30)
    columns = {name: np.full(40, np.nan if name.startswith("validation") else 0) for name in one.records.metrics} | {
        "round": np.arange(1.0, 41.0),
        "accuracy": accuracy,
    }
    flat = replace(one, records=replace(one.records, metrics=columns))
    assert figures(flat, target=0.7, window=20)["rounds_to"] == 30
    assert figures(flat, target=0.7)["rounds_to"] == 11

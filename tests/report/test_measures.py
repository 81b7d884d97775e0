"""Samples, bins and shares, on numbers worked by hand."""

import numpy as np
import pytest

from fedactors.report import measures
from fedactors.report.figure import share
from fedactors.run_files.records import OUTCOMES, read
from tests.report.conftest import made_up


def test_gini_of_equal_shares_is_zero_and_of_one_owner_is_near_one():
    """One of n has everything: (n - 1) / n. Shares 1, 2, 3: 2 (1 + 4 + 9) / (3 * 6) - 4 / 3 = 2 / 9."""
    assert measures.gini(np.ones(7)) == pytest.approx(0)
    assert measures.gini(np.array([0, 0, 0, 5])) == pytest.approx(0.75)
    assert measures.gini(np.array([3, 1, 2])) == pytest.approx(2 / 9)
    assert measures.gini(np.zeros(3)) == 0


@pytest.mark.parametrize("count", [0, 1, 5, 6, 1000])
def test_samples_keep_the_first_and_the_last(count):
    rows = measures.every(count, 5)
    assert len(rows) == min(count, 5)
    assert list(rows[[0, -1]] if count else []) == ([0, count - 1] if count else [])


def test_bins_lose_no_order(tmp_path):
    records = read(made_up(tmp_path / "run", rounds=50, cohort=40, devices=90))
    orders, counts = records.orders, np.bincount(read(tmp_path / "run").orders["outcome"], minlength=len(OUTCOMES))
    by_steps = measures.steps_done(records)
    assert {name: values.sum() for name, values in by_steps.items()} == dict(zip(OUTCOMES, counts, strict=True))
    assert by_steps["late"][10] == np.sum((orders["steps"] == 20) & (orders["outcome"] == OUTCOMES.index("late")))
    _, width, means = measures.outcomes_per_round(records, 20)
    assert width == 3
    assert sum(values[0] for values in means.values()) == pytest.approx(40)
    [group] = measures.by_group(records)
    assert (group.asked, sum(group.outcomes.values())) == (2000, 2000)
    assert group.steps == measures.contributions(records).sum()


def test_an_hour_is_a_mean_over_the_days_that_had_it(tmp_path):
    """Of 25 hours with 60 rounds of 4 each, hour 0 went by twice: every full hour has 240 trips a day."""
    records = read(made_up(tmp_path / "run", rounds=25 * 60, cohort=4, devices=9))
    hours = np.sum(list(measures.by_hour(records).values()), axis=0)
    assert hours == pytest.approx(np.full(24, 240), rel=0.01)


@pytest.mark.parametrize(
    ("part", "whole", "read_as"),
    [(0, 9, "0%"), (1, 9999, "< 1%"), (1, 2, "50%"), (9998, 9999, "> 99%"), (3, 3, "100%")],
)
def test_a_share_never_rounds_to_all_or_nothing(part, whole, read_as):
    assert share(part, whole) == read_as


def test_what_is_compared_is_the_mean_over_the_last_tenth_of_the_rounds(tmp_path):
    """Accuracies of the made-up run are 1 - 1 / (round + 1): of 25 rounds, the last tenth are rounds 23 to 25."""
    records = read(made_up(tmp_path / "run", rounds=25, cohort=4, devices=9))
    assert measures.at_end(records, "accuracy") == pytest.approx(1 - (1 / 24 + 1 / 25 + 1 / 26) / 3)
    assert measures.at_end(records, "accuracy", 1) == pytest.approx(1 - 1 / 26)
    records.metrics["accuracy"][[24, 22]] = np.nan  # not evaluated: rounds 22 to 24 are left, without 23
    assert measures.at_end(records, "accuracy") == pytest.approx(1 - (1 / 25 + 1 / 23) / 2)
    records.metrics["accuracy"][:] = np.nan
    assert measures.at_end(records, "accuracy") is None

"""Differences from a baseline are drawn beside 0; a variant has one look wherever it is drawn."""

from dataclasses import replace

import numpy as np
import pytest

from fedactors.report.bands import accuracy, along, differences
from fedactors.report.palette import RUNS, run_line
from fedactors.run_files.records import read
from tests.report.conftest import made_up


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
    names = ["base", *(name for name, _, _ in found)]
    axis = differences(found, "base", "accuracy", names).model.x_range
    assert np.isfinite([axis.start, axis.end]).all()
    assert axis.start < low
    assert axis.end > high


def test_differences_have_the_looks_of_the_variants_lines_wherever_the_baseline_stands():
    variants = [f"v{number}" for number in range(10)]
    found = [(name, 0.1, 0.05) for name in variants if name != "v2"]
    model = differences(found, "v2", "accuracy", variants).model
    data = model.renderers[0].data_source.data
    looks = dict(zip(data["y"], zip(data["color"], data["dash"], strict=True), strict=True))
    assert looks == {name: run_line(k) for k, name in enumerate(variants) if name != "v2"}
    assert looks["v0"] == (RUNS[0], "solid")
    assert looks["v9"] == (RUNS[1], "dashed")


def test_a_variant_that_was_never_evaluated_leaves_its_look_unused(tmp_path):
    runs = {name: [read(made_up(tmp_path / name, rounds=3, cohort=4, devices=9))] for name in ("a", "c")}
    chart = accuracy({"a": runs["a"], "b": [], "c": runs["c"]}, lambda values: (values[0], values[0]))
    lines = {one.name: one.glyph.line_color for one in chart.model.renderers if one.name}
    assert lines == {"a": RUNS[0], "c": RUNS[2]}


def test_values_stand_until_the_next_is_known_and_nothing_goes_beyond_the_shortest_run(tmp_path):
    """Seconds:  10   15   20   30   40    One run has .1 at 10, .3 at 20, .5 at 40; another .2 at 15 and .6 at 30.

    one          .1   .1   .3   .3   .5    Both are known from 15 on, where the other begins, to 30, where it ends; the
    other             .2   .2   .6         round at 25 in which it was not evaluated is no point.
    """
    run = read(made_up(tmp_path / "run", rounds=3, cohort=4, devices=9), tables=False)
    one = with_values(run, [10, 20, 40], [0.1, 0.3, 0.5])
    other = with_values(run, [15, 25, 30], [0.2, np.nan, 0.6])
    points, values = along([one, other], "accuracy", "virtual")
    assert points.tolist() == [15, 20, 30]
    assert values.tolist() == [[0.1, 0.3, 0.3], [0.2, 0.2, 0.6]]
    assert along([one, with_values(run, [1, 2, 3], [np.nan] * 3)], "accuracy", "virtual")[0].size == 0
    assert along([], "accuracy", "virtual")[0].size == 0


def with_values(run, seconds, values):
    columns = {"virtual_seconds": np.array(seconds, float), "accuracy": np.array(values)}
    return replace(run, metrics={**run.metrics, **columns})

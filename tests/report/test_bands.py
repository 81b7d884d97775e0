"""Differences from a baseline are drawn beside 0; a variant has one look wherever it is drawn."""

import numpy as np
import pytest

from fedactors.report.bands import accuracy, differences
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

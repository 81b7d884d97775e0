"""The columns keep their layout, and tidying agrees with the plain reference `merged`."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from timelines import as_dict

from fedactors.errors import TraceError
from fedactors.plan import NEVER
from fedactors.traces.columns import assemble, from_midnight, windows
from fedactors.traces.source import RecordingFile, RepairLog
from fedactors.traces.timeline import Timeline, build, merged

SOURCE = RecordingFile("here", b"")
WINDOW = st.tuples(st.integers(0, 3), st.integers(0, 12), st.integers(0, 12)).filter(lambda w: w[1] <= w[2])


def tidied(recorded, devices=4, strict=False):
    columns = list(zip(*recorded, strict=True)) or [[], [], []]
    repair_log = RepairLog(SOURCE, strict)
    names = [str(d) for d in range(devices)]
    seen = ([0] * devices, [12] * devices)
    return assemble(names, windows(*columns), seen, repair_log, lambda k: f"window {k}")


@given(st.lists(WINDOW, max_size=12))
def test_tidying_columns_agrees_with_merging_lists(recorded):
    timeline = tidied(recorded)
    for device in range(4):
        plain = merged((on, off) for row, on, off in recorded if row == device)
        assert list(timeline.windows(device)) == plain


@given(st.lists(WINDOW, max_size=12))
def test_what_needs_no_repair_is_not_touched_and_strict_accepts_exactly_that(recorded):
    clean = tidied(recorded)
    again = [(row, on, off) for row in range(4) for on, off in clean.windows(row)]
    assert tidied(again, strict=True).same_as(clean)
    if clean.repairs:
        with pytest.raises(TraceError, match=r"here: window \d+: .*strict"):
            tidied(recorded, strict=True)


def test_repairs_are_counted_by_kind_and_name_the_first_place():
    recorded = [(0, 5, 6), (0, 1, 2), (0, 2, 3), (0, 4, 4), (1, 0, 9), (1, 3, 4), (1, 8, 10)]
    timeline = tidied(recorded)
    assert as_dict(timeline) == {"0": [(1, 3), (5, 6)], "1": [(0, 10)], "2": [], "3": []}
    assert [(r.kind, r.count, r.first) for r in timeline.repairs] == [
        ("window without length dropped", 1, "window 3"),
        ("windows out of order sorted", 1, "window 1"),
        ("touching windows joined", 1, "window 2"),
        ("overlapping windows joined", 2, "window 5"),
    ]


@pytest.mark.parametrize(
    ("window", "words"), [((0, 5, 4), "ends before it begins"), ((0, 5, 13), "outside the device's sight")]
)
def test_what_cannot_be_mended_is_refused_with_its_place(window, words):
    with pytest.raises(TraceError, match=f"here: window 0: .*{words}"):
        tidied([window])


def test_from_midnight_keeps_the_time_of_day():
    nine, later = 9 * 3600, 33 * 3600
    (times,) = from_midnight(([5 * 86_400 + nine, 5 * 86_400 + later],), RepairLog(SOURCE))
    assert times.tolist() == [nine * 10**9, later * 10**9]
    with pytest.raises(TraceError, match="span 1000 years"):
        from_midnight(([0], [1000 * 365 * 86_400]), RepairLog(SOURCE))


def column(*values):
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"names": ("a", "a")}, "two devices of one name"),
        ({"starts": column(0, 1)}, "columns of different lengths"),
        ({"starts": column(0, 2, 1)}, "rows do not cover"),
        ({"off": column(6, 7)}, "touch, overlap or run backwards"),
        ({"on": column(1, 3)}, "touch, overlap or run backwards"),
        ({"off": column(1, 7)}, "empty or backward"),
        ({"last": column(6, 9)}, "outside its device's first and last sight"),
        ({"first": column(8, 0), "last": column(7, 9)}, "last seen before"),
        ({"first": column(-1, 0)}, "before the epoch"),
        ({"last": column(7, NEVER + 1)}, "146 years"),
    ],
)
def test_a_timeline_refuses_columns_that_break_its_layout(change, words):
    good = {
        "names": ("a", "b"),
        "starts": column(0, 2, 2),
        "on": column(1, 5),
        "off": column(3, 7),
        "first": column(0, 9),
        "last": column(7, 9),
    }
    Timeline(**good)
    with pytest.raises(TraceError, match=words):
        Timeline(**(good | change))


def test_build_merges_and_compares_by_content():
    rows = [("a", [(5, 6), (1, 3), (3, 4)], 0, 9), ("b", [], 2, 2)]
    assert as_dict(build(rows)) == {"a": [(1, 4), (5, 6)], "b": []}
    assert build(rows).same_as(build(rows))
    assert not build(rows).same_as(build(rows[:1]))

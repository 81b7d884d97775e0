"""Machines instead of phones: Failure Trace Archive and spot instances."""

import json

import numpy as np
import pytest
from timelines import as_dict, repaired

from fedactors.errors import TraceError
from fedactors.plan import SECOND
from fedactors.traces.format_registry import read

HEADER = (
    "# event_id component_id node_id platform_id node_name event_type "
    "event_start_time event_stop_time event_end_reason\n"
)
DAY = 86_400


def events(*rows: tuple[object, ...]) -> str:
    return HEADER + "".join(f"  {k}\t 0  {n}\t3   1.0  {up} {a}  {b}\tNULL\n" for k, (n, up, a, b) in enumerate(rows))


def test_a_node_is_seen_from_its_first_to_its_last_event_up_or_down(written):
    path = written(
        events(
            ("n1", 0, 10 * DAY + 100, 10 * DAY + 200),
            ("n1", 1, 10 * DAY + 200, 10 * DAY + 300.5),
            ("n1", 0, 10 * DAY + 300.5, 10 * DAY + 400),
            ("n2", 1, 10 * DAY + 50, 10 * DAY + 60),
        )
    )
    timeline = read(path, strict=True)
    assert as_dict(timeline) == {
        "n1": [(200 * SECOND, 300 * SECOND + SECOND // 2)],
        "n2": [(50 * SECOND, 60 * SECOND)],
    }
    assert timeline.first.tolist() == [100 * SECOND, 50 * SECOND]
    assert timeline.last.tolist() == [400 * SECOND, 60 * SECOND]


def test_a_copy_that_dropped_the_mark_of_its_header(written):
    text = events(("n", 1, DAY, DAY + 5), ("n", 0, DAY + 5, DAY + 5), ("n", 1, DAY + 5, DAY + 9))
    timeline = read(written(text.removeprefix("# ")))
    assert as_dict(timeline) == {"n": [(0, 9 * SECOND)]}
    assert repaired(timeline) == {"touching windows joined": 1}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("n", 2, 1, 2), "device \"n\", line 2: event_type '2' (1 (up) or 0 (down))"),
        (("n", 1, "x", 2), "device \"n\", line 2: time 'x' (unix seconds)"),
        (("n", 1, 1, "9" * 11), "(unix seconds)"),
        (("n", 1, 3, 2), 'device "n", line 2: an event that stops before it starts'),
        (("n", 1, "1 1", 2), "line 2: 10 columns (9, as in the header)"),
        (("n", 1, 1, 9_000_000_000), "times span 285 years"),
    ],
)
def test_damaged_events_are_named_with_node_and_line(written, row, message):
    with pytest.raises(TraceError) as caught:
        read(written(events(row)))
    assert message in str(caught.value)


def test_an_event_trace_without_events(written):
    with pytest.raises(TraceError, match="no event"):
        read(written(HEADER))
    with pytest.raises(TraceError, match="no column node_id, event_type"):
        read(written("event_id event_start_time event_stop_time\n"), format="fta")


@pytest.mark.parametrize("name", ["fta-lanl05/event_trace.tab.gz"])
def test_counts_of_the_lanl_recording(recording, name):
    """43,325 events of 3,577 nodes; 19,874 up, of which 41 meet across a down event without length."""
    timeline = read(recording(name))
    assert len(timeline) == 3577
    assert len(timeline.on) == 19_874 - 41
    assert repaired(timeline) == {"touching windows joined": 41}
    assert (timeline.last.max() - timeline.first.min()) // SECOND == 1_126_273_620 - 800_920_500
    assert np.median(timeline.off - timeline.on) / (3600 * SECOND) == pytest.approx(280, abs=2)


def spot(data, gap=300, **more):
    return json.dumps({"metadata": {"gap_seconds": gap}, "data": data, **more})


def test_a_single_instance_bears_the_name_of_its_file(written):
    timeline = read(written(spot([1, 1, 0, 1], prices=[]), "us-east-1a_v100_1.json"), strict=True)
    assert as_dict(timeline) == {"us-east-1a_v100_1": [(0, 600 * SECOND), (900 * SECOND, 1200 * SECOND)]}
    assert timeline.last.tolist() == [1200 * SECOND]
    assert as_dict(read(written(spot([0, 0]), "a.json"))) == {"a": []}


def test_one_device_per_instance(written):
    timeline = read(written(spot([2, 0, 1, 3], gap=0.5), "zone.json"))
    half = SECOND // 2
    assert as_dict(timeline) == {
        "zone/0": [(0, half), (2 * half, 4 * half)],
        "zone/1": [(0, half), (3 * half, 4 * half)],
        "zone/2": [(3 * half, 4 * half)],
    }


@pytest.mark.parametrize(("gap", "ns"), [(0.1, 10**8), (1.1, 1_100_000_000), (1e-9, 1), (300.0, 300 * SECOND)])
def test_a_tick_is_the_decimal_number_that_is_written(written, gap, ns):
    """0.1 as a binary number is no whole number of nanoseconds."""
    assert read(written(spot([0, 1], gap=gap), "zone.json")).last.tolist() == [2 * ns]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (spot([]), "no list of counts"),
        (spot([1, -1]), "tick 1: count '-1'"),
        (spot([1, True]), "tick 1: count 'True'"),
        (spot([1, 10**9]), "tick 1: count '1000000000' (a whole number up to 4096)"),
        (spot([1], gap=0), "gap_seconds '0'"),
        (spot([1], gap=True), "gap_seconds 'True'"),
        (spot([1], gap="5"), "gap_seconds '5'"),
        (spot([1], gap=1e-12), "a whole number of nanoseconds"),
        (spot([1], gap=float("nan")), "gap_seconds 'nan'"),
        (spot([1], gap=10**30), "gap_seconds"),
        ('{"gap_seconds": 1}', "no list of counts"),
    ],
)
def test_damaged_spot_traces(written, text, message):
    path = written(text)
    with pytest.raises(TraceError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "ticks", "gap", "on"),
    [
        ("1-node/aws-04-22-2023/us-east-1f_v100_1.json", 19_961, 32, 11_817),
        ("4-node/aws-08-03-2023/us-west-2c_v100_1.json", 5131, 300, 4 * 4051 + 3 * 111),
    ],
)
def test_counts_of_the_spot_recordings(recording, name, ticks, gap, on):
    timeline = read(recording(f"spot/preemption/{name}"))
    assert timeline.last.max() == ticks * gap * SECOND
    counted = (timeline.off - timeline.on).sum() // (gap * SECOND)
    assert counted >= on
    assert len(timeline) == int(name[0])

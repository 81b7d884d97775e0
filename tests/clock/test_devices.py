"""Groups of a scenario become columns: speeds from operations and tables, links and places from recordings."""

from itertools import islice

import numpy as np
import pytest

from fedactors.clock.device_columns import build
from fedactors.errors import ScenarioError, TraceError
from fedactors.plan import NEVER, SECOND
from fedactors.scenario.loading import validate
from fedactors.traces import device_tables
from fedactors.traces.device_tables import Matrix, table
from fedactors.traces.formats import native
from fedactors.traces.series import BYTES_PER_SECOND, PPM, SeriesRow
from fedactors.traces.series import build as build_series

HOUR = 3600 * SECOND
FLOPS = 3_000_000


def people(folder, groups, flops=FLOPS, seed=3):
    scenario = {
        "name": "devices",
        "seed": seed,
        "task": {"dataset": "digits", "model": "logistic", "partition": "iid"},
        "population": [{"name": f"g{k}", "count": 4, **group} for k, group in enumerate(groups)],
        "server": {"rounds": 1},
    }
    found = validate(scenario, "devices.yaml", None, folder)
    validate(found.dump(), "again.yaml", None, folder)  # what is written down can be read
    return build(found, flops)


def test_speed_follows_from_the_operations_of_the_model(tmp_path):
    """3 MFLOP at 2 GFLOP/s: 1.5 ms; at 7 FLOP/s, rounded up."""
    found = people(tmp_path, [{"compute": {"flops": "2 GFLOP/s"}}, {"compute": {"flops": "7 FLOP/s"}}])
    assert found.per_sample.tolist() == [1_500_000] * 4 + [-(-FLOPS * SECOND // 7)] * 4


def test_speed_from_tables(tmp_path):
    native.write(table(["a", "b"], {device_tables.SAMPLE: [100, 200]}), tmp_path / "fedscale.csv")
    native.write(table(["a", "b", "c"], {device_tables.SCORE: [10, 20, 30]}), tmp_path / "scores.csv")
    native.write(
        table(["a"], {device_tables.TRAIN: [77], device_tables.DOWN: [5], device_tables.UP: [3]}), tmp_path / "own.csv"
    )
    native.write(table(["a"], {device_tables.FLOPS: [10**9]}), tmp_path / "flops.csv")
    found = people(
        tmp_path,
        [
            {"compute": {"table": {"path": "fedscale.csv"}}},
            {"compute": {"table": {"path": "fedscale.csv", "reference": "1 MFLOP"}}},
            {"compute": {"table": {"path": "scores.csv", "per_point": "100 kFLOP/s"}}},
            {"compute": {"table": {"path": "own.csv"}}, "network": {"table": {"path": "own.csv"}}},
            {"compute": {"table": {"path": "flops.csv"}}},
        ],
    )
    assert found.per_sample.tolist() == [
        *(300, 600, 300, 600),  # three times the inference, whatever the model
        *(300, 600, 300, 600),  # 3 MFLOP where the reference has 1
        *(3 * SECOND, 1_500_000_000, SECOND, 3 * SECOND),
        *[77] * 4,
        *[3_000_000] * 4,
    ]
    assert (found.down[12:16].tolist(), found.up[12:16].tolist()) == ([5] * 4, [3] * 4)
    assert found.flows is None


@pytest.mark.parametrize("time", [77, 24 * SECOND, NEVER // 2])
def test_a_table_of_one_time_is_that_time_with_the_same_spread(time, tmp_path):
    """Factors of a table are in whole ppm, at least 1: both differ by 1 ppm of the time at most, and by rounding."""
    native.write(table(["a"], {device_tables.TRAIN: [time]}), tmp_path / "own.csv")
    wide = {"count": 20_000, "network": {"down": "1 MB/s"}}
    listed = people(tmp_path, [{"compute": {"table": {"path": "own.csv"}, "spread": 5.0}, **wide}]).per_sample
    stated = people(tmp_path, [{"compute": {"per_sample": f"{time}ns", "spread": 5.0}, **wide}]).per_sample
    assert listed.max() <= NEVER // 4
    assert np.abs(listed - stated).max() <= time // 1_000_000 + 2
    assert listed[stated.argmax()] == listed.max()


def test_inferences_that_last_for_centuries_are_no_overflow(tmp_path):
    native.write(table(["a"], {device_tables.SAMPLE: [NEVER - 1]}), tmp_path / "fedscale.csv")
    for more in ({}, {"reference": "1 FLOP"}):
        found = people(tmp_path, [{"compute": {"table": {"path": "fedscale.csv", **more}}}])
        assert found.per_sample.tolist() == [NEVER // 4] * 4


def test_a_device_takes_the_same_row_for_speed_and_links(tmp_path):
    names = [str(k) for k in range(50)]
    native.write(
        table(
            names, {device_tables.TRAIN: range(1, 51), device_tables.DOWN: range(1, 51), device_tables.UP: range(1, 51)}
        ),
        tmp_path / "own.csv",
    )
    lot = {"path": "own.csv", "assign": "shuffle"}
    found = people(tmp_path, [{"compute": {"table": lot}, "network": {"table": lot}}])
    assert found.per_sample.tolist() == found.down.tolist() == found.up.tolist()
    assert len(set(found.down.tolist())) > 1
    again = people(tmp_path, [{"compute": {"table": lot}, "network": {"table": lot}}], seed=4)
    assert again.down.tolist() != found.down.tolist()


def test_rates_over_time_places_and_constants_side_by_side(tmp_path):
    links = build_series(
        [SeriesRow("a/down", [0, 5], [10, 30], 9), SeriesRow("a/up", [0], [7], 9), SeriesRow("b/down", [0], [40], 3)],
        BYTES_PER_SECOND,
    )
    native.write(links, tmp_path / "links.csv")
    native.write(build_series([SeriesRow("cpu", [0, 10], [10**6, 0], 20)], PPM), tmp_path / "cpu-1.csv")
    native.write(build_series([SeriesRow("cpu", [0, 10], [500_000, 0], 20)], PPM), tmp_path / "cpu-2.csv")
    native.write(Matrix(("x", "y"), np.array([[0, 8], [6, 2]])), tmp_path / "cities.csv")
    found = people(
        tmp_path,
        [
            {
                "compute": {"flops": "1 GFLOP/s", "share": {"path": "cpu-*.csv", "at_end": "hold"}},
                "network": {
                    "trace": {"down": {"path": "links.csv", "rows": "*/down"}},
                    "places": {"path": "cities.csv", "server": "y", "assign": "in_order"},
                },
            },
            {},
        ],
    )
    assert found.down.tolist() == [30, 40, 30, 40, *[2_000_000] * 4]  # the best that they ever have
    assert found.latency.tolist() == [4, 1, 4, 1, *[50_000_000] * 4]
    assert found.flows.varying.tolist() == [True] * 4 + [False] * 4
    assert found.flows.down.given(0, 0, 9) == 5 * 10 + 4 * 30
    assert found.flows.down.given(1, 0, 9) == 360
    assert found.flows.share.given(1, 0, 20) == 5_000_000
    assert found.flows.share.reach(1, 0, 5_000_001) == NEVER  # held at 0
    assert found.flows.up.given(0, 0, 10) == 500_000 * 10


def test_a_run_begins_when_the_recording_does_or_at_a_time_of_day(tmp_path):
    intervals = "device,on,off,first,last\na,9h,10h,9h,33h\nb,12h,13h,11h,30h\n"
    (tmp_path / "w.csv").write_text(intervals)
    trace = {"name": "trace", "path": "w.csv", "at_end": "depart"}
    plain, first, noon = (
        people(tmp_path, [{"availability": {**trace, **extra}, "count": 2}])
        for extra in ({}, {"begin": "first"}, {"begin": "12h"})
    )
    assert plain.arrive.tolist() == [9 * HOUR, 11 * HOUR]
    assert (first.arrive.tolist(), first.depart.tolist()) == ([0, 2 * HOUR], [24 * HOUR, 21 * HOUR])
    assert first.availability.is_on(0, 0)
    assert list(first.availability.spans(1, 0)) == [(3 * HOUR, 4 * HOUR)]
    assert (noon.arrive.tolist(), noon.depart.tolist()) == ([0, 0], [21 * HOUR, 18 * HOUR])
    assert noon.availability.is_on(1, 0)
    trace["at_end"] = "loop"
    looped = people(tmp_path, [{"availability": {**trace, "begin": "first"}, "count": 2}])
    assert looped.availability.is_on(0, 0)
    assert looped.availability.is_on(0, 24 * HOUR)


def test_recordings_that_loop_are_there_from_the_beginning_and_may_keep_times_of_day(tmp_path):
    """Seen from 11 to 41, on from 38: with turns of 30 h from 8 on, too; with whole days it is 14:00 each time."""
    (tmp_path / "w.csv").write_text("device,on,off,first,last\nb,38h,39h,11h,41h\n")
    for at_end, period, begins in (("loop", 30, [8, 38, 68]), ("loop_days", 48, [38, 86, 134])):
        trace = {"name": "trace", "path": "w.csv", "at_end": at_end}
        found = people(tmp_path, [{"availability": trace, "count": 1}])
        assert (found.arrive.tolist(), found.availability.period.tolist()) == ([0], [period * HOUR])
        assert [on // HOUR for on, _ in islice(found.availability.spans(0, 0), 3)] == begins


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ({"compute": {"share": {"path": "links.csv"}, "flops": "1 GFLOP/s"}}, "is in bytes/s (accepted: a recording"),
        ({"network": {"trace": {"down": {"path": "links.csv", "rows": "x*"}}}}, 'no row is called "x*" (accepted: a)'),
        ({"compute": {"table": {"path": "scores.csv"}}}, "compute.table.per_point, such as 100 kFLOP/s"),
        ({"network": {"table": {"path": "scores.csv"}}}, "has no column down_bytes_per_s"),
        ({"network": {"places": {"path": "links.csv"}}}, "which gives rates over time"),
        ({"compute": {"share": {"path": "none-*.csv"}, "flops": "1 GFLOP/s"}}, "no trace is called none-*.csv"),
    ],
)
def test_what_does_not_fit_is_told(tmp_path, group, message):
    native.write(build_series([SeriesRow("a", [0], [10], 9)], BYTES_PER_SECOND), tmp_path / "links.csv")
    native.write(table(["a"], {device_tables.SCORE: [10]}), tmp_path / "scores.csv")
    with pytest.raises(TraceError) as caught:
        people(tmp_path, [group])
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("compute", "message"),
    [
        ({"flops": "5 GB/s"}, '"GB/s" is not a speed (accepted: FLOP/s, kFLOP/s'),
        ({"flops": 5}, "has no unit"),
        ({"flops": "1 GFLOP/s", "per_sample": "1ms"}, "give one of per_sample, flops and table"),
        ({}, "give one of per_sample, flops and table"),
    ],
)
def test_speeds_that_cannot_be_are_told(tmp_path, compute, message):
    with pytest.raises(ScenarioError) as caught:
        people(tmp_path, [{"compute": compute}])
    assert message in str(caught.value)

"""Both directions of a link are one recording; a table without speed and windows without rest are refused."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedactors.clock.device_columns import build
from fedactors.errors import ScenarioError, TraceError
from fedactors.plan import SECOND
from fedactors.scenario.loading import validate
from fedactors.simulation.checks.check import check
from fedactors.traces import device_tables
from fedactors.traces.device_tables import table
from fedactors.traces.formats import native
from fedactors.traces.series import BYTES_PER_SECOND, SeriesRow, padded
from fedactors.traces.series import build as build_series

MS = 10**6


def scenario(folder, group, **server):
    data = {
        "name": "links",
        "seed": 3,
        "task": {"dataset": "digits", "model": "logistic", "partition": "iid"},
        "population": [{"name": "g", "count": 50, **group}],
        "server": {"rounds": 1, **server},
    }
    return validate(data, "links.yaml", None, folder)


def directions(down, up, **options):
    return {"network": {"trace": {"down": {"path": down, **options}, "up": {"path": up, **options}}}}


@pytest.fixture
def mahimahi(tmp_path):
    """The same link twice: its last packet comes down after 8 ms, and up after 6 ms."""
    (tmp_path / "drive.down").write_text("".join(f"{ms}\n" for ms in range(8)))
    (tmp_path / "drive.up").write_text("".join(f"{ms}\n" for ms in range(6)))
    return tmp_path


def test_directions_of_different_lengths_stay_together_however_long_they_loop(mahimahi):
    """Each turn takes 8 ms in both directions: up has 6 packets of 1,500 bytes, and nothing in the last 2 ms."""
    flows = build(scenario(mahimahi, directions("drive.down", "drive.up")), 1).flows
    for turn in (0, 1, 1000):
        begin = turn * 8 * MS
        assert flows.up.given(0, begin, begin + 6 * MS) == 6 * 1500 * SECOND
        assert flows.up.given(0, begin + 6 * MS, begin + 8 * MS) == 0
        assert flows.down.given(0, begin, begin + 8 * MS) == 8 * 1500 * SECOND


@pytest.mark.parametrize(("at_end", "packets"), [("loop", 0), ("hold", 2)])
def test_the_shorter_direction_is_silent_or_keeps_its_last_value(mahimahi, at_end, packets):
    flows = build(scenario(mahimahi, directions("drive.down", "drive.up", at_end=at_end)), 1).flows
    assert flows.up.given(0, 6 * MS, 8 * MS) == packets * 1500 * SECOND


LOG = "Timestamp,DL_bitrate,UL_bitrate,State\n2019.12.16_11.49.59,80,8,D\n2019.12.16_11.50.00,160,16,D\n"


@pytest.mark.parametrize("direction", ["down", "up"])
def test_a_log_of_both_directions_drives_each_by_its_own_rows(tmp_path, direction):
    """In kbit/s of 125 bytes: 80 and 160 down, 8 and 16 up. Without `rows` every second device had the other's."""
    (tmp_path / "log.csv").write_text(LOG)
    (tmp_path / "again.csv").write_text(LOG)
    for path in ("log.csv", "*.csv"):
        mixed = {"network": {"trace": {direction: {"path": path}}}}
        with pytest.raises(TraceError, match=rf'\.csv: rows of both directions for {direction} .*"\*/{direction}"'):
            build(scenario(tmp_path, mixed), 1)
        whole = {"network": {"trace": {direction: {"path": path, "rows": f"*/{direction}"}}}}
        rates = {"down": [160 * 125], "up": [16 * 125]}
        assert set(getattr(build(scenario(tmp_path, whole), 1), direction).tolist()) == set(rates[direction])


def test_directions_have_one_offset(mahimahi):
    flows = build(scenario(mahimahi, directions("drive.down", "drive.up", offset="random")), 1).flows
    assert flows.down._shift.tolist() == flows.up._shift.tolist()
    assert len(set(flows.down._shift.tolist())) > 10
    held = build(scenario(mahimahi, directions("drive.down", "drive.up", offset="random", at_end="hold")), 1).flows
    assert held.down._shift.tolist() == held.up._shift.tolist()


def test_rows_of_other_recordings_are_no_two_directions(mahimahi):
    (mahimahi / "long.up").write_text("0\n5\n17\n")
    with pytest.raises(TraceError, match=r"drive.down lasts 0.008 s down, and long.up 0.018 s up \(accepted: two"):
        build(scenario(mahimahi, directions("drive.down", "long.up")), 1)
    with pytest.raises(TraceError, match=r"1 rows down and 3 up \(accepted: as many"):
        build(scenario(mahimahi, directions("drive.down", "*.*")), 1)
    with pytest.raises(ScenarioError, match=r"network\.trace \(group g\): offset is random for down and none for up"):
        scenario(
            mahimahi,
            {"network": {"trace": {"down": {"path": "drive.down", "offset": "random"}, "up": {"path": "drive.up"}}}},
        )


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=5))
def test_padding_adds_silence_and_changes_nothing_else(rows):
    series = build_series([SeriesRow(str(k), [0], [v], end) for k, (end, v, _) in enumerate(rows)], BYTES_PER_SECOND)
    longer = padded(series, series.end + [extra for _, _, extra in rows])
    for k, (end, value, extra) in enumerate(rows):
        seconds = [v for begin, stop, v in longer.pieces(k) for _ in range(begin, stop)]
        assert seconds == [value] * end + [0] * extra


@pytest.mark.parametrize(
    ("column", "group"),
    [
        (device_tables.FLOPS, {"compute": {"table": {"path": "t.csv"}}}),
        (device_tables.TRAIN, {"compute": {"table": {"path": "t.csv"}}}),
        (device_tables.SAMPLE, {"compute": {"table": {"path": "t.csv"}}}),
        (device_tables.SCORE, {"compute": {"table": {"path": "t.csv", "per_point": "1 kFLOP/s"}}}),
        (device_tables.DOWN, {"network": {"table": {"path": "t.csv"}}}),
    ],
)
def test_a_speed_of_nothing_is_no_speed(tmp_path, column, group):
    native.write(table(["a", "b"], {column: [5, 0]}), tmp_path / "t.csv")
    with pytest.raises(TraceError, match=rf'device "b": {column} 0 \(accepted: above 0\)'):
        build(scenario(tmp_path, group), 1)


def test_windows_that_repeat_without_rest_are_refused_at_once(tmp_path):
    (tmp_path / "w.csv").write_text("device,on_ns,off_ns\nphone,0,9\nphone,12,15\n")
    group = {"availability": {"name": "trace", "path": "w.csv"}}
    begun = time.perf_counter()
    with pytest.raises(TraceError) as caught:
        check(scenario(tmp_path, group, deadline="10s"))
    assert 'device "phone": 2 windows that repeat every 15 ns (accepted: up to 100 windows in a second' in str(
        caught.value
    )
    assert time.perf_counter() - begun < 10
    once = {"availability": {"name": "trace", "path": "w.csv", "at_end": "depart"}}
    assert len(build(scenario(tmp_path, once), 1)) == 50


def test_many_windows_over_years_are_not_dense(tmp_path):
    """508 windows in 5.5 years: their number in ns times the bound does not fit 64 bits."""
    day = 86_400
    rows = "".join(f"phone,{4 * k * day},{(4 * k + 1) * day}\n" for k in range(508))
    (tmp_path / "w.csv").write_text("device,on_s,off_s\n" + rows)
    assert len(build(scenario(tmp_path, {"availability": {"name": "trace", "path": "w.csv"}}), 1)) == 50


def test_the_projects_own_recordings_repeat_slowly_enough():
    campus = Path(__file__).parents[2] / "traces"
    assert len(build(scenario(campus, {"availability": {"name": "trace", "path": "campus.csv"}}), 1)) == 50

"""Rates over time: the layout, each format's quirks on a small file, and the real recordings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from timelines import repaired

from fedactors.errors import TraceError
from fedactors.plan import SECOND
from fedactors.traces.format_registry import read, read_any, read_series
from fedactors.traces.series import BYTES_PER_SECOND, PPM, SeriesRow, build, join

MS = 1_000_000


def pieces(series, row=0, unit=SECOND):
    return [(begin / unit, end / unit, value) for begin, end, value in series.pieces(row)]


# --- the type ---


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 2)), min_size=1, max_size=8))
def test_neighbours_of_equal_value_become_one_piece_and_nothing_else_changes(parts):
    ends = np.cumsum([length for length, _ in parts])
    series = build([SeriesRow("a", [0, *ends[:-1]], [v for _, v in parts], int(ends[-1]))], PPM)
    plain = [value for length, value in parts for _ in range(length)]
    assert [value for begin, end, value in series.pieces(0) for _ in range(begin, end)] == plain
    assert all(a[2] != b[2] for a, b in zip(pieces(series), pieces(series)[1:], strict=False))
    assert series.mean(0) == pytest.approx(sum(plain) / len(plain))


def test_join_puts_rows_below_one_another():
    one, two = (build([SeriesRow(name, [0, 5], [1, 2], 9)], PPM) for name in "ab")
    both = join([one, two])
    assert both.names == ("a", "b")
    assert pieces(both, 1, 1) == [(0, 5, 1), (5, 9, 2)]
    assert both.same_as(build([SeriesRow("a", [0, 5], [1, 2], 9), SeriesRow("b", [0, 5], [1, 2], 9)], PPM))
    with pytest.raises(TraceError, match="two rows of one name"):
        join([one, one])
    with pytest.raises(TraceError, match="different units"):
        join([one, build([SeriesRow("c", [0], [1], 9)], BYTES_PER_SECOND)])


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (SeriesRow("a", [], [], 5), "one is empty"),
        (SeriesRow("a", [1], [1], 5), "begin at 0"),
        (SeriesRow("a", [0, 3, 3], [1, 2, 3], 5), "do not increase"),
        (SeriesRow("a", [0], [1], 0), "do not increase"),
        (SeriesRow("a", [0], [-1], 5), "a negative value"),
    ],
)
def test_a_series_refuses_columns_that_break_its_layout(row, words):
    with pytest.raises(TraceError, match=words):
        build([row], PPM)


# --- HSDPA ---

HSDPA = [
    "1285675666 310761 59.88 10.76 288648 1000",
    "1285675667 311771 NOFIX NOFIX 1000 2000",
    "1285675668 5 59.88 10.76 0 30000",
    "1285675698 1005 59.88 10.76 10 3",
]


def test_hsdpa_time_is_the_sum_of_intervals(written):
    series = read_series(written("\n".join(HSDPA) + "\n", "report.log"))
    assert series.names == ("report",)
    assert series.unit == BYTES_PER_SECOND
    assert pieces(series) == [(0, 1, 288_648), (1, 3, 500), (3, 33, 0), (33, 33.003, 3333)]
    assert repaired(series) == {"unobserved gap closed": 1}


def test_a_reversed_hsdpa_log_is_turned_around(written):
    forward = read_series(written("\n".join(HSDPA[:2]), "a"))
    backward = read_series(written("\n".join(HSDPA[1::-1]), "a"))
    assert backward.same_as(forward)
    assert repaired(backward) == {"log in reversed order turned around": 1}


def test_hsdpa_repairs_and_damage(written):
    swapped = read_series(written("\n".join([HSDPA[0], HSDPA[3], HSDPA[1], HSDPA[3].replace(" 3", " 0")])))
    assert repaired(swapped)["time runs backwards"] == 1
    assert repaired(swapped)["line without duration left out"] == 1
    for bad, message in {
        HSDPA[0] + " 7": "line 2: 7 columns (6)",
        HSDPA[0].replace("288648", "-5"): "line 2: bytes '-5' (a whole number)",
        HSDPA[0].replace(" 1000", " " + "9" * 15): "years (at most 146 years)",
    }.items():
        with pytest.raises(TraceError) as caught:
            read_series(written(HSDPA[0] + "\n" + bad), strict=True)
        assert message in str(caught.value)


def test_counts_of_the_hsdpa_recordings(recording):
    logs = sorted(recording("hsdpa-3g").glob("*/*.log"))
    series = [read_series(log, strict=True) for log in logs]
    assert len(logs) == 34
    moved = 0
    for log, one in zip(logs, series, strict=True):
        cells = [line.split() for line in log.read_text().splitlines()]
        assert one.end[0] == sum(int(c[5]) for c in cells) * MS
        total, seconds = sum(int(c[4]) for c in cells), int(one.end[0]) / SECOND
        assert abs(one.mean(0) * seconds - total) <= 0.5 * seconds + 1  # each rate is rounded to a byte/s
        moved += len(cells)
    assert moved == 25_376


# --- Irish 5G ---

HEADER = "Timestamp,Speed,DL_bitrate,UL_bitrate,State\n"


def irish(*rows):
    return HEADER + "".join(f"2019.12.16_11.49.{second:02},0,{down},{up},{state}\n" for second, down, up, state in rows)


def test_irish_rates_are_those_of_downloads_and_hold_through_idle_lines(written):
    text = irish((1, 0, 0, "I"), (2, 8, 16, "D"), (3, 0, 0, "I"), (5, 80, 16, "D"), (6, 1, 1, "V"))
    series = read_series(written(text, "log.csv"), strict=True)
    assert series.names == ("log/down", "log/up")
    assert pieces(series, 0) == [(0, 3, 1000), (3, 4, 10_000)]
    assert pieces(series, 1) == [(0, 4, 2000)]


def test_an_irish_line_that_runs_back_to_a_second_that_is_there_is_both_repairs(written):
    series = read_series(written(irish((2, 8, 8, "D"), (3, 16, 8, "D"), (2, 24, 8, "D"))))
    assert repaired(series) == {"several lines in one second, the last counts": 1, "time runs backwards": 1}


def test_irish_repairs(written):
    text = irish((2, 8, 8, "D"), (2, 16, 8, "D"), (5, "-", 8, "D"), (4, 24, 8, "D"), (3, 32, 8, "D"))
    series = read_series(written(text))
    assert pieces(series, 0) == [(0, 1, 2000), (1, 2, 4000), (2, 3, 3000)]
    assert repaired(series) == {
        "several lines in one second, the last counts": 1,
        "measurement without a rate left out": 1,
        "time runs backwards": 1,
    }


def test_irish_gaps_between_measurements_are_told(written):
    """Nothing is logged from 24 to 35. What comes before the first measurement, and after the last, is cut off."""
    text = irish((1, 8, 8, "I"), (14, 8, 8, "D"), (24, 0, 0, "I"), (35, 16, 8, "D"), (40, 0, 0, "I"), (59, 0, 0, "I"))
    source = written(text)
    series = read_series(source)
    assert pieces(series, 0) == [(0, 21, 1000), (21, 22, 2000)]
    assert [(repair.kind, repair.count, repair.first) for repair in series.repairs] == [
        ("gap in the log, the last rate holds", 1, "line 5")
    ]
    with pytest.raises(TraceError, match=r"line 5: gap in the log, the last rate holds \(11 s\)"):
        read_series(source, strict=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (irish((1, 0, 0, "I")), "no line of state D"),
        (irish((1, "x", 0, "D")), "line 2: rate 'x' (a number >= 0)"),
        (irish((61, 1, 0, "D")), "line 2: time '2019.12.16_11.49.61' (YYYY.MM.DD_HH.MM.SS)"),
        (HEADER + "1,2\n", "line 2: 2 columns (5, as in the header)"),
        (irish((1, 0, 0, "D")) + "9019.12.16_11.49.01,0,1,1,D\n", "at most 146 years"),
    ],
)
def test_damaged_irish_logs(written, text, message):
    with pytest.raises(TraceError) as caught:
        read_series(written(text))
    assert message in str(caught.value)


def test_counts_of_the_irish_recordings(recording):
    name = "irish-5g/sample/Download__Static__B_2020.02.14_13.21.26.csv"
    series = read_series(recording(name))
    assert repaired(series) == {"several lines in one second, the last counts": 74}
    assert series.mean(0) * 8 / 1e6 == pytest.approx(130.07, abs=0.1)  # Mbit/s
    assert series.end.tolist() == [1103 * SECOND] * 2


# --- Mahimahi ---


def test_mahimahi_packets_are_bytes_per_second_of_their_millisecond(written):
    series = read_series(written("2\n2\n3\n3\n4\n7\n", "drive.up"))
    assert series.names == ("drive.up",)
    assert pieces(series, 0, MS) == [
        (0, 2, 0),
        (2, 4, 3_000_000),
        (4, 5, 1_500_000),
        (5, 7, 0),
        (7, 8, 1_500_000),
    ]


@given(st.lists(st.integers(0, 30), min_size=1, max_size=30).map(sorted))
def test_mahimahi_loses_no_packet(times):
    from fedactors.traces.formats import mahimahi
    from fedactors.traces.source import RecordingFile, RepairLog

    source = RecordingFile("here", "\n".join(map(str, times)).encode())
    series = mahimahi.read(source, RepairLog(source, strict=True))
    for ms in range(31):
        bytes_moved = sum(
            value * max(0, min(end, (ms + 1) * MS) - max(begin, ms * MS)) // SECOND
            for begin, end, value in series.pieces(0)
        )
        assert bytes_moved == 1500 * times.count(ms)


def test_damaged_mahimahi(written):
    with pytest.raises(TraceError, match="line 3: time runs backwards: 1 after 5"):
        read_series(written("0\n5\n1\n"), format="mahimahi")
    with pytest.raises(TraceError, match="line 2: time 'x'"):
        read_series(written("0\nx\n"), format="mahimahi")
    with pytest.raises(TraceError, match="at most 146 years"):
        read_series(written("0\n" + "9" * 15))


@pytest.mark.parametrize(
    ("name", "packets", "last"),
    [("ATT-LTE-driving-2016.down", 45_604, 120_002), ("Verizon-LTE-short.up", 69_367, 140_000)],
)
def test_counts_of_the_mahimahi_recordings(recording, name, packets, last):
    series = read_series(recording(f"mahimahi/{name}.gz"))
    assert series.names == (name,)
    assert series.end[0] == (last + 1) * MS
    assert sum((end - begin) * value for begin, end, value in series.pieces(0)) == packets * 1500 * SECOND


# --- Pensieve, PlanetLab ---


def test_cooked_traces_move_to_zero_and_keep_decimals(written):
    series = read_series(written("1520.0\t0.890992\n1525.0 8e-06\n1530.5\t2.0\n", "trace_1_http---www.x.com"))
    assert series.names == ("trace_1_http---www.x.com",)
    assert pieces(series) == [(0, 5, 111_374), (5, 10.5, 1), (10.5, 16, 250_000)]


def test_cooked_traces_with_unix_times_move_to_zero(written):
    series = read_series(written("1700000000 8\n1700000001.5 16\n1700000003 24\n"), format="cooked")
    assert pieces(series) == [(0, 1.5, 10**6), (1.5, 3, 2 * 10**6), (3, 4.5, 3 * 10**6)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1\n1 2\n", "line 2: time does not rise: 1 s"),
        ("1 1\n", "1 lines (at least 2)"),
        ("1 1\n2\n", "line 2: 1 columns"),
        ("1 1\n2 -1\n", "line 2: rate '-1'"),
        ("1 1\n2 1e99\n", "line 2: rate '1e99' (a number up to 8,000,000,000,000)"),
        ("1 1\n5e9 2\n", "line 2: time '5e9' (a number up to 4,611,686,018)"),
        ("1 1\n4e9 2\n", "the last line: 253 years (at most 146 years)"),
        ("1 1\nnan 1\n", "line 2: time 'nan'"),
    ],
)
def test_damaged_cooked_traces(written, text, message):
    with pytest.raises(TraceError) as caught:
        read_series(written(text), format="cooked")
    assert message in str(caught.value)


def test_counts_of_the_fcc_recordings(recording):
    series = [read_series(path, strict=True) for path in sorted(recording("fcc/train").iterdir())]
    assert len(join(series)) == 59
    assert min(one.mean(0) for one in series) > 20_000
    assert max(one.mean(0) for one in series) < 400_000  # a narrow choice of links


def test_planetlab_use_is_what_is_not_left(written):
    series = read_series(written("24\n34\n34\n" + "0\n" * 285, "host_slice"))
    assert (series.names, series.unit) == (("host_slice",), PPM)
    assert pieces(series) == [(0, 300, 760_000), (300, 900, 660_000), (900, 86_400, 1_000_000)]
    with pytest.raises(TraceError, match="line 2: percentage 101"):
        read_series(written("1\n101\n"), format="planetlab")


def test_counts_of_the_planetlab_recordings(recording):
    for path in sorted(recording("planetlab-cpu/raw_sample").iterdir()):
        series = read_series(path, strict=True)
        used = [int(line) for line in path.read_text().split()]
        assert series.mean(0) == pytest.approx(1_000_000 - 10_000 * np.mean(used))


# --- the registry ---


def test_a_file_that_gives_something_else_says_so(written):
    path = written("1 1\n2 2\n")
    with pytest.raises(TraceError, match=r"a cooked file, which gives bandwidth \(csv, parquet, flash"):
        read(path)
    assert read_any(path).same_as(read_series(path))
    with pytest.raises(TraceError, match="a rule"):
        read_any(path, when="wifi")

"""Tables of devices and latencies: units, quirks, and the real files."""

import json
import pickle

import numpy as np
import pytest
from timelines import repaired

from fedactors.errors import TraceError
from fedactors.traces.device_tables import BENCHMARK, DOWN, SAMPLE, SAMPLES, SCORE, UP, DeviceTable, Matrix
from fedactors.traces.format_registry import read_latency, read_table


def columns(table):
    return {name: column.tolist() for name, column in table.columns.items()}


def test_fedscale_capacity_in_our_units(written):
    clients = {
        1: {"computation": 153.0, "communication": 2209.5},
        2: {"computation": np.float64(0.5), "communication": 8},
    }
    table = read_table(written(pickle.dumps(clients)), strict=True)
    assert table.names == ("1", "2")
    assert columns(table) == {SAMPLE: [153_000_000, 500_000], DOWN: [276_188, 1000], UP: [276_188, 1000]}


def test_fedfetch_separates_up_and_down(written):
    record = {"computation": 42.0, "communication": 2051.1, "dl_kbps": 80.0, "ul_kbps": 8000}
    table = read_table(written(pickle.dumps({0: record})))
    assert columns(table) == {SAMPLE: [42_000_000], DOWN: [10_000], UP: [1_000_000]}


def test_the_csv_variant_has_clients_in_columns(written):
    text = ",1,2\ncomputation,153.0,39.0\ncommunication,8.0,16\nsample_size,7,34\n"
    table = read_table(written(text))
    assert table.names == ("1", "2")
    assert columns(table) == {
        SAMPLE: [153 * 10**6, 39 * 10**6],
        DOWN: [1000, 2000],
        UP: [1000, 2000],
        SAMPLES: [7, 34],
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps({1: {"computation": 0, "communication": 5}}), "device \"1\": inference_ns of '0'"),
        (
            pickle.dumps({1: {"computation": 5, "communication": float("inf")}}),
            'device "1": down_bytes_per_s',
        ),
        (pickle.dumps({1: {"computation": 5}, 2: "communication"}), "record '2' of no client"),
        (pickle.dumps({1: {"computation": 5}, "1": {"communication": 5}}), "of one twice"),
        (pickle.dumps(["computation", "communication"]), "a pickle of something else"),
        (",1,1\ncomputation,1,1\n", "line 1: no clients, or one twice"),
        (",1,2\ncomputation,1,2\ncommunication,1\n", "line 3: row 'communication' of 2 cells"),
        (
            ",1,2\ncomputation,1,x\ncommunication,1,2\n",
            "device \"2\": inference_ns of 'x' (a number above 0)",
        ),
        (",1,2\ncomputation,1,2\ncomunication,1,2\n", "line 3: row 'comunication'"),
        (",1,2\ncomputation,1,2\n", "device \"1\": down_bytes_per_s of 'None'"),
    ],
)
def test_damaged_capacities(written, content, message):
    path = written(content)
    with pytest.raises(TraceError) as caught:
        read_table(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_counts_of_the_capacity_files(recording):
    small = read_table(recording("fedscale/client_device_capacity"), strict=True)
    assert (len(small), small.names[0]) == (100, "1")
    assert small.columns[SAMPLE][0] == 153_000_000
    large = read_table(recording("fedscale/client_device_capacity_ul_dl"), strict=True)
    assert (len(large), large.names[0]) == (9242, "0")
    assert len(np.unique(large.columns[SAMPLE])) == 72
    assert (large.columns[SAMPLE].min(), large.columns[SAMPLE].max()) == (15_000_000, 199_000_000)
    assert large.columns[UP].min() == pytest.approx(10_000 / 8, rel=0.05)
    assert large.columns[DOWN].max() == pytest.approx(986e6 / 8, rel=0.01)


def test_scores_and_names_of_phones(written):
    scores = read_table(written('{"Phone A": 61560, "Phone B": 212}'))
    assert columns(scores) == {SCORE: [61_560, 212]}
    names = read_table(written('{"RMX1941": "Realme C2", "CPH1909": "unknown"}'))
    assert names.labels == {BENCHMARK: ("Realme C2", "")}
    raw = [
        {"Model": "A", "AI_Score": " 76206 1,6"},
        {"Model": "A", "AI_Score": " 12 "},
        {"Model": "B", "AI_Score": "7"},
    ]
    table = read_table(written(json.dumps(raw)))
    assert (table.names, columns(table)) == (("A", "B"), {SCORE: [12, 7]})
    assert repaired(table) == {"junk after a score left out": 1, "model listed twice, the last counts": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"A": 5, "B": "x"}', "device \"B\": score 'x'"),
        ('{"A": 5, "B": -1}', "device \"B\": score '-1'"),
        ('[{"Model": "A", "AI_Score": "1,6"}]', "record 0: score '1,6' of 'A'"),
        ('[{"AI_Score": "5"}]', "record 0: score '5' of 'None'"),
        ('["AI_Score"', "damaged JSON"),
    ],
)
def test_damaged_scores(written, text, message):
    with pytest.raises(TraceError) as caught:
        read_table(written(text))
    assert message in str(caught.value)


def test_counts_of_the_ai_benchmark_files(recording):
    scores = read_table(recording("flash-devices/benchmark2score.json"), strict=True)
    raw = read_table(recording("flash-devices/raw_ai_benchmark_list.json"))
    names = read_table(recording("flash-devices/real2benchmark.json"), strict=True)
    assert (len(scores), np.median(scores.columns[SCORE])) == (307, 4638)
    assert dict(zip(raw.names, raw.columns[SCORE], strict=True)) == dict(
        zip(scores.names, scores.columns[SCORE], strict=True)
    )
    assert repaired(raw)["model listed twice, the last counts"] == 333 - 307
    assert (len(names), names.labels[BENCHMARK].count("")) == (772, 610)


def test_latencies_in_ns_with_negative_ones_at_zero(written):
    matrix = read_latency(written("0.0215,183.6055,1\n-0.5,0,2\n3,4,0.5\n"))
    assert matrix.ns.tolist() == [
        [21_500, 183_605_500, 10**6],
        [0, 0, 2 * 10**6],
        [3 * 10**6, 4 * 10**6, 500_000],
    ]
    assert repaired(matrix) == {"negative latency read as 0": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2,3\n1,2\n", "line 2: 2 columns (3, as above)"),
        ("1,2,3\n", "1 lines (as many lines as columns)"),
        ("1,2,3\n1,x,3\n1,2,3\n", "line 2, column 2: latency 'x'"),
        ("1,2,3\n1,--2,3\n1,2,3\n", "line 2, column 2: latency '-2'"),
    ],
)
def test_damaged_latencies(written, text, message):
    with pytest.raises(TraceError) as caught:
        read_latency(written(text))
    assert message in str(caught.value)


def test_counts_of_the_latency_file(recording):
    matrix = read_latency(recording("latency/latencies.txt"))
    assert len(matrix) == 227
    assert repaired(matrix) == {"negative latency read as 0": 51}
    assert matrix.ns.max() == 811_835_000
    assert (matrix.ns != matrix.ns.T).any()
    assert 0 < matrix.ns.diagonal().min() < matrix.ns.diagonal().max() == 27_610_000


def test_tables_refuse_columns_that_do_not_fit():
    one = np.array([1])
    with pytest.raises(TraceError, match="different lengths"):
        DeviceTable(("a", "b"), {"x": one})
    with pytest.raises(TraceError, match="one name"):
        DeviceTable(("a", "a"), {"x": np.array([1, 2])})
    with pytest.raises(TraceError, match="negative"):
        DeviceTable(("a",), {"x": -one})
    with pytest.raises(TraceError, match="not square"):
        Matrix(("a",), np.array([[1, 2]]))
    with pytest.raises(TraceError, match="negative time"):
        Matrix(("a",), np.array([[-1]]))

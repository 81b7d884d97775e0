"""CSV and Parquet tables: columns as inputs and labels, and what is said of tables that cannot be used."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_diabetes, load_wine

from fedactors.errors import ScenarioError, UsageError
from fedactors.simulation.prepare import prepare
from fedactors.simulation.runner import run
from tests.data.user.scenes import scene
from tests.laws.test_light_commands import PROBE

PEOPLE = """age,town,user,income
20,Rome,b,low
40,Oslo,a,high
60,Rome,b,low
30,Oslo,a,high
50,Rome,a,low
"""
TEST = "age,town,user,income\n10,Oslo,a,low\n70,Rome,b,high\n"
CSV = {"name": "csv", "train": "people.csv", "test": "test.csv", "label": "income", "categorical": ["town"]}
BY_USER = {"name": "natural", "by": "user"}


@pytest.fixture
def given(tmp_path):
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "test.csv").write_text(TEST)

    def made(partition="iid", count=2, **options):
        dataset = {key: value for key, value in (CSV | options).items() if value is not None}
        return scene(tmp_path, {"dataset": dataset, "model": "logistic", "partition": partition}, count)

    return made


def read(scenario):
    return scenario.task.info(scenario.seed, scenario.devices), scenario.task.load(scenario.seed, scenario.devices)


def test_numbers_are_standardised_by_the_training_part_and_categories_are_one_hot(given):
    info, data = read(given(BY_USER))
    mean, deviation = 40, np.sqrt(200)
    assert np.allclose(data.x[:, 0], (np.array([40, 30, 50, 20, 60]) - mean) / deviation)
    assert data.x[:, 1:].tolist() == [[1, 0], [1, 0], [0, 1], [0, 1], [0, 1]]
    assert np.allclose(data.test_x[:, 0], (np.array([10, 70]) - mean) / deviation)
    assert data.label_names == ("high", "low")
    assert data.y.tolist() == [0, 0, 1, 1, 1]
    assert (info.input_shape, info.classes, info.client_sizes.tolist()) == ((3,), 2, [3, 2])
    assert np.diff(data.test_clients).tolist() == [1, 1]


def test_numbers_can_stay_as_they_are_and_columns_be_chosen(given):
    _, data = read(given(features=["age"], categorical=[], standardize=False))
    assert data.x.tolist() == [[20], [40], [60], [30], [50]]


def test_a_number_that_is_the_same_in_every_row_is_not_scaled(tmp_path, given):
    """The deviation of a thousand times 0.1 is 1.4e-17 when computed, and 0 in truth."""
    (tmp_path / "people.csv").write_text("a,b,income\n" + "0.1,7,low\n" * 500 + "0.1,7,high\n" * 500)
    (tmp_path / "test.csv").write_text("a,b,income\n0.11,9,low\n")
    _, data = read(given(categorical=[]))
    assert np.allclose(data.x, 0, atol=1e-9)
    assert np.allclose(data.test_x, [[0.01, 2]])


def test_labels_that_are_texts_in_training_may_all_look_like_numbers_in_testing(tmp_path, given):
    (tmp_path / "people.csv").write_text("age,floor\n1,1\n2,2\n3,top\n4,1\n")
    (tmp_path / "test.csv").write_text("age,floor\n5,2\n6,1\n")
    _, data = read(given(label="floor", categorical=[]))
    assert data.label_names == ("1", "2", "top")
    assert data.test_y.tolist() == [1, 0]


ZIPS = "zip,user,y\n01,01,a\n02,02,b\nA1,A1,a\n"
FEWER = "zip,user,y\n01,02,a\n02,01,b\n"


@pytest.mark.parametrize("swapped", [False, True])
def test_categories_and_clients_are_texts_where_one_file_looks_like_numbers(tmp_path, given, swapped):
    """They were 1 and 2 in the file without A1: unknown categories, and clients that do not train."""
    files = (FEWER, ZIPS) if swapped else (ZIPS, FEWER)
    for name, text in zip(("people.csv", "test.csv"), files, strict=True):
        (tmp_path / name).write_text(text)
    options = {"label": "y", "categorical": ["zip"], "unknown": "zeros"}
    _, data = read(given(BY_USER, 2 if swapped else 3, **options))
    assert data.client_names == (("01", "02") if swapped else ("01", "02", "A1"))
    assert data.test_x.sum() == 2
    if not swapped:
        assert np.diff(data.test_clients).tolist() == [1, 1, 0]
        assert data.test_x.tolist() == [[0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize(("first", "second"), [("2", "2.0"), ("2.0", "2")])
def test_numbers_of_csv_files_are_the_same_where_their_values_are(tmp_path, given, first, second):
    """Categories and clients; 10 comes after 9 also where one file has decimal points."""
    rows = "zip,user,y\n{0},{0},a\n{1},{1},b\n{2},{2},a\n"
    for name, two in {"people.csv": first, "test.csv": second}.items():
        point = two[1:]
        (tmp_path / name).write_text(rows.format(two, f"9{point}", f"10{point}"))
    _, data = read(given(BY_USER, 3, label="y", categorical=["zip"]))
    assert data.client_names == ("2", "9", "10")
    assert np.diff(data.test_clients).tolist() == [1, 1, 1]
    assert np.array_equal(data.x, data.test_x)


def test_clients_that_are_numbers_in_both_files_come_by_number(tmp_path, given):
    (tmp_path / "people.csv").write_text("age,user,y\n1,10,a\n2,9,b\n")
    (tmp_path / "test.csv").write_text("age,user,y\n1,9,a\n")
    _, data = read(given(BY_USER, 2, label="y", categorical=[]))
    assert data.client_names == ("9", "10")
    assert np.diff(data.test_clients).tolist() == [1, 0]


def test_clients_of_a_function_may_be_numbers_in_training_and_texts_in_testing(tmp_path, given):
    (tmp_path / "data.py").write_text("def half(row):\n    return row['age'] // 40 if row['age'] != 70 else '1'\n")
    _, data = read(given({"name": "natural", "by": "data.py:half"}, 2, features=["age"], categorical=[]))
    assert data.client_names == ("0", "1")
    assert np.diff(data.test_clients).tolist() == [1, 1]


def test_clients_by_a_function_of_a_row(tmp_path, given):
    (tmp_path / "data.py").write_text("def decade(row):\n    return row['age'] // 20\n")
    info, data = read(given({"name": "natural", "by": "data.py:decade"}, 3, features=["age"], categorical=[]))
    assert data.client_names == ("1", "2", "3")
    assert info.client_sizes.tolist() == [2, 2, 1]


def test_a_share_is_kept_for_testing_at_each_client(tmp_path, given):
    rows = "".join(f"{i},{i % 3},{'xyz'[i % 3]}\n" for i in range(60))
    (tmp_path / "people.csv").write_text("age,label,user\n" + rows)
    options = {"test": None, "test_share": 0.25, "label": "label", "categorical": []}
    info, data = read(given(BY_USER, 3, **options))
    assert info.client_sizes.tolist() == [15, 15, 15]
    assert np.diff(data.test_clients).tolist() == [5, 5, 5]
    info, again = read(given("iid", 3, **options, features=["age"]))
    assert (info.train_size, info.test_size) == (45, 15)
    assert np.array_equal(again.x, read(given("iid", 3, **options, features=["age"]))[1].x)


def test_wine_from_parquet_trains(tmp_path):
    x, y = load_wine(return_X_y=True)
    names = [f"x{i}" for i in range(x.shape[1])]
    pq.write_table(pa.table({**dict(zip(names, x.T, strict=True)), "kind": y}), tmp_path / "wine.parquet")
    dataset = {"name": "parquet", "train": "wine.parquet", "label": "kind", "test_share": 0.3}
    task = {"dataset": dataset, "model": "logistic", "partition": "iid"}
    result = run(scene(tmp_path, task, rounds=20), tmp_path / "run", fleet="local", report=False)
    assert result.summary["final"]["accuracy"] > 0.9


def test_a_label_of_floats_is_a_value(tmp_path):
    x, y = load_diabetes(return_X_y=True)
    pq.write_table(pa.table({"a": x[:, 0], "b": x[:, 1], "progress": y}), tmp_path / "d.parquet")
    dataset = {"name": "parquet", "train": "d.parquet", "label": "progress", "test_share": 0.2}
    info, data = read(scene(tmp_path, {"dataset": dataset, "model": "logistic", "partition": "iid"}))
    assert (info.kind, info.outputs, data.y.dtype) == ("value", 1, np.float32)
    whole = dataset | {"label": "grade", "target": "value"}
    pq.write_table(pa.table({"a": x[:, 0], "grade": y.astype(int)}), tmp_path / "d.parquet")
    info, _ = read(scene(tmp_path, {"dataset": whole, "model": "logistic", "partition": "iid"}))
    assert info.kind == "value"


@pytest.mark.parametrize(
    ("options", "files", "message"),
    [
        ({"train": "gone.csv"}, {}, "gone.csv: no such file"),
        ({"label": "incme"}, {}, 'no column "incme"; did you mean "income"?'),
        ({"categorical": ["twn"]}, {}, 'no column "twn"; did you mean "town"?'),
        (
            {"categorical": []},
            {},
            "or list it under categorical: [town])",
        ),
        ({"features": ["age", "town", "income"]}, {}, '"income" is the label'),
        ({"features": ["age"]}, {}, '"town" is no input'),
        ({}, {"people.csv": PEOPLE.replace("40,", ",")}, 'people.csv: column "age", row 2: is empty, as 1 in all'),
        ({}, {"test.csv": TEST.replace("Oslo", "Lima")}, 'test.csv: column "town", row 1: "Lima" is not among the 2'),
        ({}, {"people.csv": "age,age\n1,2\n"}, 'two columns are called "age"'),
        ({}, {"people.csv": "age,town,user,income\n"}, "people.csv: has no rows"),
        ({}, {"people.csv": "age,town\n1,2,3\n"}, "people.csv cannot be read"),
        ({}, {"people.csv": PEOPLE.replace("40,", "nan,")}, 'column "age", row 2: found nan'),
        ({"name": "parquet"}, {}, "people.csv cannot be read"),
        ({}, {"test.csv": "town,user,income\nOslo,a,low\n"}, 'test.csv: no column "age"; accepted: income, town, user'),
        (
            {"target": "class"},
            {"people.csv": PEOPLE.replace("low", "0").replace("high", "1")},
            'labels of training samples are numbers, of test samples texts such as "low"',
        ),
        (
            {"target": "class"},
            {"test.csv": TEST.replace("low", "0").replace("high", "1")},
            'labels of training samples are texts such as "low", of test samples numbers',
        ),
        (
            {"target": "value"},
            {"people.csv": PEOPLE.replace("low", "0.5").replace("high", "1.5")},
            'labels of training samples are numbers, of test samples texts such as "low"',
        ),
        ({"test": None, "test_share": 0.01}, {}, "test_share: 0.01 of 5 samples is none"),
        ({"weights": "user"}, {}, 'column "user" holds string'),
    ],
)
def test_one_message_for_a_wrong_table(tmp_path, given, options, files, message):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(UsageError) as error:
        prepare(given(BY_USER, **options))
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_a_table_is_checked_without_torch(tmp_path, given):
    given(BY_USER)
    words = ["check", str(tmp_path / "small.yaml")]
    done = subprocess.run([sys.executable, "-c", PROBE, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "HEAVY []" in done.stderr


def test_unknown_categories_can_be_zeros(tmp_path, given):
    (tmp_path / "test.csv").write_text(TEST.replace("Oslo", "Lima"))
    _, data = read(given(BY_USER, unknown="zeros"))
    assert data.test_x[0, 1:].tolist() == [0, 0]


def test_either_a_test_file_or_a_share(given):
    with pytest.raises(ScenarioError, match="give either test, a file, or test_share"):
        given(test_share=0.5)


INDEX = pa.int8()
TOWNS = pa.array(["Rome", "Oslo", "Rome", "Bern"])
GRADES = [1, 2, 1, 3]


def parquet(folder, train, test):
    """Return the scenario of two Parquet files, each with a column of towns and one of grades."""
    for name, table in (("train", train), ("test", test)):
        pq.write_table(table, folder / f"{name}.parquet")
    dataset = {"name": "parquet", "train": "train.parquet", "test": "test.parquet", "label": "grade"}
    options = {"categorical": ["town"], "labels": "remap"}
    return scene(folder, {"dataset": dataset | options, "model": "logistic", "partition": "iid"}, 1)


def pair(town, grade):
    return pa.table({"town": town, "grade": grade})


def coded(values, categories, index=INDEX):
    """Return an array of categories in that order, as pandas writes a column of the type category."""
    places = pa.array([categories.index(value) for value in values], index)
    return pa.DictionaryArray.from_arrays(places, pa.array(categories))


HOT = [[0, 0, 1], [0, 1, 0], [0, 0, 1], [1, 0, 0]]  # of TOWNS, in the order Bern, Oslo, Rome
ALIKE = {
    "texts": pa.array(["Oslo", "Rome"]),
    "large texts": pa.array(["Oslo", "Rome"], pa.large_string()),
    "bytes": pa.array([b"Oslo", b"Rome"]),
    "another order": coded(["Oslo", "Rome"], ["Rome", "Oslo"]),
    "other categories": coded(["Oslo", "Rome"], ["Kyiv", "Oslo", "Rome", "Lima"], pa.int32()),
    "categories in large texts": coded(["Oslo", "Rome"], ["Rome", "Oslo"]).cast(
        pa.dictionary(pa.int16(), pa.large_string())
    ),
    "parts with unlike categories": pa.chunked_array([coded(["Oslo"], ["Oslo"]), coded(["Rome"], ["Lima", "Rome"])]),
}


@pytest.mark.parametrize("name", ALIKE)
@pytest.mark.parametrize(
    "train", [TOWNS, TOWNS.dictionary_encode(), coded(TOWNS.to_pylist(), ["Rome", "Bern", "Oslo"])]
)
def test_categories_of_two_files_are_the_same_where_their_values_are(train, name, tmp_path):
    _, data = read(parquet(tmp_path, pair(train, GRADES), pair(ALIKE[name], [1, 2])))
    assert data.x.tolist() == HOT
    assert data.test_x.tolist() == [[0, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("train", "test"),
    [
        (pa.array([1, 2, 3]), pa.array([2.0, 3.0])),
        (pa.array([1, 2, 3], pa.int8()), coded([2, 3], [3, 2])),
        (coded([1, 2, 3], [3, 2, 1]), coded([2.0, 3.0], [2.0, 3.0])),
        (pa.array([1.0, 2.0, 3.0]), pa.array([2, 3])),
        (pa.array(["1", "2", "3"]), pa.array([2, 3])),
    ],
)
def test_categories_that_are_numbers_are_the_same_where_their_values_are(train, test, tmp_path):
    _, data = read(parquet(tmp_path, pair(train, [1, 2, 1]), pair(test, [1, 2])))
    assert data.x.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert data.test_x.tolist() == [[0, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize("grades", [pa.array([3, 1]), coded([3, 1], [1, 2, 3]), coded([3, 1], [3, 1])])
@pytest.mark.parametrize("train", [pa.array(GRADES), coded(GRADES, [3, 2, 1]), coded(GRADES, [1, 2, 3, 4])])
def test_labels_of_two_files_are_the_same_where_their_values_are(train, grades, tmp_path):
    _, data = read(parquet(tmp_path, pair(TOWNS, train), pair(["Rome", "Bern"], grades)))
    assert (data.label_names, data.y.tolist(), data.test_y.tolist()) == (("1", "2", "3"), [0, 1, 0, 2], [2, 0])


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        (TOWNS, ["Rome", "Lima"], 'row 2: "Lima" is not among the 3 categories of the training data (accepted: those'),
        (
            TOWNS.dictionary_encode(),
            [1, 2],
            'row 1: "1" (int64) is not among the 3 categories of the training data (dictionary<',
        ),
        (
            TOWNS,
            pa.array(["Rome", None]).dictionary_encode(),
            'test.parquet: column "town", row 2: is empty, as 1 in all',
        ),
    ],
    ids=["another one", "of another type", "an empty one"],
)
def test_categories_that_training_does_not_know_are_told_with_their_types(train, test, message, tmp_path):
    with pytest.raises(UsageError) as error:
        read(parquet(tmp_path, pair(train, GRADES), pair(test, [1, 2])))
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_parts_of_a_file_may_have_unlike_categories(tmp_path):
    parts = [pair(coded(towns, towns), [1, 2]) for towns in (["Rome", "Oslo"], ["Bern", "Rome"])]
    with pq.ParquetWriter(tmp_path / "train.parquet", parts[0].schema) as file:
        for part in parts:
            file.write_table(part)
    dataset = {"name": "parquet", "train": "train.parquet", "test_share": 0.5, "label": "grade", "unknown": "zeros"}
    options = {"categorical": ["town"], "labels": "remap"}
    _, data = read(scene(tmp_path, {"dataset": dataset | options, "model": "logistic", "partition": "iid"}, 1))
    assert data.x.sum() == 2
    assert len(data.test_x) == 2

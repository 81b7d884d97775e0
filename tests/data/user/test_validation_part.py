"""Data of the user with a third part: functions, tables, folders and files of other libraries may bring validation."""

import numpy as np
import pytest

from fedactors.errors import UsageError
from fedactors.simulation.prepare import prepare
from fedactors.simulation.runner import load
from tests.data.user.scenes import scene
from tests.data.user.test_extras import HDF5, on_disk
from tests.data.user.test_image_folder import write as write_images
from tests.data.user.test_leaf import digits
from tests.data.user.test_leaf import write as write_leaf

FUNCTIONS = """
import numpy as np

X = np.arange(40, dtype=np.float32).reshape(20, 2)
Y = np.arange(20) % 4


def rows(first, end):
    return X[first:end], Y[first:end]


def pairs():
    return rows(0, 12), rows(12, 15), rows(15, 20)


def named():
    return {"validation": rows(15, 20), "train": rows(0, 12), "test": rows(12, 15)}


def items():
    return tuple([(x, int(y)) for x, y in zip(*part)] for part in pairs())


def by_client():
    train = {"b": rows(0, 6), "a": rows(6, 12)}
    return {"train": train, "test": {"a": rows(12, 15)}, "validation": {"b": rows(15, 17), "c": rows(17, 20)}}


def words():
    names = np.array(["cat", "dog", "eel", "fox"])
    return tuple((x, names[y]) for x, y in pairs())


def values():
    return tuple((x, y + 0.5) for x, y in pairs())


def shifted():
    return tuple((x, y + 3) for x, y in pairs())


def two():
    return rows(0, 12), rows(12, 15)


def wrong_shape():
    return rows(0, 12), rows(12, 15), (X[15:20, :1], Y[15:20])


def wrong_number():
    x = X[15:20].copy()
    x[1, 0] = np.nan
    return rows(0, 12), rows(12, 15), (x, Y[15:20])


def wrong_label():
    return rows(0, 12), rows(12, 15), (X[15:20], [0, 1, 2, 3, 9])


def wrong_kind():
    return rows(0, 12), rows(12, 15), (X[15:20], ["a"] * 5)


def empty():
    return rows(0, 12), rows(12, 15), []
"""
X = np.arange(40, dtype=np.float32).reshape(20, 2)
LOGISTIC = {"model": "logistic", "partition": "iid"}


@pytest.fixture
def given(tmp_path):
    (tmp_path / "data.py").write_text(FUNCTIONS)

    def made(function, task=LOGISTIC, count=2, **options):
        dataset = {"name": "torch", "factory": f"data.py:{function}", **options}
        return scene(tmp_path, {"dataset": dataset, **task}, count)

    return made


def read(scenario):
    return scenario.task.info(0, scenario.devices), scenario.task.load(0, scenario.devices)


@pytest.mark.parametrize("function", ["pairs", "named", "items", "by_client"])
def test_a_function_returns_a_third_part(given, function):
    info, data = read(given(function))
    assert (info.train_size, info.test_size, info.validation_size) == (12, 3, 5)
    assert data.validation_x.tolist() == X[15:].tolist()
    assert data.validation_y.tolist() == [3, 0, 1, 2, 3]
    assert data.test_x.tolist() == X[12:15].tolist()
    _, _, tests, _ = load(prepare(given(function)))
    assert tests.validation.x.tolist() == X[15:].tolist()


def test_clients_of_the_third_part_need_not_train(given):
    info, data = read(given("by_client", {"model": "logistic", "partition": "natural"}))
    assert info.client_sizes.tolist() == [6, 6]
    assert data.client_names == ("a", "b")
    assert info.validation_size == 5


def test_labels_are_numbered_over_all_parts(given):
    _, data = read(given("words"))
    assert data.label_names == ("cat", "dog", "eel", "fox")
    assert data.validation_y.tolist() == [3, 0, 1, 2, 3]
    _, data = read(given("shifted", labels="remap"))
    assert data.validation_y.tolist() == [3, 0, 1, 2, 3]
    info, data = read(given("values", LOGISTIC | {"loss": "mse"}))
    assert info.kind == "value"
    assert data.validation_y.tolist() == [3.5, 0.5, 1.5, 2.5, 3.5]


def test_data_with_two_parts_have_none(given):
    info, data = read(given("two"))
    assert (info.validation_size, data.validation_x, data.validation_y) == (0, None, None)


WRONG = {
    "wrong_shape": "training samples have an input of shape (2,), validation samples an input of shape (1,)",
    "wrong_number": "validation sample 1, input: found nan (accepted: finite numbers)",
    "wrong_label": "labels: found 0 to 9 but no 4",
    "wrong_kind": "labels of training samples are numbers, of validation samples texts",
    "empty": "validation: has no samples (accepted: at least one)",
}


@pytest.mark.parametrize("function", WRONG)
def test_one_message_for_a_wrong_third_part(given, function):
    with pytest.raises(UsageError) as error:
        prepare(given(function))
    assert WRONG[function] in str(error.value)


def test_a_third_part_and_a_share_are_two_answers(given):
    with pytest.raises(UsageError, match=r"task.validation: found 0.5, and the data have a part for validation"):
        prepare(given("pairs", LOGISTIC | {"validation": 0.5}))


PEOPLE = "age,town,user,income\n20,Rome,b,low\n40,Oslo,a,high\n60,Rome,b,low\n30,Oslo,a,high\n50,Rome,a,low\n"


@pytest.mark.parametrize("test", [{"test": "test.csv"}, {"test_share": 0.25}], ids=str)
@pytest.mark.parametrize("partition", ["iid", {"name": "natural", "by": "user"}], ids=str)
def test_a_table_has_a_file_for_validation(tmp_path, test, partition):
    """Ages are standardised by the training part, whichever rows it has: at ages 10 and 70 the same line is met."""
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "test.csv").write_text("age,town,user,income\n10,Oslo,a,low\n")
    (tmp_path / "aside.csv").write_text("age,town,user,income\n10,Oslo,z,low\n70,Rome,b,high\n40,Rome,b,high\n")
    dataset = {"name": "csv", "train": "people.csv", "label": "income", "categorical": ["town"], **test}
    dataset |= {"validation": "aside.csv", "client": "user"}
    info, data = read(scene(tmp_path, {"dataset": dataset, "model": "logistic", "partition": partition}, 2))
    assert (info.validation_size, data.validation_y.tolist()) == (3, [1, 0, 0])
    assert data.validation_x[:, 1:].tolist() == [[1, 0], [0, 1], [0, 1]]
    ages = data.validation_x[:, 0]
    assert ages[2] - ages[0] == pytest.approx(ages[1] - ages[2], rel=1e-5)
    if "test" in test:
        assert ages[0] == pytest.approx((10 - 40) / np.sqrt(200), rel=1e-5)


def test_clients_of_a_file_for_validation_do_not_change_the_order_of_those_that_train(tmp_path):
    """Numbers stay numbers, 9 before 10, also where validation samples belong to z."""
    for name, users in {"people.csv": (10, 9), "test.csv": (10, 9), "aside.csv": ("z", "z")}.items():
        (tmp_path / name).write_text("age,user,y\n1,{},a\n2,{},b\n".format(*users))
    dataset = {"name": "csv", "train": "people.csv", "test": "test.csv", "label": "y", "validation": "aside.csv"}
    task = {"dataset": dataset, "model": "logistic", "partition": {"name": "natural", "by": "user"}}
    _, data = read(scene(tmp_path, task, 2))
    assert data.client_names == ("9", "10")
    assert np.diff(data.test_clients).tolist() == [1, 1]


def test_a_table_for_validation_must_have_the_columns(tmp_path):
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "aside.csv").write_text("age,user,income\n10,z,low\n")
    dataset = {"name": "csv", "train": "people.csv", "label": "income", "test_share": 0.25, "validation": "aside.csv"}
    with pytest.raises(UsageError, match=r'aside.csv: no column "town"'):
        prepare(scene(tmp_path, {"dataset": dataset | {"categorical": ["town"]}, **LOGISTIC}, 2))


def test_a_folder_of_images_has_one_for_validation(tmp_path):
    for which, count in (("train", 3), ("test", 2), ("validation", 1)):
        write_images(tmp_path / "birds" / which, "wren", count, first=7)
        write_images(tmp_path / "birds" / which, "robin", count, first=100)
    task = {"dataset": {"name": "image_folder", "path": "birds"}, **LOGISTIC}
    info, data = read(scene(tmp_path, task, 2))
    assert (info.train_size, info.test_size, info.validation_size) == (6, 4, 2)
    assert np.allclose(data.validation_x[:, 0, 0, 0] * 255, [100, 7])
    assert data.validation_y.tolist() == [0, 1]
    task["transform"] = {"test": [{"name": "Normalize", "mean": [0.5], "std": [0.5]}]}
    _, turned = read(scene(tmp_path, task, 2))
    assert np.allclose(turned.validation_x, 2 * data.validation_x - 1)
    write_images(tmp_path / "birds" / "validation", "crow", 1)
    with pytest.raises(UsageError, match='no training image is in a folder "crow", validation images are'):
        prepare(scene(tmp_path, task, 2))


def test_leaf_has_a_folder_for_validation(tmp_path):
    write_leaf(tmp_path, "train", {"f1_02": digits(5, 2), "f0_01": digits(3, 1)})
    for which, first in (("test", 3), ("validation", 4)):
        write_leaf(tmp_path, which, {user: digits(2, first) for user in ("f0_01", "f1_02")})
    task = {"dataset": {"name": "leaf", "path": "leaf"}, "model": "logistic", "partition": "natural"}
    info, data = read(scene(tmp_path, task, 2))
    assert (info.test_size, info.validation_size) == (4, 4)
    assert np.allclose(data.validation_x[:2], digits(2, 4)[0])


def test_tff_has_a_file_for_validation(tmp_path):
    h5py = pytest.importorskip("h5py", reason="the extra tff is not installed")
    for which, count in (("train", 4), ("test", 2), ("aside", 3)):
        with h5py.File(tmp_path / f"{which}.h5", "w") as file:
            group = file.create_group("examples/one")
            group["pixels"], group["label"] = np.full((count, 4), count, np.float32), np.arange(count) % 2
    task = {"dataset": HDF5 | {"validation": "aside.h5"}, "model": "logistic", "partition": "natural"}
    info, data = read(scene(tmp_path, task, 1))
    assert (info.test_size, info.validation_size) == (2, 3)
    assert (data.validation_x == 3).all()


@pytest.mark.parametrize(
    ("options", "found"),
    [({}, (8, 8)), ({"validation_part": "other"}, (8, 0)), ({"test_part": "validation"}, (8, 0))],
    ids=str,
)
def test_saved_datasets_have_a_part_for_validation(tmp_path, options, found):
    on_disk(tmp_path, ("train", "test", "validation"))
    dataset = {"name": "hugging_face", "path": "saved", "inputs": ["tokens"], **options}
    info, _ = read(scene(tmp_path, {"dataset": dataset, **LOGISTIC}, 2))
    assert (info.test_size, info.validation_size) == found, "what a run tests on is not for validation"

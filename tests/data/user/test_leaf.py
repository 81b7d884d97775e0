"""LEAF's JSON, written in its format by the tests: FEMNIST's pixels and Shakespeare's characters."""

import json

import numpy as np
import pytest

from fedactors.data.user.leaf import LETTERS
from fedactors.errors import UsageError
from fedactors.simulation.prepare import prepare
from fedactors.simulation.runner import run
from tests.data.user.scenes import scene


def write(folder, which, users, name="all_data_0.json"):
    """Write users as LEAF does: {user: (x, y)}."""
    (folder / "leaf" / which).mkdir(parents=True, exist_ok=True)
    content = {
        "users": list(users),
        "num_samples": [len(y) for _, y in users.values()],
        "user_data": {user: {"x": x, "y": y} for user, (x, y) in users.items()},
    }
    (folder / "leaf" / which / name).write_text(json.dumps(content))


def digits(count, first):
    draws = np.random.default_rng(first)
    return draws.random((count, 784)).round(3).tolist(), [(first + i) % 4 for i in range(count)]


def given(folder, count=3, partition="natural", model="logistic", **options):
    dataset = {"name": "leaf", "path": "leaf", **options}
    return scene(folder, {"dataset": dataset, "model": model, "partition": partition}, count)


@pytest.fixture
def femnist(tmp_path):
    write(tmp_path, "train", {"f1_02": digits(5, 2), "f0_01": digits(3, 1)})
    write(tmp_path, "train", {"f2_03": digits(4, 0)}, "all_data_1.json")
    write(tmp_path, "test", {user: digits(2, 3) for user in ("f0_01", "f1_02", "f2_03")})
    return tmp_path


def test_users_are_clients_in_the_order_of_their_names(femnist):
    scenario = given(femnist, shape=[1, 28, 28])
    info, data = scenario.task.info(0, 3), scenario.task.load(0, 3)
    assert data.client_names == ("f0_01", "f1_02", "f2_03")
    assert info.client_sizes.tolist() == [3, 5, 4]
    assert info.input_shape == (1, 28, 28)
    assert np.allclose(data.x[0].ravel(), digits(3, 1)[0][0])
    assert data.y[:3].tolist() == digits(3, 1)[1]
    assert np.diff(data.test_clients).tolist() == [2, 2, 2]


def test_a_byte_order_mark_is_no_part_of_a_file(femnist):
    for file in femnist.rglob("*.json"):
        file.write_text("\ufeff" + file.read_text(), encoding="utf-8")
    scenario = given(femnist, shape=[1, 28, 28])
    assert scenario.task.load(0, 3).client_names == ("f0_01", "f1_02", "f2_03")


def test_shakespeare_is_characters_and_the_next_one(tmp_path):
    said = "To be, or not to be"
    part = {"HAMLET": ([said[i : i + 8] for i in range(5)], [said[i + 8] for i in range(5)])}
    write(tmp_path, "train", part)
    write(tmp_path, "test", part)
    (tmp_path / "nets.py").write_text(
        "from torch import nn\n"
        "def net():\n    return nn.Sequential(nn.Embedding(80, 4), nn.Flatten(), nn.Linear(32, 80))\n"
    )
    scenario = given(tmp_path, 1, model={"name": "torch", "factory": "nets.py:net"})
    info, data = scenario.task.info(0, 1), scenario.task.load(0, 1)
    assert len(LETTERS) == 80
    assert info.inputs[0].integer
    assert "".join(LETTERS[int(code)] for code in data.x[1]) == said[1:9]
    assert LETTERS[data.y[1]] == said[9]
    assert run(scenario, tmp_path / "run", fleet="local", report=False).summary["final"]["loss"] > 0


def test_test_users_that_do_not_train_are_tested_on(femnist):
    write(femnist, "test", {"new": digits(2, 3)})
    data = given(femnist).task.load(0, 3)
    assert data.test_clients is None
    assert len(data.test_y) == 2


@pytest.mark.parametrize(
    ("spoil", "options", "message"),
    [
        (lambda leaf: (leaf / "test/all_data_0.json").unlink(), {}, "leaf/test has no .json file"),
        (lambda leaf: (leaf / "test/all_data_0.json").write_text("{"), {}, "all_data_0.json cannot be read"),
        (lambda leaf: (leaf / "test/all_data_0.json").write_text('{"users": ["a"]}'), {}, "found no 'user_data'"),
        (lambda leaf: write(leaf.parent, "train", {"f0_01": digits(1, 1)}, "b.json"), {}, "is in another file too"),
        (lambda leaf: write(leaf.parent, "train", {"a": ([[1.0]], [0])}, "b.json"), {}, "have the shape"),
        (lambda leaf: write(leaf.parent, "train", {"a": ([[1.0]], [0, 1])}, "b.json"), {}, "(accepted: as many)"),
        (lambda leaf: None, {"partition": {"name": "natural", "by": "user"}}, "LEAF's data come by user"),
        (lambda leaf: None, {"count": 4}, "comes from 3 clients, found 4"),
        (lambda leaf: None, {"shape": [1, 20, 20]}, "cannot become (1, 20, 20)"),
    ],
)
def test_one_message_for_wrong_files(femnist, spoil, options, message):
    spoil(femnist / "leaf")
    with pytest.raises(UsageError) as error:
        prepare(given(femnist, **options))
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1

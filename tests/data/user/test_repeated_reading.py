"""Samples that are random at each reading are refused, whatever the reading takes and in whatever part they are."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from fedactors.data.user import user_data
from fedactors.data.user.repeated_reading import spread
from fedactors.errors import DataError
from fedactors.simulation.checks.check import check
from fedactors.simulation.prepare import prepare
from tests.data.user.scenes import scene

DATA = """
import torch
from sklearn.datasets import load_digits

FOUND = load_digits()

class Images(torch.utils.data.Dataset):
    def __init__(self, rows, transform=None):
        self.x = torch.tensor(FOUND.images[rows, None] / 16, dtype=torch.float32)
        self.y, self.transform = FOUND.target[rows], transform
    def __len__(self):
        return len(self.y)
    def __getitem__(self, row):
        return (self.transform(self.x[row]) if self.transform else self.x[row]), int(self.y[row])

def noisy(x):
    return x + torch.randn_like(x)

def plain():
    return Images(slice(0, 300)), Images(slice(300, 400))
def of_train():
    return Images(slice(0, 300), noisy), Images(slice(300, 400))
def of_test():
    return Images(slice(0, 300)), Images(slice(300, 400), noisy)
def by_client():
    return [Images(slice(0, 30)), Images(slice(30, 60), noisy)], [Images(slice(60, 90)), Images(slice(90, 120))]
def many_clients():
    train = {k: Images(slice(k, k + 2), noisy) for k in range(200)}
    return train, dict.fromkeys(range(200), Images(slice(300, 301)))

class Scaled(Images):
    def __getitem__(self, row):
        self.x[row] /= 2
        return self.x[row], int(self.y[row])
def in_place():
    return Scaled(slice(0, 20)), Images(slice(20, 30))

class Guessed(Images):
    def __getitem__(self, row):
        return self.x[row], int(torch.randint(10, ()))
def labels():
    return Guessed(slice(0, 60)), Images(slice(60, 90))
"""


@pytest.fixture
def given(tmp_path):
    (tmp_path / "aug.py").write_text(DATA)

    def made(function, partition="iid", clients=4):
        dataset = {"name": "torch", "factory": f"aug.py:{function}", "classes": 10}
        return scene(tmp_path, {"dataset": dataset, "model": "logistic", "partition": partition}, clients)

    return made


@pytest.mark.parametrize(
    ("function", "where"),
    [("of_train", "train sample 0"), ("of_test", "test sample 0"), ("in_place", "train sample 0")],
)
def test_inputs_that_are_random_are_refused_with_the_sample(given, function, where):
    with pytest.raises(DataError, match=rf"aug\.py:{function}: {where}: its input differs") as found:
        prepare(given(function))
    assert "random transforms go into task.transform with variants" in str(found.value)
    assert "forward, if self.training" in str(found.value)


def test_check_refuses_them_too_where_the_reading_takes_long(given, monkeypatch):
    monkeypatch.setattr(user_data, "time", SimpleNamespace(perf_counter=itertools.count(0, 10).__next__))
    with pytest.raises(DataError, match="its input differs when the sample is read again"):
        check(given("of_train"))


def test_labels_that_are_random_are_refused(given):
    with pytest.raises(DataError, match=r"train sample \d+: its label differs"):
        prepare(given("labels"))


@pytest.mark.parametrize(
    ("function", "clients", "where"), [("by_client", 2, "client 1"), ("many_clients", 200, "client")]
)
def test_data_by_client_are_read_again_too(given, function, clients, where):
    with pytest.raises(DataError, match=rf"aug\.py:{function}: train: {where}[ \d]* sample \d+: its input"):
        prepare(given(function, "natural", clients))


def test_data_that_are_the_same_at_each_reading_are_sound(given):
    assert prepare(given("plain")).info.train_size == 300


@pytest.mark.parametrize(
    ("count", "wanted"), [(1, 64), (2, 64), (64, 64), (65, 64), (1000, 64), (10, 3), (10, 1), (5, 0)]
)
def test_the_samples_that_are_compared_are_spread_over_the_part(count, wanted):
    found = spread(count, wanted)
    assert len(found) == min(count, wanted)
    assert found == sorted(set(found))
    assert not found or set(found) <= set(range(count))
    if wanted > 1:
        assert (found[0], found[-1]) == (0, count - 1)
        assert np.diff(found, prepend=found[0]).max() <= np.ceil(count / min(count, wanted)) + 1

import os
import struct
from pathlib import Path

import numpy as np
import pytest

from fedactors.data.base import Data, Info, verified
from fedactors.data.sets.digits import Digits
from fedactors.data.sets.mnist import VARIABLE, Mnist
from fedactors.data.sets.ratings import ClusteredRatings
from fedactors.data.sets.synthetic_data import SyntheticData
from fedactors.data.user.table_data import TableData
from fedactors.errors import DataError
from fedactors.starters.starter_dataset import StarterDataset

REPOSITORY = Path(__file__).parents[2]
SHARED = Path(os.environ.get("FEDACTORS_SHARED", REPOSITORY.parent / "shared")) / "data"
real_mnist = pytest.mark.skipif(
    not (SHARED / "MNIST" / "raw").is_dir(),
    reason=f"no MNIST in {SHARED}; FEDACTORS_SHARED names the folder above it",
)


def test_digits_are_what_they_announce():
    info, data = Digits().info(0, 1), Digits().load(0, 1)
    assert data.x.shape == (info.train_size, *info.input_shape) == (1437, 1, 8, 8)
    assert data.test_x.shape == (info.test_size, *info.input_shape) == (360, 1, 8, 8)
    assert data.x.dtype == data.test_x.dtype == np.float32
    assert data.y.dtype == data.test_y.dtype == np.int64
    assert (data.x.min(), data.x.max()) == (0, 1)
    assert data.clients is data.test_clients is None


@pytest.mark.parametrize(
    "made",
    [
        lambda folder: Digits(),
        lambda folder: StarterDataset(),
        lambda folder: SyntheticData(),
        lambda folder: ClusteredRatings(users=20),
        lambda folder: rows(folder, test=table(folder, "b.csv", 7)),
        lambda folder: rows(folder, test_share=0.4),
    ],
    ids=["digits", "starter", "synthetic", "ratings", "files", "share of a file"],
)
def test_whether_the_seed_makes_other_test_samples_is_known_of_the_data(made, tmp_path):
    data = made(tmp_path)
    found = [data.load(seed, 12) for seed in (0, 1)]
    same = all(np.array_equal(*(getattr(one, part) for one in found)) for part in ("test_x", "test_y"))
    assert data.info(0, 12).tests_by_seed is not same


def table(folder, name, rows):
    path = folder / name
    path.write_text("a,label\n" + "".join(f"{k},{k % 2}\n" for k in range(rows)))
    return str(path)


def rows(folder, **test):
    return TableData(name="csv", train=table(folder, "a.csv", 20), label="label", **test)


def test_digits_keep_a_fifth_of_each_class_for_testing():
    data = Digits().load(0, 1)
    train, test = (np.bincount(y, minlength=10) for y in (data.y, data.test_y))
    assert (np.abs(test - (train + test) / 5) < 1).all()


def test_digits_of_two_loads_are_the_same_and_all_images_are_there():
    from sklearn.datasets import load_digits

    one, two = Digits().load(0, 1), Digits().load(9, 100)
    assert np.array_equal(one.x, two.x)
    assert np.array_equal(one.test_y, two.test_y)
    ours = np.concatenate([one.x, one.test_x]).reshape(-1, 64)
    theirs = (load_digits().data / 16).astype(np.float32)
    assert sorted(map(bytes, ours)) == sorted(map(bytes, theirs))


@real_mnist
def test_mnist_is_what_it_announces():
    option = Mnist(root=str(SHARED), test_limit=100)
    option.check()
    info, data = option.info(0, 1), option.load(0, 1)
    assert data.x.shape == (60_000, 1, 28, 28) == (info.train_size, *info.input_shape)
    assert data.test_x.shape == (100, 1, 28, 28)
    assert (data.x.dtype, data.y.dtype) == (np.float32, np.int64)
    assert (data.x.min(), data.x.max()) == (0, 1)
    assert data.test_y[:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]


@pytest.mark.slow
@real_mnist
def test_mnist_is_found_through_the_environment_and_pools(monkeypatch):
    monkeypatch.setenv(VARIABLE, str(SHARED))
    fine, coarse = Mnist(test_limit=3).load(0, 1), Mnist(test_limit=3, pool=2).load(0, 1)
    assert coarse.test_x.shape == (3, 1, 14, 14)
    square = fine.test_x[1, 0, 10:12, 14:16]
    assert coarse.test_x[1, 0, 5, 7] == pytest.approx(square.mean(), abs=1e-6)


def test_mnist_says_what_it_looked_for_and_how_to_set_it(monkeypatch, tmp_path):
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(DataError, match=r'no folder given; set "root" .* FEDACTORS_DATA .*MNIST/raw'):
        Mnist().check()
    (tmp_path / "MNIST" / "raw").mkdir(parents=True)
    (tmp_path / "MNIST" / "raw" / "train-images-idx3-ubyte").touch()
    with pytest.raises(DataError, match=r"raw has no train-labels-idx1-ubyte, t10k-images-idx3-ubyte, "):
        Mnist(root=str(tmp_path)).load(0, 1)


def test_mnist_sizes_are_known_without_any_file():
    info = Mnist(root="/nowhere", pool=2, test_limit=50).info(0, 1)
    assert (info.train_size, info.test_size, info.input_shape) == (60_000, 50, (1, 14, 14))
    assert sum(info.class_counts) == info.train_size


def idx(array):
    """Return the bytes of a file in the IDX format: 0 0 type rank, big-endian lengths, data."""
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.astype(np.uint8).tobytes()


def folder(path, images, labels):
    raw = path / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for part in ("train", "t10k"):
        (raw / f"{part}-images-idx3-ubyte").write_bytes(images)
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(labels)
    return str(path)


def test_files_of_another_size_are_refused(tmp_path):
    root = folder(tmp_path, idx(np.zeros((5, 28, 28))), idx(np.zeros(5)))
    with pytest.raises(DataError, match=r'"mnist": training samples: found 5, accepted 60000'):
        Mnist(root=root).load(0, 1)


def test_broken_files_are_told_with_their_folder(tmp_path):
    root = folder(tmp_path, idx(np.zeros((5, 28, 28)))[:-9], idx(np.zeros(5)))
    with pytest.raises(DataError, match=r"MNIST in .*raw cannot be read: "):
        Mnist(root=root).load(0, 1)


def test_data_that_differ_from_what_was_announced_are_refused():
    x, y = np.zeros((3, 2), dtype=np.float32), np.array([0, 1, 1])
    data = Data(x, y, x, y, classes=2)
    assert verified(data, Info("toy", 3, 3, (2,), 2, (1, 2))) is data
    for info, message in [
        (Info("toy", 3, 3, (2,), 2, (2, 1)), r"of each class: found \(1, 2\), accepted \(2, 1\)"),
        (Info("toy", 3, 2, (2,), 2), "test samples: found 3, accepted 2"),
        (Info("toy", 3, 3, (4,), 2), r"training images: found \(3, 2\), accepted \(3, 4\)"),
    ]:
        with pytest.raises(DataError, match=message):
            verified(data, info)

"""Image data sets that torchvision reads; the files are the originals where they are here, else in their format."""

import hashlib
import pickle

import numpy as np
import pytest
import scipy.io
from torchvision import datasets

from fedactors.data.sets.mnist import Mnist
from fedactors.data.sets.torchvision_sets import TorchvisionImages
from fedactors.errors import DataError

NAMES = ("fashion_mnist", "kmnist", "cifar100", "svhn", "stl10")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fashion_mnist", "kmnist"])
def test_idx_files_are_read_as_mnist_s_are(shared, tmp_path, name):
    folder = {"fashion_mnist": "FashionMNIST", "kmnist": "KMNIST"}[name]
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "raw").symlink_to(shared / "data/MNIST/raw")  # files of the same format
    found = TorchvisionImages(name=name, root=str(tmp_path), test_limit=50)
    x, y = next(found.sources(tmp_path)).read(lambda labels: np.arange(50), train=False)
    digits = Mnist(root=str(shared / "data"), test_limit=50).load(0, 1)
    assert np.array_equal(x.astype(np.float32) / 255, digits.test_x)
    assert np.array_equal(y, digits.test_y)


def test_cifar100_is_read(tmp_path, monkeypatch):
    pixels = np.arange(4 * 3072, dtype=np.uint8).reshape(4, 3072)
    folder = tmp_path / "cifar-100-python"
    folder.mkdir()
    for name in ("train", "test"):
        (folder / name).write_bytes(pickle.dumps({"data": pixels, "fine_labels": [0, 5, 99, 3]}))
    (folder / "meta").write_bytes(pickle.dumps({"fine_label_names": [str(i) for i in range(100)]}))
    md5 = {name: hashlib.md5((folder / name).read_bytes()).hexdigest() for name in ("train", "test", "meta")}
    monkeypatch.setattr(datasets.CIFAR100, "train_list", [["train", md5["train"]]])
    monkeypatch.setattr(datasets.CIFAR100, "test_list", [["test", md5["test"]]])
    monkeypatch.setattr(datasets.CIFAR100, "meta", {**datasets.CIFAR100.meta, "md5": md5["meta"]})
    source = next(TorchvisionImages(name="cifar100").sources(tmp_path))
    x, y = source.read(lambda labels: np.array([1, 2]), train=True)
    assert np.array_equal(x.reshape(2, 3072), pixels[[1, 2]])
    assert y.tolist() == [5, 99]


def test_svhn_is_read_and_its_zeros_are_zeros(tmp_path, monkeypatch):
    pixels = np.arange(32 * 32 * 3 * 2, dtype=np.int64).reshape(32, 32, 3, 2).astype(np.uint8)
    scipy.io.savemat(tmp_path / "train_32x32.mat", {"X": pixels, "y": np.array([[10], [1]])})
    md5 = hashlib.md5((tmp_path / "train_32x32.mat").read_bytes()).hexdigest()
    monkeypatch.setattr(datasets.SVHN, "split_list", {"train": ["", "train_32x32.mat", md5]})
    x, y = next(TorchvisionImages(name="svhn").sources(tmp_path)).read(lambda labels: np.arange(2), train=True)
    assert np.array_equal(x, pixels.transpose(3, 2, 0, 1))
    assert y.tolist() == [0, 1]


@pytest.mark.parametrize("name", NAMES)
def test_sizes_are_known_without_files(name):
    info = TorchvisionImages(name=name).info(0, 1)
    assert sum(info.class_counts) == info.train_size
    assert len(info.class_counts) == info.classes


@pytest.mark.parametrize("name", NAMES)
def test_one_message_where_files_lack_or_are_others(name, tmp_path, monkeypatch):
    monkeypatch.setenv("FEDACTORS_DATA", str(tmp_path))
    data = TorchvisionImages(name=name)
    with pytest.raises(DataError, match=f"{name}: .* has none of its files; set") as error:
        data.check()
    assert data.accepted() in str(error.value)
    for place in ("FashionMNIST/raw", "KMNIST/raw", "cifar-100-python", "train_32x32.mat", "stl10_binary"):
        (tmp_path / place).mkdir(parents=True)
    with pytest.raises(DataError, match="accepted: the original files") as error:
        data.load(0, 1)
    assert len(str(error.value).splitlines()) == 1

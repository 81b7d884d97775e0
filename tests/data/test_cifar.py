import hashlib
import pickle

import numpy as np
import pytest

from fedactors.data.sets.cifar import Cifar10, PickledCifar10
from fedactors.errors import DataError
from tests.data.test_datasets import SHARED
from tests.data.test_images import pictures, real_cifar


@pytest.mark.slow
@real_cifar
def test_the_real_cifar10_is_decoded_in_colour():
    option = Cifar10(root=str(SHARED / "cifar10"), train_limit=10_100, test_limit=50)
    info, data = option.info(0, 1), option.load(0, 1)
    assert data.x.shape == (10_100, 3, 32, 32)  # the second file begins at 10,000
    assert data.test_y.tolist() == [*range(10)] * 5
    assert info.class_counts == (1010,) * 10
    sky = data.x[data.y == 0][:, :, :8].mean(axis=(0, 2, 3))
    assert sky[2] > sky[0]  # aeroplanes fly in the blue


@real_cifar
def test_sizes_of_the_real_cifar10_are_the_published_ones():
    assert Cifar10(root=str(SHARED)).info(0, 1) == Cifar10(root="/nowhere").info(0, 1)


def write_pickles(root, images, labels):
    """Write CIFAR-10's files: rows of red, green and blue planes. Python 2's keys are read as str."""
    folder = root / "cifar-10-batches-py"
    folder.mkdir()
    parts = [f"data_batch_{i}" for i in range(1, 6)]
    for name, rows in zip(
        [*parts, "test_batch"], [*np.array_split(np.arange(len(labels)), 5), np.arange(2)], strict=True
    ):
        batch = {"data": images[rows].reshape(len(rows), -1), "labels": labels[rows].tolist()}
        (folder / name).write_bytes(pickle.dumps(batch, protocol=2))
    (folder / "batches.meta").write_bytes(pickle.dumps({"label_names": ["x"] * 10}, protocol=2))
    return folder


@pytest.fixture
def pickles(tmp_path, monkeypatch):
    """Return small files of CIFAR-10's format, whose checksums torchvision is told, with their content."""
    from torchvision.datasets import CIFAR10

    images, labels = pictures(15, 32, 3), np.arange(15) % 10
    folder = write_pickles(tmp_path, images, labels)

    def checksum(name):
        return hashlib.md5((folder / name).read_bytes()).hexdigest()

    for attribute in ("train_list", "test_list"):
        names = [name for name, _ in getattr(CIFAR10, attribute)]
        monkeypatch.setattr(CIFAR10, attribute, [[name, checksum(name)] for name in names])
    monkeypatch.setattr(CIFAR10, "meta", {**CIFAR10.meta, "md5": checksum("batches.meta")})
    return tmp_path, images, labels


def test_pickled_cifar10_is_read_as_planes(pickles):
    root, images, labels = pickles
    pixels, found = PickledCifar10(root).read(lambda labels: np.flatnonzero(labels < 4), train=True)
    assert np.array_equal(pixels, images[labels < 4])
    assert found.tolist() == labels[labels < 4].tolist()


def test_cifar10_of_another_size_is_refused(pickles):
    root, _, _ = pickles
    with pytest.raises(DataError, match=r'"cifar10": training samples: found 15, accepted 50000'):
        Cifar10(root=str(root)).load(0, 1)


def test_a_changed_pickle_is_named_and_not_opened(tmp_path, pickles):
    folder = tmp_path / "cifar-10-batches-py"
    (folder / "data_batch_3").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    with pytest.raises(DataError, match=r"cifar-10-batches-py/data_batch_3: .*; accepted: the original"):
        Cifar10(root=str(tmp_path)).load(0, 1)


def test_a_missing_pickle_is_named(tmp_path):
    write_pickles(tmp_path, pictures(5, 32, 3), np.arange(5))
    (tmp_path / "cifar-10-batches-py" / "test_batch").unlink()
    with pytest.raises(DataError, match=r"cifar-10-batches-py has no test_batch"):
        Cifar10(root=str(tmp_path)).check()

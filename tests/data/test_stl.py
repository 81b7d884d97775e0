import numpy as np
import pytest

from fedactors.data.base import Data
from fedactors.data.partitions.assignment import Split
from fedactors.data.server.stl import Stl10ServerData
from fedactors.data.sets.cifar import LABELS, Cifar10
from fedactors.errors import DataError, ScenarioError

NAMES = ("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")
EACH = 4
NOBODY = Split(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64))


def cifar(classes=10, shape=(3, 32, 32)):
    none = np.zeros((0, *shape), dtype=np.float32)
    return Data(none, np.zeros(0, dtype=np.int64), none, np.zeros(0, dtype=np.int64), classes)


def write(root, images, labels):
    """Write STL-10's files: labels from 1, and of each colour the columns one after the other."""
    folder = root / "stl10_binary"
    folder.mkdir()
    (folder / "train_X.bin").write_bytes(images.transpose(0, 1, 3, 2).astype(np.uint8).tobytes())
    (folder / "train_y.bin").write_bytes(labels.astype(np.uint8).tobytes())
    return folder


@pytest.fixture
def stl(tmp_path):
    """Return a folder with pictures whose red tells their number and whose green gets lighter downwards."""
    labels = np.tile(np.arange(1, 11), EACH)
    images = np.zeros((len(labels), 3, 96, 96), dtype=np.uint8)
    images[:, 0] = np.arange(len(labels))[:, None, None]
    images[:, 1] = np.arange(96)[None, :, None]
    write(tmp_path, images, labels)
    return tmp_path


def test_pictures_come_upright_smaller_and_under_cifars_labels(stl):
    option = Stl10ServerData(root=str(stl), per_class=3)
    option.check()
    x, y = option.draw(cifar(), NOBODY, 0)
    assert (x.shape, x.dtype, y.dtype) == ((27, 3, 32, 32), np.float32, np.int64)
    numbers = np.rint(x[:, 0, 0, 0] * 255).astype(int)
    theirs = [NAMES[number % 10].replace("car", "automobile") for number in numbers]
    assert theirs == [LABELS[label] for label in y]
    assert len(set(numbers)) == 27
    rows = np.arange(32) * 3 + 1  # the mean of three rows is the one in the middle
    assert np.allclose(x[:, 1] * 255, rows[None, :, None])


def test_there_is_no_frog_and_no_monkey(stl):
    _, y = Stl10ServerData(root=str(stl), per_class=EACH).draw(cifar(), NOBODY, 0)
    assert np.bincount(y, minlength=10).tolist() == [EACH * (name != "frog") for name in LABELS]


def test_torchvision_reads_the_same_pictures(stl, monkeypatch):
    from torchvision.datasets import STL10

    monkeypatch.setattr(STL10, "_check_integrity", lambda self: True)  # it wants all 2.6 GB
    theirs = STL10(str(stl), split="train")
    x, y = Stl10ServerData(root=str(stl), per_class=EACH).draw(cifar(), NOBODY, 0)
    birds = theirs.data[theirs.labels == 1].reshape(EACH, 3, 32, 3, 32, 3).mean(axis=(3, 5)) / 255
    order = np.argsort(x[y == 2][:, 0, 0, 0])
    assert np.allclose(x[y == 2][order], birds)


def test_a_larger_set_contains_the_smaller_one_and_seeds_differ(stl):
    def numbers(per_class, seed):
        x, _ = Stl10ServerData(root=str(stl), per_class=per_class).draw(cifar(), NOBODY, seed)
        return set(np.rint(x[:, 0, 0, 0] * 255).astype(int))

    assert numbers(1, 5) < numbers(3, 5)
    assert numbers(1, 5) == numbers(1, 5) != numbers(1, 6)


def test_the_journal_papers_sizes():
    info = Cifar10(root="/nowhere").info(0, 1)
    assert [Stl10ServerData(per_class=n).size(info) for n in (56, 80)] == [504, 720]


@pytest.mark.parametrize(("classes", "shape"), [(10, (1, 28, 28)), (100, (3, 32, 32))])
def test_other_data_than_cifar10_are_refused(stl, classes, shape):
    with pytest.raises(ScenarioError, match=r"server_data: stl10 goes with images of shape \(3, 32, 32\) in 10"):
        Stl10ServerData(root=str(stl)).draw(cifar(classes, shape), NOBODY, 0)


def test_missing_and_broken_files_are_named(stl, tmp_path, monkeypatch):
    option, folder = Stl10ServerData(root=str(stl)), stl / "stl10_binary"
    with pytest.raises(DataError, match=r"train_y.bin: 4 pictures of airplane, accepted: at least 56"):
        option.draw(cifar(), NOBODY, 0)
    (folder / "train_y.bin").write_bytes(bytes([11] * 40))
    with pytest.raises(DataError, match=r"train_y.bin: found labels from 11 to 11, accepted 1 to 10"):
        option.draw(cifar(), NOBODY, 0)
    (folder / "train_y.bin").write_bytes(bytes([1] * 39))
    with pytest.raises(DataError, match=r"train_X.bin: found 1,105,920 bytes, accepted: 1,078,272 for 39"):
        option.draw(cifar(), NOBODY, 0)
    (folder / "train_X.bin").unlink()
    with pytest.raises(DataError, match=r"stl10_binary has no train_X.bin; set \"root\" .* FEDACTORS_DATA"):
        option.check()
    monkeypatch.delenv("FEDACTORS_DATA", raising=False)
    with pytest.raises(DataError, match=r"stl10: no folder given"):
        Stl10ServerData().check()

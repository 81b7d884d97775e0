"""Folders of images: written by the tests, read through torchvision."""

import numpy as np
import pytest
from PIL import Image

from fedactors.data.user.arrays import array_of
from fedactors.errors import UsageError
from fedactors.simulation.prepare import prepare
from tests.data.user.scenes import scene


def write(folder, label, count, size=(6, 4), mode="RGB", first=0):
    """Write images of one shade, which says their number; sizes are (width, height)."""
    (folder / label).mkdir(parents=True, exist_ok=True)
    for number in range(first, first + count):
        shade = number if mode == "L" else (number, 0, 255)
        Image.new(mode, size, shade).save(folder / label / f"{number}.png")


@pytest.fixture
def birds(tmp_path):
    for which, count in (("train", 3), ("test", 2)):
        write(tmp_path / "birds" / which, "wren", count)
        write(tmp_path / "birds" / which, "robin", count, first=100)
    return tmp_path / "birds"


def given(folder, count=2, partition="iid", **options):
    dataset = {"name": "image_folder", "path": "birds", **options}
    return scene(folder, {"dataset": dataset, "model": "logistic", "partition": partition}, count)


def read(scenario):
    return scenario.task.info(0, scenario.devices), scenario.task.load(0, scenario.devices)


def test_images_become_channels_in_0_to_1_and_folders_labels(birds, tmp_path):
    info, data = read(given(tmp_path))
    assert (info.train_size, info.test_size, info.input_shape) == (6, 4, (3, 4, 6))
    assert data.label_names == ("robin", "wren")
    assert data.y.tolist() == [0, 0, 0, 1, 1, 1]
    assert np.allclose(data.x[:, 0, 0, 0] * 255, [100, 101, 102, 0, 1, 2])
    assert (data.x[:, 2] == 1).all()


@pytest.mark.parametrize("order", ["<u2", ">u2"])
@pytest.mark.parametrize("suffix", ["png", "tif"])
def test_images_of_sixteen_bits_keep_their_shades(suffix, order, birds, tmp_path):
    """Shades of 16 bits are 257 times those of 8; Pillow would make all above 255 white."""
    shades = np.arange(24, dtype=order).reshape(4, 6) * 2570
    Image.fromarray(shades).save(birds / "train/wren" / f"9.{suffix}")
    _, data = read(given(tmp_path))
    _, grey = read(given(tmp_path, grey=True))
    expected = (np.arange(24) * 10).reshape(4, 6)
    assert np.array_equal(np.rint(data.x[-1] * 255), [expected] * 3)
    assert np.array_equal(np.rint(grey.x[-1] * 255), [expected])


def test_grey_maps_of_sixteen_bits_keep_their_shades(birds, tmp_path):
    shades = np.arange(24).reshape(4, 6) * 2570
    (birds / "train/wren/9.pgm").write_bytes(b"P5\n6 4\n65535\n" + shades.astype(">u2").tobytes())
    _, data = read(given(tmp_path))
    assert np.array_equal(np.rint(data.x[-1] * 255), [shades // 257] * 3)


@pytest.mark.parametrize("order", ["<u2", ">u2"])
def test_pixels_of_sixteen_bits_are_shares_of_the_highest(order):
    shades = np.array([[0, 1, 257], [4369, 65534, 65535]], dtype=order)
    assert np.array_equal(array_of(Image.fromarray(shades), ""), shades.astype(np.float32)[None] / 65535)


@pytest.mark.parametrize("kind", [np.int32, np.float32])
def test_images_without_a_range_are_refused(kind, birds, tmp_path):
    image = Image.fromarray(np.array([[0, 1], [700, 90_000]], kind))
    accepted = "accepted: pixels of 8 or 16 bits, or an array"
    with pytest.raises(UsageError, match=rf"train sample 3: .*mode {image.mode}, .*{accepted}"):
        array_of(image, "train sample 3")
    image.save(birds / "train/wren/9.tif")
    with pytest.raises(UsageError, match=rf"wren/9\.tif cannot be read: .*mode {image.mode}, .*{accepted}"):
        read(given(tmp_path))


def test_images_are_resized_and_grey(birds, tmp_path):
    write(birds / "train", "wren", 1, size=(20, 20), first=9)
    info, _ = read(given(tmp_path, size=[8, 5], grey=True))
    assert info.input_shape == (1, 8, 5)
    assert read(given(tmp_path, size=7))[0].input_shape == (3, 7, 7)


def test_a_share_for_testing_and_clients_by_file(birds, tmp_path):
    (tmp_path / "data.py").write_text("def of(path):\n    return int(path.split('/')[-1][:-4]) % 2\n")
    partition = {"name": "natural", "by": "data.py:of"}
    info, data = read(given(tmp_path, partition=partition))
    assert info.client_sizes.tolist() == [4, 2]
    assert data.client_names == ("0", "1")
    for part in ("train", "test"):
        (birds / part).rename(tmp_path / part)
    for label in ("wren", "robin"):
        (tmp_path / "train" / label).rename(birds / label)
    info, _ = read(given(tmp_path, test_share=0.34))
    assert (info.train_size, info.test_size) == (4, 2)


@pytest.mark.parametrize(
    ("spoil", "options", "message"),
    [
        (lambda birds: (birds / "test").rename(birds / "tests"), {}, "birds/test: no such folder"),
        (lambda birds: write(birds / "train", "wren", 1, (9, 9), first=9), {}, "accepted: size: N"),
        (lambda birds: (birds / "train/wren/0.png").write_bytes(b"no image"), {}, "train/wren/0.png cannot be read"),
        (lambda birds: write(birds / "test", "owl", 1), {}, 'no training image is in a folder "owl"'),
        (lambda birds: (birds / "test/empty").mkdir(), {}, "accepted: a folder of images for each label"),
        (lambda birds: None, {"partition": {"name": "natural", "by": "user"}}, 'images have no key "user"'),
    ],
)
def test_one_message_for_a_wrong_folder(birds, tmp_path, spoil, options, message):
    spoil(birds)
    with pytest.raises(UsageError) as error:
        prepare(given(tmp_path, **options))
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1

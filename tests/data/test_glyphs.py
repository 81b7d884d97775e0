from importlib.util import find_spec

import numpy as np
import pytest

from fedactors.data.base import Data, Info
from fedactors.data.partitions.assignment import Split
from fedactors.data.server import fonts
from fedactors.data.server.glyphs import GlyphServerData
from fedactors.data.sets.emnist import Emnist
from fedactors.data.sets.mnist import Mnist
from fedactors.errors import DataError, ScenarioError
from tests.data.test_datasets import SHARED, real_mnist
from tests.data.test_images import real_emnist

NOBODY = Split(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64))
AT_HAND = "aileron"  # inside Pillow


def characters(classes, side=28, channels=1):
    none = np.zeros((0, channels, side, side), dtype=np.float32)
    return Data(none, np.zeros(0, dtype=np.int64), none, np.zeros(0, dtype=np.int64), classes)


def drawn(classes, side=28, **options):
    return GlyphServerData(font=AT_HAND, **options).draw(characters(classes, side), NOBODY, 0)


def boxes(x):
    """Return where the ink of each image begins and ends, `(n, 2 axes, 2)`, in pixels."""
    inside = [[np.flatnonzero((i[0] > 0.2).any(axis=axis))[[0, -1]] for axis in (1, 0)] for i in x]
    return np.array(inside) + np.array([0, 1])


@pytest.mark.parametrize(("classes", "samples"), [(10, 150), (45, 675), (62, 930)])
def test_each_label_gets_fifteen_images(classes, samples):
    x, y = drawn(classes)
    assert (x.shape, x.dtype, y.dtype) == ((samples, 1, 28, 28), np.float32, np.int64)
    assert np.bincount(y).tolist() == [15] * classes
    assert GlyphServerData().size(Info("emnist", 0, 0, (1, 28, 28), classes)) == samples
    assert len({image.tobytes() for image in x}) > 0.95 * samples  # 0 and O, l and I may fall together


def test_ink_is_white_on_black():
    x, _ = drawn(10)
    assert x.min() == 0
    assert (x.max(axis=(1, 2, 3)) > 0.9).all()
    assert (x[:, 0, [0, -1], :] == 0).all()
    assert 0.03 < x.mean() < 0.13  # MNIST, whose digits are larger: 0.13


def test_characters_are_as_large_as_points_are_on_a_canvas_of_two_inches():
    """A capital I is as high as the font's capitals: 100, 110, 120 of 144 points, in 28 pixels."""
    x, _ = drawn(1, characters="I")
    upright = np.ptp(boxes(x), axis=2).reshape(5, 3, 2)[2, :, 0]
    capital = np.array([np.subtract(*fonts.opened(AT_HAND, size).getbbox("I")[3:0:-2]) for size in (100, 110, 120)])
    assert (np.abs(upright - capital * 28 / 144) <= 1.5).all()
    assert (np.diff(upright) >= 0).all()


def test_boxes_of_characters_are_in_the_middle():
    x, _ = drawn(45)
    upright = boxes(x).mean(axis=2).reshape(45, 5, 3, 2)[:, 2]
    assert (np.abs(upright - 14) <= 1).all()  # a turn moves the box of an L


def test_rotations_lean_to_the_left_and_to_the_right():
    """Of a "1", the upper half moves to the left when it turns counter-clockwise."""
    x, _ = drawn(1, characters="I")
    columns = np.arange(28)
    upper, lower = (part.sum(axis=1) @ columns / part.sum(axis=(1, 2)) for part in (x[:, 0, :14], x[:, 0, 14:]))
    lean = (upper - lower).reshape(5, 3).mean(axis=1)
    assert (np.diff(lean) < -0.5).all()
    assert abs(lean[2]) < 0.1


def test_images_follow_the_size_of_the_data_and_nothing_else():
    small, _ = drawn(10, side=14)
    assert small.shape == (150, 1, 14, 14)
    first, second = (GlyphServerData(font=AT_HAND).draw(characters(10), NOBODY, seed)[0] for seed in (0, 1))
    assert np.array_equal(first, second)


def hits(x, y, glyphs):
    """Return how many of `x` lie nearest to a glyph of their label, all blurred a little and of one length."""

    def blurred(images):
        padded = np.pad(images[:, 0], ((0, 0), (1, 1), (1, 1)))
        sums = sum(padded[:, i : i + 28, j : j + 28] for i in range(3) for j in range(3))
        flat = sums.reshape(len(images), -1)
        return flat / np.linalg.norm(flat, axis=1, keepdims=True)

    nearest = (blurred(x) @ blurred(glyphs[0]).T).argmax(axis=1)
    return (glyphs[1][nearest] == y).mean()


@real_mnist
def test_glyphs_look_like_mnist():
    data = Mnist(root=str(SHARED), test_limit=1000).load(0, 1)
    assert hits(data.test_x, data.test_y, drawn(10)) > 0.3  # chance: 0.1


@real_emnist
def test_glyphs_look_like_emnist():
    data = Emnist(root=str(SHARED), classes=45, train_limit=1).load(0, 1)
    assert hits(data.test_x, data.test_y, drawn(45)) > 0.15  # chance: 0.02


@pytest.mark.parametrize(
    ("classes", "options", "message"),
    [
        (26, {}, r"server_data.characters: 26 labels may be anything; accepted: 26 characters, in order"),
        (63, {}, r"63 labels may be anything"),
        (10, {"characters": "abc"}, r'characters: found "abc", accepted: 10 characters, one per label'),
        (3, {"characters": "a c"}, r'characters: found "a c", accepted: 3 characters'),
    ],
)
def test_labels_without_a_character_are_told_before_anything_is_drawn(classes, options, message):
    with pytest.raises(ScenarioError, match=message):
        GlyphServerData(**options).size(Info("emnist", 0, 0, (1, 28, 28), classes))


@pytest.mark.parametrize("shape", [(3, 32, 32), (60,), (1, 28, 14)])
def test_data_that_are_not_grey_squares_are_refused(shape):
    with pytest.raises(ScenarioError, match=r"glyphs are square images of one channel, found shape"):
        GlyphServerData().size(Info("toy", 0, 0, shape, 10))


def test_a_font_that_is_missing_is_told(tmp_path, monkeypatch):
    path = tmp_path / "letters.ttf"
    path.write_bytes(b"not a font")
    for font in (str(path), "/nowhere/at/all.ttf", "cavet"):
        with pytest.raises(DataError, match=rf'font "{font}" is not the file of a font.*accepted: aileron, '):
            GlyphServerData(font=font).check()
    lost = fonts.Shipped("a-package", "no_such_module_here", "no-such-font.ttf")
    monkeypatch.setitem(fonts.FONTS, "lost", lost)
    with pytest.raises(DataError, match=r'"lost" is not installed; pip install a-package, or use aileron'):
        GlyphServerData(font="lost").check()


@pytest.mark.parametrize("name", [AT_HAND, *sorted(fonts.FONTS)])
def test_a_font_that_is_installed_is_found(name):
    shipped = fonts.FONTS.get(name)
    if shipped is not None and find_spec(shipped.module) is None:
        pytest.skip(f"{shipped.package} is not installed")
    GlyphServerData(font=name).check()
    x, _ = GlyphServerData(font=name).draw(characters(10), NOBODY, 0)
    assert x.shape == (150, 1, 28, 28)

"""Letters and digits drawn with a font, as the server's data for handwriting.

Source: FSL journal paper, experiment "FSLsyn": each character at five rotations and three sizes of a cursive
font, 675 images for 45 labels. They are placed as in the clients' data: MNIST fits a digit into 20 x 20
pixels and puts its centre of mass in the middle, EMNIST fits a character into 24 x 24 and centres the box.

The font is DejaVu Sans Oblique, if not another one is named: what a classifier learns from it carried over to
MNIST and EMNIST better than from cursive fonts.
"""

from __future__ import annotations

import string
from itertools import product
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from fedactors.errors import ScenarioError
from fedactors.learning import fonts
from fedactors.learning.datasets import Data, Float32, Info, Int64
from fedactors.learning.deal import Split
from fedactors.learning.images import UInt8
from fedactors.learning.server_data import WHERE
from fedactors.options import Options

if TYPE_CHECKING:
    from PIL.Image import Image as Picture
    from PIL.ImageFont import FreeTypeFont

_ANGLES = (-20, -10, 0, 10, 20)  # degrees, counter-clockwise
_SIZES = (100, 110, 120)  # points: only their ratios matter here
_DRAWN = 100  # pixels of the font as it is drawn, before it is shrunk
_STROKE = 2  # pixels by which strokes are widened then, to have about the ink of handwriting
_MERGED = string.digits + string.ascii_uppercase + "abdefghnqrt"  # EMNIST balanced and bymerge
_ALL = string.digits + string.ascii_uppercase + string.ascii_lowercase  # EMNIST byclass
_LETTERS = 26


class _Frame(NamedTuple):
    """How a data set places characters in its images."""

    share: float  # of the image's side, that the longer side of the largest character takes
    by_mass: bool  # whether the centre of mass, not the box, is put in the middle


_FRAMES = {"mnist": _Frame(20 / 28, by_mass=True), "emnist": _Frame(24 / 28, by_mass=False)}


class GlyphServerData(Options):
    """Characters drawn with a font, white on black, 15 images of each label.

    The same font and the same Pillow give the same bits.
    """

    name: Literal["glyphs"] = "glyphs"
    font: str = "dejavu-oblique"
    """A file, or one of: dejavu-oblique, dancing-script, caveat, aileron (the one that comes with Pillow)."""
    characters: str | None = None
    """The character of each label; if not given, digits, then those of EMNIST's labels in their order."""
    like: Literal["mnist", "emnist"] | None = None
    """Whose size and centring to follow; if not given, MNIST's for ten labels or fewer."""

    def size(self, info: Info) -> int:
        """Return n_0. Raises ScenarioError if the clients' data are not grey images of characters."""
        self._fits(info.input_shape, info.classes)
        return info.classes * len(_ANGLES) * len(_SIZES)

    def check(self) -> None:
        """Look for the font. Raises DataError if it is missing."""
        self._font()

    def draw(self, data: Data, split: Split, seed: int) -> tuple[Float32, Int64]:
        """Return the images, label after label, whatever `split` and `seed`; see `ServerData.draw`."""
        characters = self._fits(data.x.shape[1:], data.classes)
        font, side = self._font(), data.x.shape[-1]
        frame = _FRAMES[self.like or ("mnist" if data.classes <= 10 else "emnist")]
        pictures = (_drawn(character, font, angle) for character, angle in product(characters, _ANGLES))
        images = [
            _placed(picture, round(frame.share * side * size / _SIZES[-1]), side, by_mass=frame.by_mass)
            for picture, size in product(pictures, _SIZES)
        ]
        labels = np.repeat(np.arange(data.classes), len(_ANGLES) * len(_SIZES))
        return np.stack(images).astype(np.float32)[:, None] / np.float32(255), labels.astype(np.int64)

    def _font(self) -> FreeTypeFont:
        return fonts.opened(self.font, _DRAWN)

    def _fits(self, shape: tuple[int, ...], classes: int) -> str:
        """Return the characters of the labels. Raises ScenarioError if there are none for such data."""
        if len(shape) != 3 or shape[0] != 1 or shape[1] != shape[2]:
            raise ScenarioError(f"{WHERE}: glyphs are square images of one channel, found shape {shape}")
        characters = _alphabet(classes) if self.characters is None else self.characters
        if len(characters) != classes or any(map(str.isspace, characters)):
            raise ScenarioError(
                f'{WHERE}.characters: found "{characters}", accepted: {classes} characters, one per label'
            )
        return characters


def _alphabet(classes: int) -> str:
    """Return the characters of EMNIST's first labels. Raises ScenarioError if that is ambiguous."""
    if classes == _LETTERS or classes > len(_ALL):
        raise ScenarioError(
            f"{WHERE}.characters: {classes} labels may be anything; accepted: {classes} characters, in order"
        )
    return (_MERGED if classes <= len(_MERGED) else _ALL)[:classes]


def _drawn(character: str, font: FreeTypeFont, angle: int) -> Picture:
    """Return `character` in white on black, rotated and cropped, as large as the font is."""
    from PIL import Image, ImageDraw

    left, top, right, bottom = font.getbbox(character, stroke_width=_STROKE)
    picture = Image.new("L", (round(right - left) + 4, round(bottom - top) + 4))
    ImageDraw.Draw(picture).text((2 - left, 2 - top), character, fill=255, font=font, stroke_width=_STROKE)
    turned = picture.rotate(angle, Image.Resampling.BICUBIC, expand=True)
    return turned.crop(turned.getbbox())


def _placed(picture: Picture, longest: int, side: int, *, by_mass: bool) -> UInt8:
    """Return an image `(side, side)` with `picture` in the middle, `longest` pixels on its longer side."""
    from PIL import Image

    scale = longest / max(picture.size)
    width, height = (max(1, round(length * scale)) for length in picture.size)
    ink = np.asarray(picture.resize((width, height), Image.Resampling.LANCZOS))
    top, left = (
        int(np.clip(round(_offset(ink.sum(axis=1 - axis), side, by_mass=by_mass)), 0, side - length))
        for axis, length in enumerate(ink.shape)
    )
    image = np.zeros((side, side), dtype=np.uint8)
    image[top : top + height, left : left + width] = ink
    return image


def _offset(ink: Int64, side: int, *, by_mass: bool) -> float:
    """Return where the box begins on one axis, whose rows or columns hold so much `ink`."""
    if not by_mass:
        return (side - len(ink)) / 2
    mass = float((ink * np.arange(len(ink))).sum() / ink.sum())
    return side / 2 - mass  # MNIST's centre of mass is the pixel (14, 14), counted from 0

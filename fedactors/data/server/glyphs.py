"""Letters and digits drawn with a font, as the server's data for handwriting.

Source: FSL journal paper, experiment "FSLsyn": each character at five rotations and three sizes of a cursive
font, in the middle of a canvas of 2 x 2 inches that is shrunk to the clients' images: 675 images for 45 labels.

The font is DejaVu Sans Oblique, if not another one is named: the paper does not say which cursive font it took.
"""

from __future__ import annotations

import string
from itertools import product
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from fedactors.data.base import Data, Float32, Info, Int64
from fedactors.data.partitions.assignment import Split
from fedactors.data.readers.images import UInt8
from fedactors.data.server import fonts
from fedactors.data.server.server_data import WHERE
from fedactors.errors import ScenarioError
from fedactors.options import Options

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont

_ANGLES = (-20, -10, 0, 10, 20)  # degrees, counter-clockwise
_SIZES = (100, 110, 120)  # points, which are pixels of the canvas
_CANVAS = 2 * 72  # points: the side of 2 inches
_MERGED = string.digits + string.ascii_uppercase + "abdefghnqrt"  # EMNIST balanced and bymerge
_ALL = string.digits + string.ascii_uppercase + string.ascii_lowercase  # EMNIST byclass
_LETTERS = 26


class GlyphServerData(Options):
    """Characters drawn with a font, white on black, 15 images of each label.

    The same font and the same Pillow give the same bits.
    """

    elsewhere: ClassVar[bool] = True

    name: Literal["glyphs"] = "glyphs"
    font: str = "dejavu-oblique"
    """A file, or one of: dejavu-oblique, dancing-script, caveat, aileron (the one that comes with Pillow)."""
    characters: str | None = None
    """The character of each label; if not given, digits, then those of EMNIST's labels in their order."""

    def size(self, info: Info) -> int:
        """Return n_0. Raises ScenarioError if the clients' data are not grey images of characters."""
        self._fits(info.input_shape, info.classes)
        return info.classes * len(_ANGLES) * len(_SIZES)

    def check(self) -> None:
        """Look for the font. Raises DataError if it is missing."""
        fonts.opened(self.font, _SIZES[0])

    def draw(self, data: Data, split: Split, seed: int) -> tuple[Float32, Int64]:
        """Return the images, label after label, whatever `split` and `seed`; see `ServerData.draw`."""
        characters = self._fits(data.x.shape[1:], data.classes)
        side = data.x.shape[-1]
        drawn = [fonts.opened(self.font, size) for size in _SIZES]
        images = [_image(each, font, angle, side) for each, angle, font in product(characters, _ANGLES, drawn)]
        labels = np.repeat(np.arange(data.classes), len(_ANGLES) * len(_SIZES))
        return np.stack(images).astype(np.float32)[:, None] / np.float32(255), labels.astype(np.int64)

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


def _image(character: str, font: FreeTypeFont, angle: int, side: int) -> UInt8:
    """Return an image `(side, side)` of the canvas with `character` in white in its middle, turned by `angle`."""
    from PIL import Image, ImageDraw

    left, top, right, bottom = font.getbbox(character)
    canvas = Image.new("L", (_CANVAS, _CANVAS))
    corner = (_CANVAS - left - right) / 2, (_CANVAS - top - bottom) / 2
    ImageDraw.Draw(canvas).text(corner, character, fill=255, font=font)
    turned = canvas.rotate(angle, Image.Resampling.BICUBIC)
    return np.asarray(turned.resize((side, side), Image.Resampling.LANCZOS))

"""A picture of a recording as a PNG: bars over their labels, drawn by Pillow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fedactors.errors import TraceError
from fedactors.traces.summaries import Picture

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

# pixels
_WIDTH = 960
_HEIGHT = 400
_LEFT = 70
_TOP = 50
_FLOOR = 350

# colours
_INK = "#222222"
_BAR = "#3b6fb6"
_LINE = "#cccccc"


def draw(picture: Picture, path: str | Path) -> None:
    """Draw `picture` into the PNG file at `path`.

    Raises TraceError if Pillow is not installed or the file cannot be written.
    """
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError:
        raise TraceError("a PNG needs Pillow (accepted: pip install pillow, or no --png)") from None
    image = Image.new("RGB", (_WIDTH, _HEIGHT), "white")
    pen = ImageDraw.Draw(image)
    small = ImageFont.load_default(11)
    peak = max((h for h in picture.heights if h), default=0.0)
    pen.text((_LEFT, 14), picture.title, _INK, ImageFont.load_default(16))
    _axis(pen, small, peak)
    _bars(pen, small, picture, peak)
    try:
        image.save(path, "PNG")
    except OSError as error:
        raise TraceError(f"{path}: cannot be written: {error}") from error


def _axis(pen: ImageDraw, font: ImageFont | FreeTypeFont, peak: float) -> None:
    """Draw lines at zero, half the peak and the peak, with their values."""
    for share in (0.0, 0.5, 1.0):
        y = _FLOOR - share * (_FLOOR - _TOP)
        pen.line((_LEFT, y, _WIDTH - 10, y), _LINE)
        pen.text((_LEFT - 8, y), f"{share * peak:.3g}", _INK, font, anchor="rm")


def _bars(pen: ImageDraw, font: ImageFont | FreeTypeFont, picture: Picture, peak: float) -> None:
    """Draw a bar for each value, and a label below every third."""
    step = (_WIDTH - 10 - _LEFT) / max(len(picture.heights), 1)
    for number, (label, height) in enumerate(zip(picture.labels, picture.heights, strict=True)):
        x = _LEFT + number * step
        if height and peak:
            pen.rectangle((x + 2, _FLOOR - height / peak * (_FLOOR - _TOP), x + step - 2, _FLOOR), _BAR)
        if number % 3 == 0:
            pen.text((x + step / 2, _FLOOR + 8), "no data" if height is None else label, _INK, font, anchor="ma")

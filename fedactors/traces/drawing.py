"""A picture of a recording as a PNG: bars over their labels, drawn by Pillow."""

from __future__ import annotations

from pathlib import Path

from fedactors.errors import TraceError
from fedactors.traces.summaries import Picture

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 960, 400, 70, 50, 50  # pixels
_INK, _BAR, _LINE = "#222222", "#3b6fb6", "#cccccc"


def draw(picture: Picture, path: str | Path) -> None:
    """Draw `picture` into the PNG file at `path`.

    Raises TraceError if Pillow is not installed or the file cannot be written.
    """
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError:
        raise TraceError("a PNG needs Pillow (accepted: pip install pillow, or no --png)") from None
    image = Image.new("RGB", (_WIDTH, _HEIGHT), "white")
    pen, font, small = ImageDraw.Draw(image), ImageFont.load_default(16), ImageFont.load_default(11)
    floor, peak = _HEIGHT - _BOTTOM, max((h for h in picture.heights if h), default=0.0)
    pen.text((_LEFT, 14), picture.title, _INK, font)
    for share in (0.0, 0.5, 1.0):
        y = floor - share * (floor - _TOP)
        pen.line((_LEFT, y, _WIDTH - 10, y), _LINE)
        pen.text((_LEFT - 8, y), f"{share * peak:.3g}", _INK, small, anchor="rm")
    step = (_WIDTH - 10 - _LEFT) / max(len(picture.heights), 1)
    for number, (label, height) in enumerate(zip(picture.labels, picture.heights, strict=True)):
        x = _LEFT + number * step
        if height and peak:
            pen.rectangle((x + 2, floor - height / peak * (floor - _TOP), x + step - 2, floor), _BAR)
        if number % 3 == 0:
            pen.text((x + step / 2, floor + 8), "no data" if height is None else label, _INK, small, anchor="ma")
    try:
        image.save(path, "PNG")
    except OSError as error:
        raise TraceError(f"{path}: cannot be written: {error}") from error

"""Fonts that Python packages ship, by a short name."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fedactors.errors import DataError, suggestion

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont


class Shipped(NamedTuple):
    """A font in a package."""

    package: str  # what pip installs
    module: str
    file: str  # inside the module's folder


FONTS = {
    "dejavu-oblique": Shipped("matplotlib", "matplotlib", "mpl-data/fonts/ttf/DejaVuSans-Oblique.ttf"),
    "dancing-script": Shipped("fontpkg-dancing-script", "fontpkg_dancing_script", "files/DancingScript[wght].ttf"),
    "caveat": Shipped("fontpkg-caveat", "fontpkg_caveat", "files/Caveat[wght].ttf"),
}
_INSIDE_PILLOW = "aileron"


def opened(name: str, size: int) -> FreeTypeFont:
    """Return the font called `name`, or that of the file `name`, at `size` pixels.

    A font of a package that is not installed is looked for among the system's fonts. Raises DataError if it
    is nowhere.
    """
    from PIL import ImageFont

    if name == _INSIDE_PILLOW:
        return _inside_pillow(size)
    for place in _places(name):
        try:  # the basic layout is in every build of Pillow
            return ImageFont.truetype(place, size, layout_engine=ImageFont.Layout.BASIC)
        except OSError:
            continue
    raise DataError(_missing(name))


def _inside_pillow(size: int) -> FreeTypeFont:
    from PIL import ImageFont

    font = ImageFont.load_default(size)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise DataError(f'font "{_INSIDE_PILLOW}": this Pillow was built without FreeType')
    return font


def _places(name: str) -> list[str]:
    """Return where the font may be: in its package, then anywhere on the system."""
    if name not in FONTS:
        return [str(Path(name).expanduser())]
    shipped = FONTS[name]
    spec = find_spec(shipped.module)
    folders = [Path(spec.origin).parent] if spec and spec.origin else []
    return [*(str(folder / shipped.file) for folder in folders), Path(shipped.file).name]


def _missing(name: str) -> str:
    names = sorted([*FONTS, _INSIDE_PILLOW])
    if name in FONTS:
        return f'font "{name}" is not installed; pip install {FONTS[name].package}, or use {_INSIDE_PILLOW}'
    return f'font "{name}" is not the file of a font{suggestion(name, names)}, or a path'

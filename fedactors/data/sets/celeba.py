"""CelebA, from the folder that torchvision's `CelebA(root, download=True)` makes: smiling faces, and the others.

Source: Liu et al., Deep Learning Face Attributes in the Wild, 2015; Augenstein et al., 2022, section 5.1 and C.2.1.
As in LEAF, persons with at least five images count; nine tenths of them train, of 9,343 that is 8,408. Three persons
make one client, 2,802 in all, which keeps smiling faces only; the other faces of the same persons are the central
learner's. All faces of the remaining 935 persons test. (Which persons the authors' own split has is not known.)
torchvision's reader also wants landmarks, boxes and parts, which nothing here uses: the lists are read here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from pydantic import PositiveInt

from fedactors.data.base import Data, Float32, Info, Int64
from fedactors.data.sets.mnist import VARIABLE
from fedactors.errors import DataError
from fedactors.home import data_root
from fedactors.options import Options
from fedactors.paths import PathText

_IMAGES = "img_align_celeba"
_ATTRIBUTES = "list_attr_celeba.txt"
_PERSONS = "identity_CelebA.txt"
_LEAST = 5  # images
_TEST = -1  # in place of a client
_NOBODY = -2
_FETCH = ", or fetch it: fedactors data fetch celeba"


class _Faces(NamedTuple):
    """Which images are whose, by their rows in the list of attributes."""

    names: tuple[str, ...]
    smiling: Int64  # (images,), 0 or 1
    clients: list[Int64]  # rows of each client's smiling faces
    central: Int64
    test: Int64


class CelebA(Options):
    """Faces that smile or do not, in colour, `side` pixels high and wide, in [0, 1]."""

    name: Literal["celeba"] = "celeba"
    root: PathText | None = None
    """Folder that contains `celeba/`; if not given, the environment variable FEDACTORS_DATA names it."""
    side: PositiveInt = 28
    persons: PositiveInt = 3
    """Persons that make one client."""

    def info(self, seed: int, clients: int) -> Info:
        """Return sizes; the lists of attributes and persons are read. Raises DataError if they cannot be."""
        faces = self._faces()
        sizes = np.array([len(rows) for rows in faces.clients], dtype=np.int64)
        shape = (3, self.side, self.side)
        return Info(
            self.name,
            int(sizes.sum()),
            len(faces.test),
            shape,
            2,
            client_sizes=sizes,
            central_size=len(faces.central),
            tests_by_seed=False,
        )

    def check(self) -> None:
        """Look for the lists and the folder of images. Raises DataError if one is missing."""
        self._folder()

    def load(self, seed: int, clients: int) -> Data:
        """Return the faces, the same whatever the arguments. Raises DataError if an image cannot be read."""
        faces, folder = self._faces(), self._folder() / _IMAGES
        parts = (np.concatenate(faces.clients), faces.test, faces.central)
        x, test_x, central_x = (_pixels(folder, [faces.names[row] for row in rows], self.side) for rows in parts)
        y, test_y, central_y = (faces.smiling[rows] for rows in parts)
        bounds = np.concatenate([[0], np.cumsum([len(rows) for rows in faces.clients])]).astype(np.int64)
        return Data(x, y, test_x, test_y, 2, bounds, None, central_x, central_y, test_y == 0)

    def _faces(self) -> _Faces:
        return _listed(self._folder(), self.persons)

    def _folder(self) -> Path:
        given = data_root(self.root)
        folder = Path(given).expanduser() / "celeba" if given else Path()
        missing = [name for name in (_IMAGES, _ATTRIBUTES, _PERSONS) if not (folder / name).exists()]
        if not given or missing:
            where = f"{folder} has no {', '.join(missing)}" if given else "no folder given"
            ways = f'set "root" or the environment variable {VARIABLE} to a folder with'
            raise DataError(f"celeba: {where}; {ways} celeba/{{{_IMAGES}/, {_ATTRIBUTES}, {_PERSONS}}}{_FETCH}")
        return folder


@lru_cache(maxsize=2)
def _listed(folder: Path, persons: int) -> _Faces:
    """Read the lists. Raises DataError, naming file and line, if they are not CelebA's."""
    attributes, whose = folder / _ATTRIBUTES, folder / _PERSONS
    heads, *lines = _lines(attributes)[1:]
    try:
        column = heads.split().index("Smiling") + 1
    except ValueError:
        raise DataError(f'{attributes}, line 2: found no "Smiling" among the attributes') from None
    person_of = dict(_words(whose, number, line, 2) for number, line in enumerate(_lines(whose), 1))
    rows = [_words(attributes, number, line, 1 + len(heads.split())) for number, line in enumerate(lines, 3)]
    names = tuple(words[0] for words in rows)
    smiling = np.array([words[column] == "1" for words in rows], dtype=np.int64)
    unknown = next((name for name in names if name not in person_of), None)
    if unknown is not None:
        raise DataError(f"{whose}: no client named for {unknown}")
    client = _clients(np.array([int(person_of[name]) for name in names], dtype=np.int64), persons)
    kept = np.flatnonzero((client >= 0) & (smiling == 1))
    kept = kept[np.argsort(client[kept], kind="stable")]
    clients = np.split(kept, np.flatnonzero(np.diff(client[kept])) + 1)
    central = np.flatnonzero((client >= 0) & (smiling == 0))
    return _Faces(names, smiling, clients, central, np.flatnonzero(client == _TEST))


def _clients(person: Int64, persons: int) -> Int64:
    """Return the client of each image, `(images,)`, by whose it is; _TEST, or _NOBODY where a person does not count."""
    found, whose, counts = np.unique(person, return_inverse=True, return_counts=True)
    counted = np.flatnonzero(counts >= _LEAST)
    train = 9 * len(counted) // 10
    client = np.full(len(found), _NOBODY)
    client[counted[train:]] = _TEST
    whole = train - train % persons  # the rest are too few for another client
    client[counted[:whole]] = np.arange(whole) // persons
    of: Int64 = client[whose]
    return of


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def _words(path: Path, number: int, line: str, count: int) -> list[str]:
    words = line.split()
    if len(words) != count:
        raise DataError(f"{path}, line {number}: found {len(words)} words, accepted: {count}")
    return words


def _pixels(folder: Path, names: Sequence[str], side: int) -> Float32:
    """Return images `(n, 3, side, side)`, scaled down. Raises DataError if one cannot be read."""
    from PIL import Image

    images = np.empty((len(names), side, side, 3), dtype=np.uint8)
    for row, name in enumerate(names):
        try:
            with Image.open(folder / name) as image:
                images[row] = np.asarray(image.convert("RGB").resize((side, side), Image.Resampling.BILINEAR))
        except OSError as error:
            raise DataError(f"{folder / name} cannot be read: {error}") from error
    scaled = np.ascontiguousarray(images.transpose(0, 3, 1, 2)).astype(np.float32)
    scaled /= 255  # in place: there may be gigabytes
    return scaled

"""STL-10 photographs as the server's data for CIFAR-10: other pictures of nearly the same things.

Sources: Coates, Ng and Lee, "An analysis of single-layer networks in unsupervised feature learning", 2011;
FSL journal paper, experiment "FSLsyn", with 56 and 80 pictures of each of the nine common labels.

The files are read here and not by torchvision, which insists on the 2.6 GB of unlabelled pictures.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from fedactors.data.base import Data, Float32, Info, Int64
from fedactors.data.partitions.assignment import Split
from fedactors.data.readers.images import UInt8
from fedactors.data.server.server_data import WHERE
from fedactors.data.sets.cifar import LABELS
from fedactors.data.sets.mnist import VARIABLE
from fedactors.errors import DataError, ScenarioError
from fedactors.home import data_root
from fedactors.options import Options
from fedactors.paths import PathText
from fedactors.streams import Purpose, stream

_STL_LABELS = ("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")  # from 1
_FOLDER = "stl10_binary"
_IMAGES = "train_X.bin"
_LABELS = "train_y.bin"
_SIDE = 96
_SMALL = 32
_PIXELS = 3 * _SIDE * _SIDE


def _to_cifar() -> dict[int, int]:
    """Return CIFAR-10's label for each of STL-10's, without the monkey."""
    names = {name: label for label, name in enumerate(LABELS)} | {"car": LABELS.index("automobile")}
    return {label: names[name] for label, name in enumerate(_STL_LABELS, start=1) if name in names}


class Stl10ServerData(Options):
    """Photographs of STL-10 at 32 x 32 pixels under CIFAR-10's labels; there is no frog among them."""

    elsewhere: ClassVar[bool] = True

    name: Literal["stl10"] = "stl10"
    root: PathText | None = None
    """Folder that contains `stl10_binary`; if not given, the environment variable FEDACTORS_DATA names it."""
    per_class: Annotated[int, Field(ge=1, le=500)] = 56
    """Pictures of each of the nine common labels."""

    def size(self, info: Info) -> int:
        """Return n_0. Raises ScenarioError if the clients' data are not like CIFAR-10."""
        _fits(info.input_shape, info.classes)
        return self.per_class * len(_to_cifar())

    def check(self) -> None:
        """Look for the two files. Raises DataError if one is missing."""
        self._folder()

    def draw(self, data: Data, split: Split, seed: int) -> tuple[Float32, Int64]:
        """Return the pictures, label after label of CIFAR-10; see `ServerData.draw`.

        A larger set contains every smaller one of the same seed.
        """
        _fits(data.x.shape[1:], data.classes)
        images, found = _read(self._folder())
        chosen = {
            label: stream(seed, Purpose.SERVER_DATA, 1 + label).permutation(np.flatnonzero(found == theirs))
            for theirs, label in _to_cifar().items()
        }
        rows = np.concatenate([self._enough(label, members) for label, members in sorted(chosen.items())])
        return _shrunk(images[rows]), np.repeat(np.array(sorted(chosen), dtype=np.int64), self.per_class)

    def _enough(self, label: int, members: Int64) -> Int64:
        if len(members) < self.per_class:
            raise DataError(
                f"{self._folder() / _LABELS}: {len(members)} pictures of {LABELS[label]}"
                f", accepted: at least {self.per_class}"
            )
        return members[: self.per_class]

    def _folder(self) -> Path:
        """Return the folder, in which both files are."""
        given = data_root(self.root)
        ways = (
            f'set "root" of the server\'s data or the environment variable {VARIABLE} to a folder with '
            f"{_FOLDER}/{{{_IMAGES}, {_LABELS}}}, or fetch it: fedactors data fetch stl10"
        )
        if not given:
            raise DataError(f"stl10: no folder given; {ways}")
        folder = Path(given).expanduser() / _FOLDER
        missing = [name for name in (_IMAGES, _LABELS) if not (folder / name).is_file()]
        if missing:
            raise DataError(f"stl10: {folder} has no {', '.join(missing)}; {ways}")
        return folder


def _fits(shape: tuple[int, ...], classes: int) -> None:
    if (shape, classes) != ((3, _SMALL, _SMALL), len(LABELS)):
        raise ScenarioError(
            f"{WHERE}: stl10 goes with images of shape (3, 32, 32) in 10 classes, found {shape} in {classes}"
        )


def _read(folder: Path) -> tuple[UInt8, Int64]:
    """Return all pictures `(n, 3, 96, 96)`, mapped and not yet read, and their labels `(n,)`, from 1.

    The format stores columns one after the other. Raises DataError if the files do not go together.
    """
    labels = np.fromfile(folder / _LABELS, dtype=np.uint8).astype(np.int64)
    size, wanted = (folder / _IMAGES).stat().st_size, len(labels) * _PIXELS
    if size != wanted or not size:
        raise DataError(f"{folder / _IMAGES}: found {size:,} bytes, accepted: {wanted:,} for {len(labels):,} labels")
    if not ((labels >= 1) & (labels <= len(_STL_LABELS))).all():
        raise DataError(f"{folder / _LABELS}: found labels from {labels.min()} to {labels.max()}, accepted 1 to 10")
    columns = np.memmap(folder / _IMAGES, dtype=np.uint8, mode="r").reshape(-1, 3, _SIDE, _SIDE)
    return columns.transpose(0, 1, 3, 2), labels


def _shrunk(images: UInt8) -> Float32:
    """Return means over squares of 3 x 3 pixels, in [0, 1], `(n, 3, 32, 32)`."""
    factor = _SIDE // _SMALL
    squares = images.reshape(len(images), 3, _SMALL, factor, _SMALL, factor)
    means: Float32 = squares.mean(axis=(3, 5), dtype=np.float32)
    means /= 255
    return means

"""EMNIST: handwritten letters and digits, from NIST's files or from Parquet.

Source: Cohen et al., "EMNIST: extending MNIST to handwritten letters", 2017. NIST's images lie on their side,
rows and columns exchanged, and are set upright here; those that hubs serve as Parquet are upright already.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import PositiveInt, model_validator

from fedactors.data.base import Info, Int64
from fedactors.data.readers import idx, image_parquet
from fedactors.data.readers.images import ImageFiles, ImageSource, Pick, UInt8
from fedactors.errors import DataError

Part = Literal["balanced", "byclass", "bymerge", "letters", "digits", "mnist"]

_SIDE = 28
_SIZES: dict[str, tuple[int, int, int]] = {  # classes, training images, test images
    "balanced": (47, 112_800, 18_800),
    "byclass": (62, 697_932, 116_323),
    "bymerge": (47, 697_932, 116_323),
    "letters": (26, 124_800, 20_800),
    "digits": (10, 240_000, 40_000),
    "mnist": (10, 60_000, 10_000),
}
_UNBALANCED = ("byclass", "bymerge")
_FOLDERS = ("EMNIST/raw", "EMNIST/raw/gzip", "gzip", ".")


class Emnist(ImageFiles):
    """Handwritten letters and digits, 28 x 28 pixels in [0, 1], upright (Cohen et al. 2017)."""

    name: Literal["emnist"] = "emnist"
    split: Part = "balanced"
    """Which of its data sets: "balanced" has 47 labels, upper and lower case merged where they look alike."""
    classes: PositiveInt | None = None
    """Keep the images of the first so many labels; 45 of the 47 reproduces the FSL journal paper."""

    @model_validator(mode="after")
    def _check_class_count(self) -> Emnist:
        if self.kept() > _SIZES[self.split][0]:
            raise ValueError(
                f"classes: found {self.classes}, accepted: at most {_SIZES[self.split][0]} of {self.split}"
            )
        return self

    def published(self) -> Info:
        """Return what its authors say of the split."""
        classes, train, test = _SIZES[self.split]
        counts = None if self.split in _UNBALANCED else (train // classes,) * classes
        return Info(self.name, train, test, (1, _SIDE, _SIDE), classes, counts)

    def kept(self) -> int:
        """Return how many labels are kept, the first ones."""
        return self.classes or _SIZES[self.split][0]

    def accepted(self) -> str:
        """Return the layouts that can be read, for messages."""
        return (
            f"EMNIST/raw/emnist-{self.split}-{{train,test}}-{{images-idx3,labels-idx1}}-ubyte[.gz]"
            f" or [emnist-{self.split}/]{{train,test}}*.parquet"
        )

    def sources(self, root: Path) -> Iterator[ImageSource]:
        """Yield the layouts found in `root`, NIST's files first. Raises DataError if some are missing."""
        for folder in _FOLDERS:
            yield from _nist(root / folder, self.split)
        names = (".", f"emnist-{self.split}", f"emnist/{self.split}", "emnist")
        folders = (root / name / inner for name in names for inner in (".", "data"))
        yield from image_parquet.found(folders, "L", _SIDE)


@dataclass(frozen=True)
class NistImages:
    """The files of one split as NIST made them: a `ImageSource`."""

    split: str
    train: tuple[Path, Path]  # images, labels
    test: tuple[Path, Path]

    def labels(self) -> tuple[Int64, Int64]:
        """Return training and test labels, from 0. Raises DataError if a file cannot be read."""
        return self._labels(self.train[1]), self._labels(self.test[1])

    def read(self, pick: Pick, *, train: bool) -> tuple[UInt8, Int64]:
        """Return the picked images `(n, 1, 28, 28)`, upright, and labels `(n,)`.

        Raises DataError if a file cannot be read, or images and labels do not belong together.
        """
        path, labels_path = self.train if train else self.test
        labels, images = self._labels(labels_path), idx.read(path, 3)
        if images.shape != (len(labels), _SIDE, _SIDE):
            raise DataError(f"{path}: found images of shape {images.shape}, accepted {(len(labels), _SIDE, _SIDE)}")
        rows = pick(labels)
        return images[rows].transpose(0, 2, 1)[:, None], labels[rows]

    def _labels(self, path: Path) -> Int64:
        first = 1 if self.split == "letters" else 0  # only "letters" counts from 1
        return idx.read(path, 1).astype(np.int64) - first


def _nist(folder: Path, split: str) -> Iterator[NistImages]:
    """Yield the files of `split` in `folder`, if there are any. Raises DataError if some are missing."""
    wanted = [
        folder / f"emnist-{split}-{part}-{kind}-ubyte"
        for part in ("train", "test")
        for kind in ("images-idx3", "labels-idx1")
    ]
    there = [path for path in map(idx.packed_or_not, wanted) if path]
    if len(there) == len(wanted):
        yield NistImages(split, (there[0], there[1]), (there[2], there[3]))
    elif there:
        missing = [path.name for path in wanted if not idx.packed_or_not(path)]
        raise DataError(f"emnist: {folder} has no {', '.join(missing)} (or .gz); accepted: all four files")

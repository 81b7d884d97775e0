"""CIFAR-10, read by torchvision from the folder that its own `download=True` makes, or from Parquet.

Source: Krizhevsky, "Learning multiple layers of features from tiny images", 2009.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from fedactors.data.base import Info, Int64
from fedactors.data.readers import image_parquet
from fedactors.data.readers.images import ImageFiles, ImageSource, Pick, UInt8
from fedactors.errors import DataError

_FOLDER = "cifar-10-batches-py"
_FILES = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch", "batches.meta")
_SIDE = 32

LABELS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


class Cifar10(ImageFiles):
    """Photographs of ten kinds of things, 3 x 32 x 32 in [0, 1]: 50,000 and 10,000 (Krizhevsky 2009).

    As Parquet, hubs serve them as JPEG or PNG; JPEG differs a little from the original pixels.
    """

    name: Literal["cifar10"] = "cifar10"

    def published(self) -> Info:
        """Return what its authors say of the data."""
        return Info(self.name, 50_000, 10_000, (3, _SIDE, _SIDE), len(LABELS), (5_000,) * len(LABELS))

    def accepted(self) -> str:
        """Return the layouts that can be read, for messages."""
        return f"{_FOLDER}/{{{', '.join(_FILES)}}} or [cifar10/]{{train,test}}*.parquet"

    def sources(self, root: Path) -> Iterator[ImageSource]:
        """Yield the layouts found in `root`, the original first. Raises DataError if files are missing."""
        if (root / _FOLDER).is_dir():
            missing = [name for name in _FILES if not (root / _FOLDER / name).is_file()]
            if missing:
                raise DataError(f"cifar10: {root / _FOLDER} has no {', '.join(missing)}")
            yield PickledCifar10(root)
        folders = (root / name / inner for name in (".", "cifar10") for inner in (".", "plain_text", "data"))
        yield from image_parquet.found(folders, "RGB", _SIDE)


@dataclass(frozen=True)
class PickledCifar10:
    """The original files: a `ImageSource`. torchvision compares their checksums before it unpickles anything."""

    root: Path

    def labels(self) -> None:
        """Return None: a file holds labels and pixels, and is known by its checksum."""

    def read(self, pick: Pick, *, train: bool) -> tuple[UInt8, Int64]:
        """Return the picked images `(n, 3, 32, 32)` and labels `(n,)`.

        Raises DataError if a file is not the original.
        """
        from torchvision.datasets import CIFAR10  # imports torch

        try:
            found = CIFAR10(self.root, train=train)
        except Exception as error:  # torchvision has no errors of its own
            raise DataError(f"{self._damaged()}: {error}; accepted: the original files") from error
        labels = np.asarray(found.targets, dtype=np.int64)
        rows = pick(labels)
        return found.data[rows].transpose(0, 3, 1, 2), labels[rows]

    def _damaged(self) -> str:
        """Return which files are not the original ones."""
        from torchvision.datasets import CIFAR10
        from torchvision.datasets.utils import check_integrity

        known = [*CIFAR10.train_list, *CIFAR10.test_list, (CIFAR10.meta["filename"], CIFAR10.meta["md5"])]
        folder = self.root / _FOLDER
        bad = [name for name, checksum in known if not check_integrity(folder / name, checksum)]
        return f"{folder}/{', '.join(bad)}" if bad else str(folder)
